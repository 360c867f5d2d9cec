"""abs, ceiling, floor, round; compare."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress

from shared.errors import EvaluationError

from ..values.comparison import compare as compare_values
from ..values.core import Value
from ..values.labels import label
from .api import Context, function


def _warn_of_coercion(context: Context, name: str, kind: str) -> None:
    context.warn_once(
        "deprecations",
        f"{name}_function_numeric_coerce_string",
        f"The {name}() function's auto conversion of String to {kind} is deprecated - change to convert input before calling",
    )


@function("abs", "Numeric val")
def abs_(context: Context, val: float) -> float:
    """Return the number without its sign."""
    return abs(val)


@abs_.also("String val")
def abs_string(context: Context, val: str) -> float:
    _warn_of_coercion(context, "abs", "Numeric")
    if re.search(r"^-?\d+\.\d+$", val, re.MULTILINE | re.ASCII):
        return abs(float(val))
    if re.search(r"^-?\d+$", val, re.MULTILINE | re.ASCII):
        return abs(int(val))
    raise EvaluationError("abs(): Requires float or integer to work with - was given non decimal string")


def _strict_float(name: str, text: str) -> float:
    """Return the number that Ruby's strict Float() reads: decimal, with underscores between digits, or hexadecimal."""
    stripped = text.strip()
    with suppress(ValueError):
        if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+", stripped):
            return float(int(stripped, 16))
        if re.fullmatch(r"[+-]?\d+(_\d+)*(\.\d+(_\d+)*)?([eE][+-]?\d+)?", stripped, re.ASCII):
            return float(stripped)
    raise EvaluationError(f"{name}(): cannot convert given value to a floating point value.")


@function("ceiling", "Numeric val")
def ceiling(context: Context, val: float) -> int:
    """Return the smallest integer that is not below the number."""
    return _to_integer(val, math.ceil)


@ceiling.also("String val")
def ceiling_string(context: Context, val: str) -> int:
    _warn_of_coercion(context, "ceiling", "Float")
    return math.ceil(_strict_float("ceiling", val))


@function("floor", "Numeric val")
def floor(context: Context, val: float) -> int:
    """Return the largest integer that is not above the number."""
    return _to_integer(val, math.floor)


@floor.also("String val")
def floor_string(context: Context, val: str) -> int:
    _warn_of_coercion(context, "floor", "Float")
    return math.floor(_strict_float("floor", val))


def _to_integer(value: float, rounding: Callable[[float], int]) -> int:
    if not math.isfinite(value):
        raise EvaluationError("NaN" if value != value else "Infinity")
    return rounding(value)


@function("round", "Numeric val")
def round_(context: Context, val: float) -> int:
    """Return the nearest integer; halves are rounded away from zero."""
    if isinstance(val, int):
        return val
    return _to_integer(val + 0.5 if val > 0 else val - 0.5, math.trunc)


_TIMES = ("Variant[Timespan, Timestamp] b", "Variant[Timestamp, Numeric] b", "Variant[Timespan, Numeric] b")


@function("compare", "Numeric a", "Numeric b")
def compare(context: Context, a: Value, b: Value) -> int:
    """Return -1, 0 or 1 for two values of the same kind. Case counts only when the third argument is false."""
    return compare_values(a, b)


@compare.also("String a", "String b", "Boolean ignore_case?")
def compare_strings(context: Context, a: str, b: str, ignore_case: bool = True) -> int:
    return compare_values(a, b) if ignore_case else (a > b) - (a < b)


compare.also("SemVer a", "SemVer b")(lambda context, a, b: compare_values(a, b))
compare.also("Numeric a", _TIMES[0])(lambda context, a, b: compare_values(a, b))
compare.also("Timestamp a", _TIMES[1])(lambda context, a, b: compare_values(a, b))
compare.also("Timespan a", _TIMES[2])(lambda context, a, b: compare_values(a, b))

_COMPARABLE = "Variant[String, SemVer, Numeric, Timespan, Timestamp]"


@compare.mismatch(f"{_COMPARABLE} a", f"{_COMPARABLE} b", "Any ignore_case*")
def compare_error(context: Context, a: Value, b: Value, *ignore_case: Value) -> str:
    if ignore_case:
        if not (isinstance(a, str) and isinstance(b, str)):
            return "compare(): The third argument (ignore case) can only be used when comparing strings"
        if len(ignore_case) != 1:
            return f"compare(): Accepts at most 3 arguments, got {2 + len(ignore_case)}"
        return f"compare(): The third argument (ignore case) must be a Boolean. Got {label(ignore_case[0])}"
    return (
        "compare(): Can only compare values of the same type (or for Timestamp/Timespan also against Numeric). "
        f"Got {label(a)} and {label(b)}"
    )


@compare.mismatch("Any a", "Any b", "Any ignore_case*")
def not_comparable(context: Context, a: Value, b: Value, *ignore_case: Value) -> str:
    return (
        "compare(): Non comparable type. Only values of the types Numeric, String, Semver, Timestamp and Timestamp can be compared. "
        f"Got {label(a)} and {label(b)}"
    )
