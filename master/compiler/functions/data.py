"""Functions that look values up in the site's data: lookup, and the older hiera functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from shared.errors import EvaluationError

from ..errors.locations import FINAL
from ..host import DataContext, NotFoundInData
from ..types.base import PuppetType
from ..types.descriptions.describe import describe_wrong_type
from ..values.core import Instance, Strictness, Value
from ..values.text import program as quoted
from .api import Closure, Context, function

if TYPE_CHECKING:
    from ..evaluation.scope import Scope


def _scope(context: Context) -> Scope:
    return cast("Scope", context)


_ALIASES = {
    "NameType": "Variant[String, Array[String]]",
    "ValueType": "Type",
    "DefaultValueType": "Any",
    "MergeType": "Variant[String[1], Hash[String, Scalar]]",
    "BlockType": "Callable[NameType]",
    "OptionsWithName": (
        "Struct[{name => NameType, value_type => Optional[ValueType], default_value => Optional[DefaultValueType], "
        "override => Optional[Hash[String, Any]], default_values_hash => Optional[Hash[String, Any]], merge => Optional[MergeType]}]"
    ),
    "OptionsWithoutName": (
        "Struct[{value_type => Optional[ValueType], default_value => Optional[DefaultValueType], "
        "override => Optional[Hash[String, Any]], default_values_hash => Optional[Hash[String, Any]], merge => Optional[MergeType]}]"
    ),
}


@function("lookup", "NameType name", "ValueType value_type?", "MergeType merge?", aliases=_ALIASES)
def lookup(context: Context, name: Value, value_type: PuppetType | None = None, merge: Value = None) -> Value:
    """A value of the site's data, or what the block gives."""
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge}, None)


@lookup.also("NameType name", "Optional[ValueType] value_type", "Optional[MergeType] merge", "DefaultValueType default_value")
def _lookup_default(context: Context, name: Value, value_type: PuppetType | None, merge: Value, default_value: Value) -> Value:
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge, "default_value": default_value}, None)


@lookup.also("NameType name", "ValueType value_type?", "MergeType merge?", "BlockType &block")
def _lookup_block(context: Context, name: Value, value_type: PuppetType | None = None, merge: Value = None, *, block: Closure) -> Value:
    return _lookup(_scope(context), name, {"value_type": value_type, "merge": merge}, block)


@lookup.also("OptionsWithName options_hash", "BlockType &block?")
def _lookup_hash(context: Context, options: dict[str, Value], *, block: Closure | None = None) -> Value:
    return _lookup(_scope(context), options["name"], options, block)


@lookup.also("Variant[String, Array[String]] name", "OptionsWithoutName options_hash", "BlockType &block?")
def _lookup_options(context: Context, name: Value, options: dict[str, Value], *, block: Closure | None = None) -> Value:
    return _lookup(_scope(context), name, options, block)


def _lookup(scope: Scope, name: Value, options: dict[str, Value], block: Closure | None, old: DataContext | None = None) -> Value:
    """Source: language reference 18.7. `old`: how one of the older functions looks up."""
    names = name if isinstance(name, list) else [name]
    value_type = options.get("value_type")
    override = options.get("override") or {}
    defaults = options.get("default_values_hash") or {}
    data = old or scope.compilation.data_context(scope)
    data.overrides, data.defaults = override, defaults
    for each in names:
        if each in override:
            return _checked(f"Value found for key '{each}' in override hash", override[each], value_type)
        try:
            found = scope.compilation.data_for(each, scope, options.get("merge"), data)
        except NotFoundInData:
            continue
        return _checked("Found value", found, value_type)
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


def _checked(what: str, value: Value, wanted: PuppetType | None) -> Value:
    if wanted is None or wanted.instance(value):
        return value
    raise EvaluationError(describe_wrong_type(what, wanted, value))


# --- the older functions ------------------------------------------------------------------------------------------

_DOCS = "https://puppet.com/docs/puppet/7.23/deprecated_language.html"


def _hiera(context: Context, function_name: str, key: str, merge: str, given: tuple[Value, ...], block: Closure | None) -> Value:
    """`given` is a default, then levels to be asked first, for version 3 of hiera.yaml; with a block there are only these."""
    scope = _scope(context)
    if scope.compilation.reporter.strict is not Strictness.OFF:
        told = f"The function '{function_name}' is deprecated in favor of using 'lookup'. See {_DOCS}"
        scope.warn_once("deprecations", function_name, told)
    options: dict[str, Value] = {"merge": merge}
    levels: Value = None
    if block is not None:
        levels = given[0] if given else None
    elif given:
        options["default_value"] = given[0]
        levels = given[1] if len(given) > 1 else None
    data = scope.compilation.data_context(scope)
    data.hiera_call = True
    data.extra_paths = [str(each) for each in (levels if isinstance(levels, list) else [levels]) if each is not None]
    return _lookup(scope, key, options, block, data)


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


# --- backends -------------------------------------------------------------------------------------------------------


def _without_path(function_name: str) -> str:
    return (
        f"one of 'path', 'paths' 'glob', 'globs' or 'mapped_paths' must be declared in hiera.yaml when using this {function_name} function"
    )


def _data(context: Context, name: str, options: dict[str, Value], lookup_context: Instance) -> Value:
    scope = _scope(context)
    working = lookup_context.behind or scope.compilation.lookup_context(scope, lookup_context.attributes["module_name"])
    return cast("Value", working.read_data(name, options["path"]))


@function("yaml_data", "Struct[{path=>String[1]}] options", "Puppet::LookupContext context")
def yaml_data(context: Context, options: dict[str, Value], lookup_context: Instance) -> Value:
    """The content of a YAML file, for use as a data_hash backend in hiera.yaml."""
    return _data(context, "yaml_data", options, lookup_context)


@function("json_data", "Struct[{path=>String[1]}] options", "Puppet::LookupContext context")
def json_data(context: Context, options: dict[str, Value], lookup_context: Instance) -> Value:
    """The content of a JSON file, for use as a data_hash backend in hiera.yaml."""
    return _data(context, "json_data", options, lookup_context)


@function("hocon_data", "Struct[{path=>String[1]}] options", "Puppet::LookupContext context")
def hocon_data(context: Context, options: dict[str, Value], lookup_context: Instance) -> Value:
    """The content of a HOCON file, for use as a data_hash backend in hiera.yaml."""
    return _data(context, "hocon_data", options, lookup_context)


@yaml_data.mismatch("Hash options", "Puppet::LookupContext context")
def _yaml_without_path(context: Context, options: Value, lookup_context: Value) -> str:
    return _without_path("data_hash")


@json_data.mismatch("Hash options", "Puppet::LookupContext context")
def _json_without_path(context: Context, options: Value, lookup_context: Value) -> str:
    return _without_path("data_hash")


@hocon_data.mismatch("Hash options", "Puppet::LookupContext context")
def _hocon_without_path(context: Context, options: Value, lookup_context: Value) -> str:
    return _without_path("data_hash")


@function("eyaml_lookup_key", "String[1] key", "Hash[String[1], Any] options", "Puppet::LookupContext context")
def eyaml_lookup_key(context: Context, key: str, options: dict[str, Value], lookup_context: Instance) -> Value:
    """A value of a YAML file with `ENC[PKCS7,…]` in it decrypted, for use as a lookup_key backend in hiera.yaml."""
    if lookup_context.behind is None:
        raise EvaluationError("eyaml_lookup_key can only be called while a lookup runs")
    if "path" not in options:
        raise EvaluationError(f"'eyaml_lookup_key': {_without_path('lookup_key')}")
    return cast("Value", lookup_context.behind.decrypt_value(key, options))
