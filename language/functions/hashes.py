"""keys, values, dig, get, getvar: access to hashes and arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from shared.errors import EvaluationError

from ..types.builtin import ERROR
from ..types.inference.infer import infer
from ..values.core import Key, Value, key_of, value_of
from ..values.text import inspect
from .api import Closure, Context, function


@function("keys", "Hash hsh")
def keys(context: Context, hsh: dict[Key, Value]) -> list[Value]:
    """Return the keys in their order."""
    return [value_of(key) for key in hsh]


@function("values", "Hash hsh")
def values(context: Context, hsh: dict[Key, Value]) -> list[Value]:
    """Return the values in the order of their keys."""
    return list(hsh.values())


class DigError(EvaluationError):
    """A path leads into a value that is not a collection; `details` are those of an Error object of the language."""

    def __init__(self, problem: str, walked_path: list[Value], value: Value, issue_code: str, key: str) -> None:
        type_ = infer(value)
        super().__init__(f"The given data {problem} at {inspect(walked_path)}, got '{type_}'")
        self.issue_code = issue_code
        self.details: dict[str, Value] = {"walked_path": walked_path, key: type_}

    def as_value(self) -> Value:
        return ERROR.new({"msg": self.message, "kind": "SLICE_ERROR", "issue_code": self.issue_code, "details": self.details})


def dig_path(data: Value, path: Sequence[Value]) -> Value:
    """Return the value at a path, undef when it ends early; raise DigError when the path leads into a value that is not a collection."""
    walked_path: list[Value] = []
    for key in path:
        if data is None or key is None:
            return None
        if data.__class__ is dict:
            walked_path.append(key)
            data = data.get(key_of(key))
            continue
        if data.__class__ is not list:
            raise DigError("does not contain a Collection", walked_path, data, "EXPECTED_COLLECTION", "value_type")
        walked_path.append(key)
        if key.__class__ is not int:
            raise DigError("requires an Integer index", walked_path, key, "EXPECTED_INTEGER_INDEX", "index_type")
        data = data[key] if -len(data) <= key < len(data) else None
    return data


@function("dig", "Optional[Collection] data", "Any arg*")
def dig(context: Context, data: Value, *arg: Value) -> Value:
    """Return the value that keys and indexes lead to; undef when there is none."""
    return dig_path(data, arg)


@function("get", "Any value", "String dotted_string", "Any default_value?", "Callable[1,1] &block?")
def get(context: Context, value: Value, dotted_string: str, default_value: Value = None, *, block: Closure | None = None) -> Value:
    """Return the value that `a.0."x.y"` leads to, or the default; a lambda is called with the error when the path cannot be followed."""
    return _navigate(context, value, dotted_string, default_value, block)


def _navigate(context: Context, value: Value, navigation: str, default: Value, block: Closure | None) -> Value:
    if value is None:
        return default
    if not navigation:
        return value
    try:
        if value.__class__ not in (dict, list):
            dig.call(context, [value, *split_navigation(navigation)])  # raises: it is no collection
        element = dig_path(value, split_navigation(navigation))
    except DigError as error:
        if block is None:
            raise
        return block(error.as_value())
    return default if element is None else element


_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_SEGMENT: Final = re.compile(r"""[^"'.]+|"([^"]+)"|'([^']+)'""")


def split_navigation(navigation: str) -> list[str | int]:
    """Return the segments of a path, for `a.0."x.y"` `['a', 0, 'x.y']`; raise EvaluationError when it is malformed."""
    segments: list[str | int] = []
    offset = 0
    while True:
        part = _SEGMENT.match(navigation, offset)
        if not part:
            raise EvaluationError("Syntax error in dotted-navigation string")
        quoted, unquoted = part[1] or part[2], part[0].strip()
        segments.append(quoted if quoted is not None else int(unquoted) if _INDEX.fullmatch(unquoted) else unquoted)
        offset = part.end()
        if offset == len(navigation):
            return segments
        if navigation[offset] != ".":
            raise EvaluationError("Syntax error in dotted-navigation string")
        offset += 1


@function(
    "getvar",
    r"Pattern[/\A(?:::)?(?:[a-z]\w*::)*[a-z_]\w*(?:\.|\Z)/] get_string",
    "Any default_value?",
    "Callable[1,1] &block?",
)
def getvar(context: Context, get_string: str, default_value: Value = None, *, block: Closure | None = None) -> Value:
    """Return the value that `variable.a.0` leads to, or the default."""
    name, _, navigation = get_string.partition(".")
    try:
        value = context.variable(name)
    except KeyError:
        return default_value
    return _navigate(context, value, navigation, default_value, block)


@getvar.mismatch("String get_string", "Any default_value?", "Callable &block?")
def getvar_error(context: Context, get_string: str, default_value: Value = None, *, block: Closure | None = None) -> str:
    return "The given string does not start with a valid variable name"
