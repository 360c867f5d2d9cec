"""keys, values, dig, get, getvar: into hashes and arrays."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ..types.builtin import ERROR
from ..types.infer import infer
from ..values.core import Value, key_of, value_of
from ..values.text import inspect
from .api import Closure, Context, function


@function("keys", "Hash hsh")
def keys(context: Context, hsh: Value) -> list[Value]:
    """The keys, in order."""
    return [value_of(key) for key in hsh]


@function("values", "Hash hsh")
def values(context: Context, hsh: Value) -> list[Value]:
    """The values, in order."""
    return list(hsh.values())


class DigError(EvaluationError):
    """A path that leads into a value that has no parts; `details` is what an Error object of the language would hold."""

    def __init__(self, message: str, issue_code: str, details: dict[str, Value]) -> None:
        super().__init__(message)
        self.issue_code = issue_code
        self.details = details

    def as_value(self) -> Value:
        return ERROR.new({"msg": self.message, "kind": "SLICE_ERROR", "issue_code": self.issue_code, "details": self.details})


def dug(data: Value, path: tuple[Value, ...] | list[Value]) -> Value:
    """What `path` leads to, undef where it ends early; DigError where it cannot go on."""
    walked: list[Value] = []
    for key in path:
        if data is None or key is None:
            return None
        if data.__class__ is dict:
            walked.append(key)
            data = data.get(key_of(key))
            continue
        if data.__class__ is not list:
            type_ = infer(data)
            raise DigError(
                f"The given data does not contain a Collection at {inspect(walked)}, got '{type_}'",
                "EXPECTED_COLLECTION",
                {"walked_path": walked, "value_type": type_},
            )
        walked.append(key)
        if key.__class__ is not int:
            type_ = infer(key)
            raise DigError(
                f"The given data requires an Integer index at {inspect(walked)}, got '{type_}'",
                "EXPECTED_INTEGER_INDEX",
                {"walked_path": walked, "index_type": type_},
            )
        data = data[key] if -len(data) <= key < len(data) else None
    return data


@function("dig", "Optional[Collection] data", "Any arg*")
def dig(context: Context, data: Value, *arg: Value) -> Value:
    """The value that keys and indexes lead to; undef where there is none."""
    return dug(data, arg)


@function("get", "Any value", "String dotted_string", "Any default_value?", "Callable[1,1] &block?")
def get(context: Context, value: Value, dotted_string: str, default_value: Value = None, *, block: Closure | None = None) -> Value:
    """The value that `a.0."x.y"` leads to, or the default; a lambda gets the error when it cannot be followed."""
    return _navigated(context, value, dotted_string, default_value, block)


def _navigated(context: Context, value: Value, navigation: str, default: Value, block: Closure | None) -> Value:
    if value is None:
        return default
    if not navigation:
        return value
    try:
        if value.__class__ not in (dict, list):
            dig.call(context, [value, *segments(navigation)])  # tells that it is no collection
        found = dug(value, segments(navigation))
    except DigError as error:
        if block is None:
            raise
        return block(error.as_value())
    return default if found is None else found


_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_SEGMENT: Final = re.compile(r"""[^"'.]+|"([^"]+)"|'([^']+)'""")


def segments(navigation: str) -> list[str | int]:
    """`a.0."x.y"` as `['a', 0, 'x.y']`; EvaluationError when it is malformed."""
    found: list[str | int] = []
    at = 0
    while True:
        part = _SEGMENT.match(navigation, at)
        if not part:
            raise EvaluationError("Syntax error in dotted-navigation string")
        quoted, plain = part[1] or part[2], part[0].strip()
        found.append(quoted if quoted is not None else int(plain) if _INDEX.fullmatch(plain) else plain)
        at = part.end()
        if at == len(navigation):
            return found
        if navigation[at] != ".":
            raise EvaluationError("Syntax error in dotted-navigation string")
        at += 1


@function(
    "getvar",
    r"Pattern[/\A(?:::)?(?:[a-z]\w*::)*[a-z_]\w*(?:\.|\Z)/] get_string",
    "Any default_value?",
    "Callable[1,1] &block?",
)
def getvar(context: Context, get_string: str, default_value: Value = None, *, block: Closure | None = None) -> Value:
    """The value that `variable.a.0` leads to, or the default."""
    name, _, navigation = get_string.partition(".")
    try:
        value = context.variable(name)
    except KeyError:
        return default_value
    return _navigated(context, value, navigation, default_value, block)


@getvar.mismatch("String get_string", "Any default_value?", "Callable &block?")
def getvar_error(context: Context, get_string: str, default_value: Value = None, *, block: Closure | None = None) -> str:
    return "The given string does not start with a valid variable name"
