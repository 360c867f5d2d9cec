"""lookup, the older hiera functions, and the built-in backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypedDict

from shared.errors import EvaluationError

from ..errors.locations import FINAL
from ..host import LookupArguments, LookupMethods, NotFoundInData
from ..types.descriptions.describe import describe_wrong_type
from ..values.core import Instance, PuppetType, Strictness, Value
from ..values.text import program as quoted
from .api import Closure, function
from .catalog_context import CatalogContext

Names: TypeAlias = str | list[str]

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


class LookupCallOptions(TypedDict, total=False):
    """The options of `lookup`, which a signature has checked."""

    name: Names
    value_type: PuppetType | None
    default_value: Value
    override: dict[str, Value] | None
    default_values_hash: dict[str, Value] | None
    merge: Value


@function("lookup", "NameType name", "ValueType value_type?", "MergeType merge?", aliases=_ALIASES)
def lookup(context: CatalogContext, name: Names, value_type: PuppetType | None = None, merge: Value = None) -> Value:
    """Return a value of the site's data; if there is none, the block's result."""
    return _lookup(context, name, {"value_type": value_type, "merge": merge}, None)


@lookup.also("NameType name", "Optional[ValueType] value_type", "Optional[MergeType] merge", "DefaultValueType default_value")
def _lookup_default(context: CatalogContext, name: Names, value_type: PuppetType | None, merge: Value, default_value: Value) -> Value:
    return _lookup(context, name, {"value_type": value_type, "merge": merge, "default_value": default_value}, None)


@lookup.also("NameType name", "ValueType value_type?", "MergeType merge?", "BlockType &block")
def _lookup_block(
    context: CatalogContext, name: Names, value_type: PuppetType | None = None, merge: Value = None, *, block: Closure
) -> Value:
    return _lookup(context, name, {"value_type": value_type, "merge": merge}, block)


@lookup.also("OptionsWithName options_hash", "BlockType &block?")
def _lookup_hash(context: CatalogContext, options: LookupCallOptions, *, block: Closure | None = None) -> Value:
    return _lookup(context, options["name"], options, block)


@lookup.also("Variant[String, Array[String]] name", "OptionsWithoutName options_hash", "BlockType &block?")
def _lookup_options(context: CatalogContext, name: Names, options: LookupCallOptions, *, block: Closure | None = None) -> Value:
    return _lookup(context, name, options, block)


def _lookup(
    context: CatalogContext,
    name: Names,
    options: LookupCallOptions,
    block: Closure | None,
    *,
    hiera_call: bool = False,
    extra_paths: Sequence[str] = (),
) -> Value:
    """
    Return the value of the first name that has one, else a default; EvaluationError when there is none.

    Args:
        name: a key, or an array of keys.
        options: value_type, merge, default_value, override and default_values_hash, as `lookup` takes them.
        hiera_call: the caller is one of the older hiera functions; `extra_paths` are the levels that it searches first.
    Source: language reference 18.7.
    """
    keys = name if isinstance(name, list) else [name]
    value_type = options.get("value_type")
    overrides = options.get("override") or {}
    defaults = options.get("default_values_hash") or {}
    arguments = LookupArguments(overrides, defaults, hiera_call, extra_paths)
    for key in keys:
        if key in overrides:
            return _require_type(f"Value found for key '{key}' in override hash", overrides[key], value_type)
        try:
            value = context.look_up(key, options.get("merge"), arguments)
        except NotFoundInData:
            continue
        return _require_type("Found value", value, value_type)
    for key in keys:
        if key in defaults:
            return _require_type(f"Value found for key '{key}' in default values hash", defaults[key], value_type)
    if block is not None:
        return _require_type("Value returned from default block", block(name), value_type)
    if "default_value" in options:
        return _require_type("Default value", options["default_value"], value_type)
    if len(keys) == 1:
        raise EvaluationError(f"Function lookup() did not find a value for the name '{keys[0]}'", where=FINAL)
    quoted_keys = ", ".join(quoted(key) for key in keys)
    raise EvaluationError(f"Function lookup() did not find a value for any of the names [{quoted_keys}]", where=FINAL)


def _require_type(subject: str, value: Value, value_type: PuppetType | None) -> Value:
    """Return `value`; raise EvaluationError when it is not of the type."""
    if value_type is None or value_type.instance(value):
        return value
    raise EvaluationError(describe_wrong_type(subject, value_type, value))


# --- the older functions ------------------------------------------------------------------------------------------

_DOCS = "https://puppet.com/docs/puppet/7.23/deprecated_language.html"


def _hiera(context: CatalogContext, function_name: str, key: str, merge: str, extra: tuple[Value, ...], block: Closure | None) -> Value:
    """
    Return a value as the older functions look it up.

    Args:
        extra: a default, then levels to be searched first, for version 3 of hiera.yaml; with a block only these levels.
    """
    if context.reporter.strict is not Strictness.OFF:
        message = f"The function '{function_name}' is deprecated in favor of using 'lookup'. See {_DOCS}"
        context.warn_once("deprecations", function_name, message)
    options: LookupCallOptions = {"merge": merge}
    levels: Value = None
    if block is not None:
        levels = extra[0] if extra else None
    elif extra:
        options["default_value"] = extra[0]
        levels = extra[1] if len(extra) > 1 else None
    paths = [str(level) for level in (levels if isinstance(levels, list) else [levels]) if level is not None]
    return _lookup(context, key, options, block, hiera_call=True, extra_paths=paths)


@function("hiera", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera(context: CatalogContext, key: str, *extra: Value, block: Closure | None = None) -> Value:
    """Return the first value found; deprecated in favor of lookup."""
    return _hiera(context, "hiera", key, "first", extra, block)


@function("hiera_array", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera_array(context: CatalogContext, key: str, *extra: Value, block: Closure | None = None) -> Value:
    """Return all values found, as one array; deprecated in favor of lookup."""
    return _hiera(context, "hiera_array", key, "unique", extra, block)


@function("hiera_hash", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera_hash(context: CatalogContext, key: str, *extra: Value, block: Closure | None = None) -> Value:
    """Return all hashes found, merged; deprecated in favor of lookup."""
    return _hiera(context, "hiera_hash", key, "hash", extra, block)


@function("hiera_include", "String key", "Any default?", "Any override?", "Callable[1, 1] &block?")
def hiera_include(context: CatalogContext, key: str, *extra: Value, block: Closure | None = None) -> None:
    """Include the classes that the data names; deprecated in favor of lookup and include."""
    names = _hiera(context, "hiera_include", key, "unique", extra, block)
    if names:
        context.call_function("include", [names])


# --- backends -------------------------------------------------------------------------------------------------------


def _missing_path_message(function_name: str) -> str:
    return (
        f"one of 'path', 'paths' 'glob', 'globs' or 'mapped_paths' must be declared in hiera.yaml when using this {function_name} function"
    )


def _read_data(context: CatalogContext, name: str, options: dict[str, str], lookup_context: Instance) -> Value:
    methods, module = lookup_context.behind, lookup_context.attributes["module_name"]
    if not isinstance(methods, LookupMethods):  # the manifest made the context itself
        methods = context.lookup_context(module if isinstance(module, str) else None)
    return methods.read_data(name, options["path"])


@function("yaml_data", "Struct[{path=>String[1]}] options", "Puppet::LookupContext context")
def yaml_data(context: CatalogContext, options: dict[str, str], lookup_context: Instance) -> Value:
    """Return the content of a YAML file, for use as a data_hash backend in hiera.yaml."""
    return _read_data(context, "yaml_data", options, lookup_context)


@function("json_data", "Struct[{path=>String[1]}] options", "Puppet::LookupContext context")
def json_data(context: CatalogContext, options: dict[str, str], lookup_context: Instance) -> Value:
    """Return the content of a JSON file, for use as a data_hash backend in hiera.yaml."""
    return _read_data(context, "json_data", options, lookup_context)


@function("hocon_data", "Struct[{path=>String[1]}] options", "Puppet::LookupContext context")
def hocon_data(context: CatalogContext, options: dict[str, str], lookup_context: Instance) -> Value:
    """Return the content of a HOCON file, for use as a data_hash backend in hiera.yaml."""
    return _read_data(context, "hocon_data", options, lookup_context)


@yaml_data.mismatch("Hash options", "Puppet::LookupContext context")
def _yaml_without_path(context: CatalogContext, options: Value, lookup_context: Value) -> str:
    return _missing_path_message("data_hash")


@json_data.mismatch("Hash options", "Puppet::LookupContext context")
def _json_without_path(context: CatalogContext, options: Value, lookup_context: Value) -> str:
    return _missing_path_message("data_hash")


@hocon_data.mismatch("Hash options", "Puppet::LookupContext context")
def _hocon_without_path(context: CatalogContext, options: Value, lookup_context: Value) -> str:
    return _missing_path_message("data_hash")


@function("eyaml_lookup_key", "String[1] key", "Hash[String[1], Any] options", "Puppet::LookupContext context")
def eyaml_lookup_key(context: CatalogContext, key: str, options: dict[str, Value], lookup_context: Instance) -> Value:
    """Return a value of a YAML file with each `ENC[PKCS7,…]` in it decrypted, for use as a lookup_key backend in hiera.yaml."""
    methods = lookup_context.behind
    if not isinstance(methods, LookupMethods):
        raise EvaluationError("eyaml_lookup_key can only be called while a lookup runs")
    if "path" not in options:
        raise EvaluationError(f"'eyaml_lookup_key': {_missing_path_message('lookup_key')}")
    return methods.decrypt_value(key, options)
