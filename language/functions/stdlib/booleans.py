"""Conversions from and to booleans: str2bool, num2bool, any2bool, bool2str, bool2num, bool2httpd."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ...callables.sprintf import to_float
from ...values.core import Value
from ...values.text import inspect
from ..api import Context, legacy_function, require_count
from ..strings import ruby_text
from .numbers import integer_at_start

_TRUE: Final = re.compile(r"^(1|t|y|true|yes)$", re.IGNORECASE | re.MULTILINE)
_FALSE: Final = re.compile(r"^(0|f|n|false|no)$", re.IGNORECASE | re.MULTILINE)
_EMPTY_LINE: Final = re.compile(r"\A$|^\n", re.MULTILINE)
"""A line without text; the text after the last line break is no line."""
_NOTHING: Final = re.compile(r"^(undef|undefined)$", re.MULTILINE)


def parse_boolean(value: Value) -> bool:
    """Return the boolean that a string such as yes or no names, false for ''; booleans are returned as they are."""
    if value is True or value is False:
        return bool(value)
    if not isinstance(value, str):
        raise EvaluationError("str2bool(): Requires string to work with")
    if _EMPTY_LINE.search(value):
        return False
    if _TRUE.search(value):
        return True
    if _FALSE.search(value) or _NOTHING.search(value):
        return False
    raise EvaluationError("str2bool(): Unknown type of boolean given")


def is_float_text(value: Value) -> bool:
    try:
        to_float(value)
    except EvaluationError:
        return False
    return True


def is_positive(value: Value) -> bool:
    """Return whether a number, or the number in a string, is 1 or more."""
    if isinstance(value, str):
        try:
            value = to_float(value)
        except EvaluationError as error:
            raise EvaluationError(
                f"num2bool(): '{value}' does not look like a number: invalid value for Float(): {inspect(value)}"
            ) from error
    elif not isinstance(value, int | float) or isinstance(value, bool):
        value = ruby_text(value)
    return integer_at_start(value) > 0


@legacy_function("str2bool", -1)
def str2bool(context: Context, *arguments: Value) -> bool:
    """Return the boolean that a string names: 1 t y true yes, and 0 f n false no, in any case; booleans as they are."""
    require_count("str2bool", arguments, 1)
    return parse_boolean(arguments[0])


@legacy_function("num2bool", -1)
def num2bool(context: Context, *arguments: Value) -> bool:
    """Return whether a number, or the number in a string, is 1 or more."""
    require_count("num2bool", arguments, 1, 1)
    return is_positive(arguments[0])


@legacy_function("any2bool", -1)
def any2bool(context: Context, *arguments: Value) -> bool:
    """Return booleans as they are, numbers as num2bool converts them, strings as str2bool does; true for everything else."""
    require_count("any2bool", arguments, 1)
    value = arguments[0]
    if value is True or value is False:
        return bool(value)
    if isinstance(value, int | float):
        return is_positive(value)
    if isinstance(value, str):
        return is_positive(value) if is_float_text(value) else parse_boolean(value)
    return True


@legacy_function("bool2num", -1)
def bool2num(context: Context, *arguments: Value) -> int:
    """Return 1 or 0 for a boolean, or for a string that str2bool converts."""
    require_count("bool2num", arguments, 1)
    return 1 if parse_boolean(arguments[0]) else 0


@legacy_function("bool2str", -1)
def bool2str(context: Context, *arguments: Value) -> str:
    """Return 'true' or 'false', or the second or third argument, for a boolean."""
    if len(arguments) not in (1, 3):
        raise EvaluationError(f"bool2str(): Wrong number of arguments given ({len(arguments)} for 3)")
    value, yes, no = (*arguments, False, False)[:3] if len(arguments) == 1 else arguments
    if value is not True and value is not False:
        raise EvaluationError("bool2str(): Requires a boolean to work with")
    yes, no = ("true" if yes is False else yes), ("false" if no is False else no)
    if not isinstance(yes, str) or not isinstance(no, str):
        raise EvaluationError("bool2str(): Requires strings to convert to")
    return yes if value else no


@legacy_function("bool2httpd", -1)
def bool2httpd(context: Context, *arguments: Value) -> str:
    """Return 'On' or 'Off' for a boolean, 'Off' for '' and 'undef'; any other value as text."""
    require_count("bool2httpd", arguments, 1, 1)
    value = arguments[0]
    if value is False or value in ("undef", ""):
        return "Off"
    return "On" if value is True else ruby_text(value)
