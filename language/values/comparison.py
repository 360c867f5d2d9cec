"""
Comparison and matching: `==`, `<`, `=~`, `in`, and the options of `case` and selectors.

Source: language reference 2.3 and 11.
"""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from shared.errors import EvaluationError
from shared.regexps import Match, Regexp

from ..errors.issues import BadOperand
from .core import DEFAULT, Binary, PuppetType, Value, value_of
from .labels import implicit_kind, label, with_article
from .numbers import Number
from .text import ascii_fold
from .times import SECOND, Time, Timespan, Timestamp
from .versions import Precedence, SemVer, SemVerRange

_TIMES = (Timespan, Timestamp)
_Comparable = TypeVar("_Comparable", float, Precedence)


def nanoseconds(value: Time | Number) -> int:
    """Return a time, or a number of seconds, in nanoseconds."""
    return value.nanoseconds if isinstance(value, Timespan | Timestamp) else int(value * SECOND)


def equals(left: Value, right: Value) -> bool:
    """Return whether `==` holds: strings are compared without regard to ASCII case, numbers by value."""
    if left.__class__ is str:
        return right.__class__ is str and (left == right or ascii_fold(left) == ascii_fold(right))
    if left.__class__ is bool or right.__class__ is bool:
        return left is right
    if left.__class__ is list:
        return right.__class__ is list and len(left) == len(right) and all(map(equals, left, right))
    if left.__class__ is dict:
        return right.__class__ is dict and len(left) == len(right) and all(equals(right.get(k), v) for k, v in left.items())
    if left.__class__ in _TIMES or right.__class__ in _TIMES:
        return _times_equal(left, right)
    if isinstance(left, PuppetType):
        # Types that accept the same values are equal, however they are written.
        return isinstance(right, PuppetType) and (left == right or (_takes(left, "==", right, right, left) and left.assignable(right)))
    return bool(left == right)


def _times_equal(left: Value, right: Value) -> bool:
    if left.__class__ is right.__class__:
        return bool(left == right)
    if {left.__class__, right.__class__} == set(_TIMES) or not (is_time_or_number(left) and is_time_or_number(right)):
        return False
    return _order_of_times(left, right) == 0


def is_time_or_number(value: Value) -> TypeGuard[Time | Number]:
    """Return whether a value is a Timespan, a Timestamp, an Integer or a Float; a bool is none of them."""
    return value.__class__ in (Timespan, Timestamp, int, float)


def compare(left: Value, right: Value) -> int:
    """
    Return -1, 0 or 1; strings are compared without regard to case.

    Raises:
        EvaluationError: the two cannot be compared; the message is the reference's reason.
    """
    if left.__class__ is str:
        if right.__class__ is not str:
            raise EvaluationError("A String is not comparable to a non String")
        one, two = ascii_fold(left), ascii_fold(right)
        return (one > two) - (one < two)
    if left.__class__ is int or left.__class__ is float:
        if right.__class__ is int or right.__class__ is float:
            return int(left > right) - int(left < right)
        if right.__class__ is not Timespan and right.__class__ is not Timestamp:
            raise EvaluationError("A Numeric is not comparable to non Numeric")
        return _order_of_times(left, right)
    if left.__class__ is Timespan or left.__class__ is Timestamp:
        if not is_time_or_number(right) or (right.__class__ in _TIMES and right.__class__ is not left.__class__):
            kind = left.__class__.__name__
            raise EvaluationError(f"{kind}s are only comparable to {kind}s, Integers, and Floats")
        return _order_of_times(left, right)
    if left.__class__ is SemVer:
        if right.__class__ is not SemVer:
            raise EvaluationError("Versions not comparable to non Versions")
        return _order(left.order, right.order)
    if left is DEFAULT:
        if right is DEFAULT:
            return 0
        raise EvaluationError("Symbol not comparable to non Symbol")
    raise EvaluationError("Only Strings, Numbers, Timespans, Timestamps, and Versions are comparable")


def _order_of_times(left: Time | Number, right: Time | Number) -> int:
    """
    Compare two times, or a time and a number: compared with an Integer a time counts whole seconds, compared with a Float it is a float.
    """
    return _order(_seconds_like(left, right), _seconds_like(right, left))


