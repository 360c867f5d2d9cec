"""clamp, convert_base, to_bytes; and numbers in strings as Ruby's lenient conversions read them, at the start of the text."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ...types.notation.operands import flatten_arrays
from ...values.core import Value
from ...values.digits import parse_integer
from ...values.labels import ruby_class
from ...values.text import inspect
from ..api import Context, legacy_function, require_count

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_UNITS: Final = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


@legacy_function("clamp", -2)
def clamp(context: Context, *arguments: Value) -> int:
    """Return the middle one of three numbers as an integer: a value limited to two bounds."""
    values = list(flatten_arrays(arguments))
    if len(values) != 3:
        raise EvaluationError("clamp(): Wrong number of arguments, need three to clamp")
    for value in values:
        if isinstance(value, str) and re.search(r"^\d+$", value, re.MULTILINE | re.ASCII) is None:
            raise EvaluationError(f"clamp(): Required explicit numeric ({value}:String)")
        if isinstance(value, dict):
            raise EvaluationError(f"clamp(): The Hash type is not allowed ({inspect(value)})")
    return sorted(integer_at_start(value) for value in values)[1]


@legacy_function("convert_base", 2)
def convert_base(context: Context, number: Value, base: Value) -> str:
    """Return a number of base 10 in another base, 2 to 36."""
    for which, value in (("First", number), ("Second", base)):
        if not isinstance(value, str) and value.__class__ is not int:
            raise EvaluationError(f"convert_base(): {which} argument must be either a string or an integer")
    for value in (number, base):
        if isinstance(value, str) and re.search(r"^[0-9]+$", value, re.MULTILINE) is None:
            raise EvaluationError("convert_base(): First argument must be an integer or a string corresponding to an integer in base 10")
    radix = integer_at_start(base)
    if not 2 <= radix <= 36:
        raise EvaluationError("convert_base(): base must be at least 2 and must not be greater than 36")
    return _in_base(integer_at_start(number), radix)


def _in_base(number: int, base: int) -> str:
    rest, digits = abs(number), []
    while rest:
        rest, digit = divmod(rest, base)
        digits.append(_DIGITS[digit])
    return ("-" if number < 0 else "") + ("".join(reversed(digits)) or "0")


@legacy_function("to_bytes", -1)
def to_bytes(context: Context, *arguments: Value) -> Value:
    """Return a size such as '4 kB' in bytes; the units are powers of 1024."""
    require_count("to_bytes", arguments, 1, 1)
    size = arguments[0]
    if isinstance(size, int | float) and not isinstance(size, bool):
        return size
    if not isinstance(size, str):
        raise EvaluationError(f"to_bytes(): Requires a string or a number, got {ruby_class(size)}")
    match = re.search(r"([0-9.e+-]*)\s*([^bB]?)", size)
    assert match is not None
    if match[2] not in _UNITS:
        raise EvaluationError(f"to_bytes(): Unknown prefix {match[2]}")
    power = 10 * _UNITS[match[2]]
    digits = match[1]
    if digits.isdigit():
        return parse_integer(digits) << power
    value = float_at_start(digits) * (1 << power)
    if value in (float("inf"), float("-inf")):
        raise EvaluationError(f"to_bytes(): {digits} is too large")
    return int(value)


_INTEGER: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*)", re.ASCII)
_FLOAT: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+)?)", re.ASCII)


def integer_at_start(value: Value) -> int:
    """Return the result of Ruby's `to_i`; raise EvaluationError for a value without this method."""
    if value.__class__ is int:
        return int(value)
    if isinstance(value, float):
        return _truncate(value)
    if value is None:
        return 0
    if isinstance(value, str):
        match = _INTEGER.match(value)
        return parse_integer(match[1].replace("_", "")) if match else 0
    raise EvaluationError(f"{ruby_class(value)} cannot be converted to an integer")


def float_at_start(text: str) -> float:
    """Return the result of Ruby's `to_f` for a string."""
    match = _FLOAT.match(text)
    return float(match[1].replace("_", "")) if match else 0.0


def _truncate(value: float) -> int:
    try:
        return int(value)
    except (OverflowError, ValueError) as error:
        raise EvaluationError(f"{value} cannot be converted to an integer") from error
