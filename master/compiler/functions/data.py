"""Functions that look values up in the site's data: lookup, and the older hiera functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from shared.errors import EvaluationError

from ..locations import FINAL
from ..text import program as quoted
from ..types.base import Type
from ..types.describe import describe_mismatch
from ..types.infer import infer
from ..values import Strictness, Value
from ..world import NotFoundInData
from .api import Closure, Context, function

if TYPE_CHECKING:
    from ..scope import Scope


def _scope(context: Context) -> Scope:
    return cast("Scope", context)


_OPTIONS = frozenset(("name", "value_type", "default_value", "override", "default_values_hash", "merge"))


@function("lookup", "Variant[String, Array[String]] name", "Type value_type?", "Variant[String[1], Hash] merge?", "Callable[1,1] &block?")
def lookup(context: Context, name: Value, value_type: Type | None = None, merge: Value = None, *, block: Closure | None = None) -> Value:
    """A value of the site's data, or what the block gives."""
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge}, block)


@lookup.also(
    "Variant[String, Array[String]] name", "Optional[Type] value_type", "Optional[Variant[String[1], Hash]] merge", "Any default_value"
)
def _lookup_default(context: Context, name: Value, value_type: Type | None, merge: Value, default_value: Value) -> Value:
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge, "default_value": default_value}, None)


@lookup.also("Variant[String, Array[String]] name", "Hash options", "Callable[1,1] &block?")
def _lookup_options(context: Context, name: Value, options: dict[str, Value], *, block: Closure | None = None) -> Value:
    return _lookup(_scope(context), name, options, block)


@lookup.also("Hash options", "Callable[1,1] &block?")
def _lookup_hash(context: Context, options: dict[str, Value], *, block: Closure | None = None) -> Value:
    if "name" not in options:
        raise EvaluationError("lookup(): expects a value for key 'name'")
    return _lookup(_scope(context), options["name"], options, block)


def _lookup(scope: Scope, name: Value, options: dict[str, Value], block: Closure | None) -> Value:
    """Source: language reference 18.7."""
    unknown = set(options) - _OPTIONS
    if unknown:
        raise EvaluationError(f"lookup(): unrecognized key '{sorted(unknown)[0]}'")
    names = name if isinstance(name, list) else [name]
    if not all(isinstance(each, str) for each in names):
        raise EvaluationError("lookup(): expects a String or an Array of them as name", hint="A reference or a type is no key.")
    value_type = options.get("value_type")
    merge = options.get("merge")
    override = options.get("override") or {}
    for each in names:
        if each in override:
            return _checked(f"Value found for key '{each}' in override hash", override[each], value_type)
        try:
            found = scope.compiler.data_for(each, scope, merge)
        except NotFoundInData:
            continue
        return _checked("Found value", found, value_type)
    defaults = options.get("default_values_hash") or {}
    for each in names:
        if each in defaults:
            return _checked(f"Value found for key '{each}' in default values hash", defaults[each], value_type)
    if block is not None:
        return _checked("Value returned from default block", block(name), value_type)
    if "default_value" in options:
        return _checked("Default value", options["default_value"], value_type)
    if len(names) == 1:
        raise EvaluationError(f"Function lookup() did not find a value for the name '{names[0]}'", where=FINAL)
    shown = ", ".join(quoted(each) for each in names)
    raise EvaluationError(f"Function lookup() did not find a value for any of the names [{shown}]", where=FINAL)


def _checked(what: str, value: Value, wanted: Type | None) -> Value:
    if wanted is None or wanted.instance(value):
        return value
    text = describe_mismatch(what, wanted, infer(value))
    raise EvaluationError(text.replace(f"{what} expects", f"{what} has wrong type, expects", 1))


# --- the older functions ------------------------------------------------------------------------------------------

_DOCS = "https://puppet.com/docs/puppet/7.23/deprecated_language.html"


def _hiera(context: Context, function_name: str, key: str, merge: str, given: tuple[Value, ...], block: Closure | None) -> Value:
    """`given` is a default, then levels to be asked first, which only the old format of hiera.yaml knows."""
    scope = _scope(context)
    if scope.compiler.reporter.strict is not Strictness.OFF:
        told = f"The function '{function_name}' is deprecated in favor of using 'lookup'. See {_DOCS}"
        scope.warn_once("deprecations", function_name, told)
    if len(given) > 1 and given[1] not in (None, [], ""):
        raise EvaluationError(
            f"{function_name}() with levels of its own is not supported", hint="Use lookup() and a level in hiera.yaml.", where=FINAL
        )
    options: dict[str, Value] = {"merge": merge}
    if given and block is None:
        options["default_value"] = given[0]
    return _lookup(scope, key, options, block)


@function("hiera", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera(context: Context, key: str, *given: Value, block: Closure | None = None) -> Value:
    """The first value found; deprecated in favor of lookup."""
    return _hiera(context, "hiera", key, "first", given, block)


@function("hiera_array", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera_array(context: Context, key: str, *given: Value, block: Closure | None = None) -> Value:
    """All values found, as one array; deprecated in favor of lookup."""
    return _hiera(context, "hiera_array", key, "unique", given, block)


@function("hiera_hash", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera_hash(context: Context, key: str, *given: Value, block: Closure | None = None) -> Value:
    """All hashes found, merged; deprecated in favor of lookup."""
    return _hiera(context, "hiera_hash", key, "hash", given, block)


@function("hiera_include", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera_include(context: Context, key: str, *given: Value, block: Closure | None = None) -> None:
    """Include the classes that the data names; deprecated in favor of lookup and include."""
    names = _hiera(context, "hiera_include", key, "unique", given, block)
    if names:
        context.call_function("include", [names])
