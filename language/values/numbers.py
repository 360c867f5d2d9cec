"""Conversion of strings to numbers, as arithmetic and indexes do it. Source: language reference 9.1."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from .core import Value
from .digits import parse_integer

Number: TypeAlias = int | float
"""An Integer or a Float; never a bool, although Python counts those among the integers."""

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

_BLANK = r"[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]*"
_NUMERIC = re.compile(rf"{_BLANK}([-+]?){_BLANK}(?:(0[xX][0-9A-Fa-f]+)|(0?\d+)((?:\.\d+)?(?:[eE]-?\d+)?)){_BLANK}", re.ASCII)


def to_number(value: Value) -> Number | None:
    """Return `value` as a number when it is a number or a string that holds one; else None."""
    if value.__class__ is int or value.__class__ is float:
        return value
    if value.__class__ is not str:
        return None
    match = _NUMERIC.fullmatch(value.removeprefix("::"))
    if not match:
        return None
    sign, hexadecimal, digits, rest = match.groups()
    number: Number
    if hexadecimal:
        number = parse_integer(hexadecimal, 16)
    elif rest:
        if _is_octal_zero(digits, rest):
            return None
        number = float(digits + rest)
        if math.isinf(number):
            return None
    elif len(digits) > 1 and digits[0] == "0":
        if "8" in digits or "9" in digits:
            return None
        number = parse_integer(digits, 8)
    else:
        number = parse_integer(digits)
    return -number if sign == "-" else number


def _is_octal_zero(digits: str, rest: str) -> bool:
    """Return whether the text is like `0.0e5` or `09.5`, which the reference refuses."""
    if len(digits) > 1 and digits[0] == "0" and ("8" in digits or "9" in digits):
        return True
    return not digits.strip("0") and re.fullmatch(r"\.?0*[eE].*", rest) is not None
