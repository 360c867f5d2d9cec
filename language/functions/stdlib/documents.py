"""Parsers of text: parsejson, parseyaml, parsepson, parsehocon, and the same of files: loadjson, loadyaml, load_module_metadata."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from shared.data import hocon, plainjson, plainyaml
from shared.errors import BadData, EvaluationError, Unsupported

from ...values.core import Value, key_of
from ...values.labels import ruby_class
from ..api import Context, function, legacy_function
from ..catalog_context import CatalogContext
from ..strings import ruby_text
from .environment import module_path


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not allowed")


def as_values(data: Any) -> Value:
    """Return plain data as values of the language; keys of hashes may be numbers or undef."""
    if isinstance(data, dict):
        return {key_of(as_values(key)): as_values(item) for key, item in data.items()}
    return [as_values(item) for item in data] if isinstance(data, list | tuple) else data


def from_json(text: str) -> Value:
    """
    Return the value of a JSON text.

    Raises:
        EvaluationError: it is not JSON; the message says where.
    """
    try:
        plainjson.check_values(text.encode("utf-8", "surrogatepass"))
        return as_values(json.loads(text, parse_constant=_refuse_constant))
    except BadData as error:
        raise EvaluationError(error.message) from error
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"unexpected token at {_excerpt(text)}: {error}") from error


def from_yaml(text: str, *, aliases: bool = False) -> Value:
    """
    Return the value of a YAML text, of several documents the first.

    Raises:
        EvaluationError: it is not YAML, has a tag, or an alias where there may be none.
    """
    try:
        return as_values(plainyaml.loads(text, aliases=aliases, first=True))
    except BadData as error:
        raise EvaluationError(error.message) from error


def from_hocon(text: str) -> Value:
    """
    Return the value of a HOCON text.

    Raises:
        EvaluationError: it is not HOCON, or uses something that is not supported.
    """
    try:
        return as_values(hocon.loads(text))
    except BadData as error:
        raise EvaluationError(error.message) from error


def _excerpt(text: str) -> str:
    return "'" + (text if len(text) <= 60 else text[:60] + "…") + "'"


def _parse_or_default(arguments: tuple[Value, ...], parse: Callable[[str], Value]) -> Value:
    """Return the data of a text; the default, if there is one, for text that is malformed, null or false."""
    if not arguments:
        raise EvaluationError("Wrong number of arguments. 1 or 2 arguments should be provided.")
    text, default = arguments[0], arguments[1] if len(arguments) > 1 else None
    try:
        if not isinstance(text, str):
            raise EvaluationError(f"no implicit conversion of {ruby_class(text)} into String")
        data = parse(text)
    except EvaluationError:
        if default is None or default is False:
            raise
        return default
    return default if data is None or data is False else data


@legacy_function("parsejson", -1)
def parsejson(context: Context, *arguments: Value) -> Value:
    """Return the data that a JSON text holds, or the default."""
    return _parse_or_default(arguments, from_json)


@legacy_function("parseyaml", -1)
def parseyaml(context: Context, *arguments: Value) -> Value:
    """Return the data that a YAML text holds, or the default; unlike loadyaml it refuses aliases."""
    return _parse_or_default(arguments, from_yaml)


@function("parsepson", "String[1] pson_string", "Any default?")
def parsepson(context: Context, pson_string: str, *default: Value) -> Value:
    """Return the data that a PSON text holds, or the default when it is malformed."""
    return _parse_with_default(from_json, pson_string, default)


@function("stdlib::parsehocon", "String hocon_string", "Any default?")
def parsehocon(context: Context, hocon_string: str, *default: Value) -> Value:
    """Return the data that a HOCON text holds, or the default when it is malformed."""
    return _parse_with_default(from_hocon, hocon_string, default)


def _parse_with_default(parse: Callable[[str], Value], text: str, default: tuple[Value, ...]) -> Value:
    try:
        return parse(text)
    except EvaluationError:
        if not default:
            raise
        return default[0]


# --- files --------------------------------------------------------------------------------------------------------


def _load_file(context: CatalogContext, name: str, arguments: tuple[Value, ...], parse: Callable[[str], Value]) -> Value:
    path, default = arguments[0], arguments[1] if len(arguments) > 1 else None
    if not isinstance(path, str):
        if len(arguments) > 1:  # anything that cannot be read yields the default
            return default
        raise EvaluationError(f"{name}(): the path must be a String, got {ruby_class(path)}")
    if path.startswith(("http://", "https://")):
        if len(arguments) > 1:
            context.log("warning", f"{name}() does not fetch from the network; {path} is taken for missing, and the default is used")
            return default
        raise Unsupported(
            f"{name}() does not fetch from the network: a catalog must not wait for another server",
            hint="Put the file on the compiling host, or let Hiera serve the data.",
        )
    host = context.compilation.host
    file = host.find_file(path, "files") if path.startswith("/") else None
    if file is None:
        context.log("warning", f"Can't load '{path}' File does not exist!")
        return default
    try:
        data = parse(host.read_file(file).decode("utf-8", "surrogateescape"))
    except EvaluationError as error:
        if default is None or default is False:
            raise EvaluationError(f"{file}: {error.message}", hint=error.hint) from error
        return default
    return default if data is None or data is False else data


@legacy_function("loadjson", -2)
def loadjson(context: CatalogContext, *arguments: Value) -> Value:
    """Return the data of a JSON file on the compiling host, or the default."""
    return _load_file(context, "loadjson", arguments, from_json)


@legacy_function("loadyaml", -2)
def loadyaml(context: CatalogContext, *arguments: Value) -> Value:
    """Return the data of a YAML file on the compiling host, or the default."""
    return _load_file(context, "loadyaml", arguments, partial(from_yaml, aliases=True))


@legacy_function("load_module_metadata", -1)
def load_module_metadata(context: CatalogContext, *arguments: Value) -> Value:
    """Return the data of a module's metadata.json; {} for a missing one, if that is allowed."""
    if len(arguments) not in (1, 2):
        raise EvaluationError("load_module_metadata(): Wrong number of arguments, expects one or two")
    module = arguments[0]
    module_path(context, module)
    source = context.compilation.host.module_file(ruby_text(module), "metadata.json")
    if source is not None:
        return from_json(source.text)
    if len(arguments) == 1 or arguments[1] is False:
        raise EvaluationError(f"load_module_metadata(): No metadata.json file for module {module}")
    return {}
