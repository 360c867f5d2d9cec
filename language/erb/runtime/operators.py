"""Ruby's operators, and its methods of numbers."""

from __future__ import annotations

from ..errors import Doubt, RubyError
from . import texts
from .collections import MAX_SIZE, join, unique
from .values import (
    Pattern,
    RubyClass,
    RubyRange,
    RubySymbol,
    Value,
    as_long,
    class_name,
    equal,
    identity,
    inspect,
    missing_method,
    spaceship,
    symbol,
)

MAX_SYMBOL = 50
"""Characters of a symbol that is made of a string."""


# --- operators ----------------------------------------------------------------------------------------------------


def add(left: Value, right: Value) -> Value:
    if left.__class__ is str:
        texts.string("+", left)
        return left + texts.text_argument(right)
    if left.__class__ in (int, float):
        if right.__class__ in (int, float):
            return as_long(left + right)
        raise _no_number(right, left)
    if left.__class__ is list:
        if right.__class__ is not list:
            raise Doubt("Array#+")
        return left + right
    raise missing_method("+", left)


def _no_number(right: Value, left: Value) -> Exception:
    if right is None or right.__class__ is str or right.__class__ is bool:
        what = "nil" if right is None else "String" if right.__class__ is str else str(right).lower()
        return RubyError(f"{what} can't be coerced into {class_name(left)}")
    return Doubt("arithmetic")


def subtract(left: Value, right: Value) -> Value:
    if left.__class__ in (int, float):
        if right.__class__ in (int, float):
            return as_long(left - right)
        raise _no_number(right, left)
    if left.__class__ is list and right.__class__ is list:
        removed = {identity(item) for item in right}
        return [item for item in left if identity(item) not in removed]
    raise missing_method("-", left)


def multiply(left: Value, right: Value) -> Value:
    if left.__class__ in (int, float):
        if right.__class__ in (int, float):
            return as_long(left * right)
        raise _no_number(right, left)
    if left.__class__ in (str, list) and right.__class__ is int and right >= 0 and len(left) * right <= MAX_SIZE:
        if left.__class__ is str:
            texts.string("*", left)
        return left * right
    if left.__class__ is list and right.__class__ is str:
        return join(left, right)
    raise missing_method("*", left)


def divide(left: Value, right: Value) -> Value:
    if left.__class__ in (int, float) and right.__class__ in (int, float):
        if left.__class__ is int and right.__class__ is int:
            if right == 0:
                raise RubyError("divided by 0")
            return as_long(left // right)
        if right == 0:
            raise Doubt("a division by zero")
        return left / right
    if left.__class__ in (int, float):
        raise _no_number(right, left)
    raise missing_method("/", left)


def modulo(left: Value, right: Value) -> Value:
    if left.__class__ is str:
        return texts.format_text(left, *(right if right.__class__ is list else [right]))
    if left.__class__ is int and right.__class__ is int:
        if right == 0:
            raise RubyError("divided by 0")
        return left % right
    raise missing_method("%", left)


def _ordered(name: str, left: Value, right: Value) -> int:
    if left.__class__ not in (int, float, str):
        raise missing_method(name, left)
    result = spaceship(left, right)
    if result is None:
        what = "nil" if right is None else inspect(right) if right.__class__ in (int, float, bool) else class_name(right)
        raise RubyError(f"comparison of {class_name(left)} with {what} failed")
    return result


def less(left: Value, right: Value) -> bool:
    return _ordered("<", left, right) < 0


def less_or_equal(left: Value, right: Value) -> bool:
    return _ordered("<=", left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return _ordered(">", left, right) > 0


def greater_or_equal(left: Value, right: Value) -> bool:
    return _ordered(">=", left, right) >= 0


def intersection(left: Value, right: Value) -> Value:
    if left.__class__ is not list or right.__class__ is not list:
        raise Doubt("&")
    both = {identity(item) for item in right}
    return unique([item for item in left if identity(item) in both])


def union(left: Value, right: Value) -> Value:
    if left.__class__ is not list or right.__class__ is not list:
        raise Doubt("|")
    return unique(left + right)


def case_equal(pattern: Value, value: Value) -> bool:
    """`===` of a value that is not a class."""
    if pattern.__class__ is RubyClass:
        raise Doubt("a class as a value in a case")
    if pattern.__class__ is Pattern:
        if value.__class__ is RubySymbol:
            value = value.name
        return value.__class__ is str and pattern.search(value) is not None
    if pattern.__class__ is RubyRange:
        return value.__class__ is int and value in pattern.items()
    return equal(pattern, value)


# --- numbers ------------------------------------------------------------------------------------------------------


def integer(name: str, value: Value) -> int:
    if value.__class__ is not int:
        raise missing_method(name, value)
    return value


def to_i(value: Value) -> int:
    if value.__class__ is int:
        return value
    if value.__class__ is str:
        return texts.leading_integer(value)
    if value is None:
        return 0
    if value.__class__ is float and abs(value) < 2**53:
        return int(value)
    raise missing_method("to_i", value)


def to_f(value: Value) -> float:
    if value.__class__ is float or (value.__class__ is int and abs(value) < 2**53):
        return float(value)
    if value.__class__ is str:
        return texts.leading_float(value)
    if value is None:
        return 0.0
    raise missing_method("to_f", value)


def to_sym(value: Value) -> RubySymbol:
    if value.__class__ is RubySymbol:
        return value
    name = texts.ascii_string("to_sym", value)
    if len(name) > MAX_SYMBOL:
        raise Doubt("a long symbol")
    return symbol(name)


def rounded(value: Value) -> int:
    if value.__class__ is float and abs(value) < 2**51 and value * 2 % 1:
        return int(value + (0.5 if value >= 0 else -0.5))
    return integer("round", value)


def absolute(value: Value) -> Value:
    return abs(value) if value.__class__ in (int, float) else abs(integer("abs", value))


def duplicate(value: Value) -> Value:
    """`dup`, only for values that can be changed here."""
    class_name(value)
    return list(value) if value.__class__ is list else dict(value) if value.__class__ is dict else value
