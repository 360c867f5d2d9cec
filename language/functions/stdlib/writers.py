"""Data as text: to_json, to_json_pretty, to_yaml, to_toml, to_python, to_ruby. When any part is Sensitive, the text is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shared.errors import EvaluationError

from ...catalog.richdata import encode
from ...values.core import Value, entries
from ...values.text import inspect
from ..api import Context, function
from . import jsontext, psych, toml
from .sensitivity import change_unwrapped

_PRETTY_OPTIONS: Final = (
    "Struct[{indent => Optional[String], space => Optional[String], space_before => Optional[String], "
    "object_nl => Optional[String], array_nl => Optional[String], allow_nan => Optional[Boolean], "
    "max_nesting => Optional[Integer[-1,default]]}] opts?"
)


@function("stdlib::to_json", "Any data")
def to_json(context: Context, data: Value) -> Value:
    """Return the data as JSON, without blanks."""
    return change_unwrapped(data, jsontext.dump)


@function("stdlib::to_json_pretty", "Variant[Hash, Array] data", "Optional[Boolean] skip_undef?", _PRETTY_OPTIONS)
def to_json_pretty(context: Context, data: Value, skip_undef: bool | None = None, opts: dict[str, Value] | None = None) -> Value:
    """Return the data as JSON over several lines; with skip_undef without the undef values of its first level."""
    layout = jsontext.change_layout(jsontext.PRETTY, opts or {})

    def text(unwrapped: Value) -> str:
        if skip_undef:
            if isinstance(unwrapped, dict):
                unwrapped = {key: value for key, value in unwrapped.items() if value is not None}
            elif isinstance(unwrapped, list):
                unwrapped = [value for value in unwrapped if value is not None]
        return jsontext.dump(unwrapped, layout) + "\n"

    return change_unwrapped(data, text)


@function("stdlib::to_yaml", "Any data", "Hash options?")
def to_yaml(context: Context, data: Value, options: dict[Value, Value] | None = None) -> Value:
    """Return the data as YAML; options: indentation, line_width, canonical, and sort_keys."""
    settings = dict(options or {})
    sort_keys = settings.pop("sort_keys", False)
    unknown = [key for key in settings if key not in ("indentation", "line_width", "canonical", "header", "version")]
    if unknown:
        raise EvaluationError(
            f"to_yaml(): unknown option {inspect(unknown[0])}", hint="Known are indentation, line_width, canonical and sort_keys."
        )
    indentation, width = _number_option(settings, "indentation"), _number_option(settings, "line_width")

    def text(unwrapped: Value) -> str:
        ordered = _sort_keys(unwrapped) if sort_keys else unwrapped
        return psych.dump(ordered, indentation=indentation, line_width=width, canonical=bool(settings.get("canonical")))

    return change_unwrapped(data, text)


def _number_option(settings: Mapping[Any, Value], name: str) -> int | None:
    number = settings.get(name)
    if number is not None and number.__class__ is not int:
        raise EvaluationError(f"to_yaml(): the option {name} must be an Integer")
    return number


def _sort_keys(value: Value) -> Value:
    if isinstance(value, list):
        return [_sort_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    except TypeError as error:
        raise EvaluationError("to_yaml(): the keys of a hash are of different types and cannot be sorted") from error


@function("stdlib::to_toml", "Hash data")
def to_toml(context: Context, data: dict[Value, Value]) -> Value:
    """Return the hash as TOML, sorted by key."""
    return change_unwrapped(data, toml.dump)


def _literal(value: Value, words: dict[object, str], arrow: str, text: Callable[[Value], str]) -> str:
    if value is None or value is True or value is False:
        return words[value]
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item, words, arrow, text) for item in value) + "]"
    if isinstance(value, dict):
        pairs = [f"{_literal(k, words, arrow, text)}{arrow}{_literal(v, words, arrow, text)}" for k, v in entries(value)]
        return "{" + ", ".join(pairs) + "}"
    return text(value)


def _plain_data(context: Context, value: Value) -> Value:
    plain: Value = encode(value, lambda message: context.log("warning", message), "the value")
    return plain


@function("stdlib::to_python", "Any object")
def to_python(context: Context, object_: Value) -> str:
    """Return the data as a literal of Python."""
    return _literal(_plain_data(context, object_), {None: "None", True: "True", False: "False"}, ": ", inspect)


@function("stdlib::to_ruby", "Any object")
def to_ruby(context: Context, object_: Value) -> str:
    """Return the data as a literal of Ruby."""
    return _literal(_plain_data(context, object_), {None: "nil", True: "true", False: "false"}, " => ", inspect)