def _seconds_like(value: Time | Number, other: Time | Number) -> Number:
    """Return a number unchanged, and a time as a number of the class of `other`; compared with another time, in nanoseconds."""
    if isinstance(value, int | float):
        return value
    if other.__class__ is int:
        return int(value.nanoseconds // SECOND)
    return float(value.nanoseconds / SECOND) if other.__class__ is float else int(value.nanoseconds)


def _order(left: _Comparable, right: _Comparable) -> int:
    return int(left > right) - int(left < right)


def _compared(left: Value, operator: str, right: Value) -> int:
    try:
        return compare(left, right)
    except EvaluationError as error:
        raise BadOperand(f"Comparison of: {label(left)} {operator} {label(right)}, is not possible. Caused by '{error.message}'.") from None


def _takes(left: PuppetType, operator: str, right: PuppetType, wide: PuppetType, narrow: PuppetType) -> bool:
    """Return whether `wide` accepts `narrow`; these are the two operands, in the order that `operator` requires."""
    try:
        return wide.assignable(narrow)
    except EvaluationError as error:
        raise BadOperand(f"Comparison of: {label(left)} {operator} {label(right)}, is not possible. Caused by '{error.message}'.") from None


def less(left: Value, right: Value) -> bool:
    """Return whether `<` holds; for types, whether the left one is narrower."""
    if isinstance(left, PuppetType):
        return isinstance(right, PuppetType) and _takes(left, "<", right, right, left) and not equals(left, right)
    return _compared(left, "<", right) < 0


def less_equal(left: Value, right: Value) -> bool:
    if isinstance(left, PuppetType):
        return isinstance(right, PuppetType) and _takes(left, "<=", right, right, left)
    return _compared(left, "<=", right) <= 0


def greater(left: Value, right: Value) -> bool:
    if isinstance(left, PuppetType):
        return isinstance(right, PuppetType) and _takes(left, ">", right, left, right) and not equals(left, right)
    return _compared(left, ">", right) > 0


def greater_equal(left: Value, right: Value) -> bool:
    if isinstance(left, PuppetType):
        return isinstance(right, PuppetType) and _takes(left, ">=", right, left, right)
    return _compared(left, ">=", right) >= 0


# --- matching -----------------------------------------------------------------------------------------------------


def match(left: Value, right: Value) -> Match | bool:
    """
    Return the value of `=~`: a Match when the right side is a regular expression that matched, else whether the sides match.

    `!~` is `not match(…)`; it, too, sets the match variables when the expression matches.
    """
    if isinstance(right, PuppetType):
        return right.instance(left)
    if right.__class__ is SemVerRange:
        return _in_versions(right, left)
    if right.__class__ is not Regexp:
        if right.__class__ is not str:
            reason = f"no implicit conversion of {implicit_kind(right)} into String"
            raise BadOperand(f"Can not convert right match operand to a regular expression. Caused by '{reason}'.", 1)
        right = Regexp(right)
        try:
            _ = right.pattern
        except EvaluationError as error:
            raise BadOperand(f"Can not convert right match operand to a regular expression. Caused by '{error.message}'.", 1) from None
    if left.__class__ is not str:
        raise BadOperand(f"Left match operand must result in a String value. Got {with_article(label(left))}.", 0)
    return right.search(left) or False


def _in_versions(range_: SemVerRange, value: Value) -> bool:
    if value.__class__ is str:
        try:
            value = SemVer.parse(value)
        except EvaluationError:
            return False
    return value.__class__ is SemVer and value in range_


def contains(left: Value, right: Value) -> Match | bool:
    """Return whether `left in right` holds; a Match when `left` is a regular expression that matched."""
    if right.__class__ is str:
        if left.__class__ is str:
            return left.lower() in right.lower()
        return left.search(right) or False if left.__class__ is Regexp else False
    if right.__class__ is dict:
        return contains(left, [value_of(k) for k in right])
    if right.__class__ is list:
        return _in_array(left, right)
    if right.__class__ is SemVerRange:
        return _in_versions(right, left)
    if right.__class__ is Binary:
        if left.__class__ is Binary:
            return left.data in right.data
        return _in_octets(left, right.data)
    return False


def _in_octets(left: Value, octets: bytes) -> bool:
    """Return whether a text, or a number that is an octet, is in binary data."""
    if left.__class__ is str:
        return left.encode() in octets
    return (left.__class__ is int or left.__class__ is float) and left in range(256) and int(left) in octets


def _in_array(left: Value, right: list[Value]) -> Match | bool:
    if left.__class__ is Regexp:
        search = left.search
        return next((result for item in right if item.__class__ is str and (result := search(item))), False)
    if left.__class__ is str:
        folded = ascii_fold(left)
        return any(
            ascii_fold(item) == folded if item.__class__ is str else item.__class__ is not int and bool(matches(left, item))
            for item in right
        )
    if left.__class__ is SemVer:
        return any(bool(matches(left, item)) for item in right)
    if isinstance(left, PuppetType):
        return any(left.instance(item) for item in right)
    return any(equals(item, left) for item in right)


def matches(value: Value, option: Value) -> Match | bool:
    """Return whether an option of a `case` or selector selects `value`; a Match when the option is a regular expression that matched."""
    if option.__class__ is str:
        return value.__class__ is str and (value == option or ascii_fold(value) == ascii_fold(option))
    if option.__class__ is Regexp:
        return option.search(value) or False if value.__class__ is str else False
    if isinstance(option, PuppetType):
        return equals(value, option) if option.is_selected_by_equality else option.instance(value)
    if option.__class__ is list:
        return value.__class__ is list and len(value) == len(option) and all(map(matches, value, option))
    if option.__class__ is dict:
        return value.__class__ is dict and all(matches(value.get(key), inner) for key, inner in option.items())
    if option.__class__ is SemVerRange:
        return _in_versions(option, value)
    if option.__class__ is SemVer:
        if value.__class__ is str:
            try:
                value = SemVer.parse(value)
            except EvaluationError:
                return False
        return bool(option == value)
    if option is DEFAULT:
        return True
    return equals(value, option)
