"""
The operators on values: arithmetic and access; `values.comparison` has comparison and matching.

Each operator takes values and, where strings are converted to numbers, a Reporter, whose `strict` decides whether that is silent, a
warning or an error. `match` and `contains` return the match that sets `$0`, `$1`, … when a regular expression matched. Errors have no
place; `BadOperand.operand` is the number of the operand that they are about, and their message is complete. The message of any other
EvaluationError is shown behind "Error while evaluating a '+' expression, ".
Source: language reference 2 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from shared.errors import EvaluationError

from ..errors.issues import BadOperand
from ..types.inference.infer import infer
from ..types.notation.access import type_from_access
from ..types.notation.operands import flatten_arrays
from ..values.comparison import nanoseconds
from ..values.core import DEFAULT, Binary, Deferred, Iterator, PuppetType, Reporter, Value, entries, is_same, key_of
from ..values.labels import label, with_article
from ..values.numbers import MAX_INTEGER, MIN_INTEGER, Number, to_number
from ..values.text import inspect_bare, to_s
from ..values.times import SECOND, Time, Timespan, Timestamp
from ..values.uris import URI

_TIMES: Final = (Timespan, Timestamp)


# --- arithmetic ---------------------------------------------------------------------------------------------------


def numeric(value: Value, reporter: Reporter, operand: int | None = None) -> Number | Time:
    """Return `value` as a number or a time; strings are converted, which is reported."""
    if value.__class__ is int or value.__class__ is float or value.__class__ is Timespan or value.__class__ is Timestamp:
        return value
    number = to_number(value)
    if number is None:
        raise BadOperand(f"The value '{inspect_bare(value)}' cannot be converted to Numeric.", operand)
    _lenient(reporter, f"The string '{value}' was automatically coerced to the numerical value {to_s(number)}", operand)
    return number


def _lenient(reporter: Reporter, message: str, operand: int | None) -> None:
    reporter.operand = operand
    try:
        reporter.lenient(message)
    except EvaluationError as error:
        raise BadOperand(error.message, operand, hint=error.hint) from None


def _in_range(result: Number, operator: str) -> Number:
    if isinstance(result, int):
        if not MIN_INTEGER <= result <= MAX_INTEGER:
            side, sign = ("max", "+") if result > 0 else ("min", "-")
            raise BadOperand(
                f"A '{operator}' expression resulted in a value outside of Puppet Integer {side} range, got '{sign}0x{abs(result):x}'"
            )
    elif math.isinf(result):
        raise BadOperand(f"The result of the {operator} expression is Infinity", 0)
    return result


def _not_applicable(operator: str, left: Value) -> BadOperand:
    return BadOperand(f"Operator '{operator}' is not applicable to {with_article(label(left))}.", 0)


def _not_applicable_when(operator: str, left: Value, right: Value) -> BadOperand:
    return BadOperand(
        f"Operator '{operator}' is not applicable to {with_article(label(left))} when right side is {with_article(label(right))}.", 0
    )


def plus(left: Value, right: Value, reporter: Reporter) -> Value:
    if (left.__class__ is int or left.__class__ is float) and (right.__class__ is int or right.__class__ is float):
        return _in_range(left + right, "+")
    if left.__class__ is list or left.__class__ is dict or left.__class__ is URI or left.__class__ is Binary:
        return concatenated(left, right)
    one, two = numeric(left, reporter, 0), numeric(right, reporter, 1)
    if isinstance(one, _TIMES) or isinstance(two, _TIMES):
        return _time_plus(one, two)
    return _in_range(one + two, "+")


def concatenated(left: list[Any] | dict[Any, Any] | URI | Binary, right: Value) -> Value:
    """Return two collections joined; of hashes, the values of the right one win."""
    if left.__class__ is list:
        if right.__class__ is list:
            return left + right
        return left + ([[k, v] for k, v in entries(right)] if right.__class__ is dict else [right])
    if left.__class__ is dict:
        if right.__class__ is dict:
            return {**left, **right}
        if right.__class__ is list:
            return {**left, **hash_of(right)}
        raise EvaluationError("Can only append Array or Hash to a Hash")
    if left.__class__ is URI:
        if right.__class__ is str:
            return left.join(URI.parse(right))
        if right.__class__ is URI:
            return left.join(right)
        raise EvaluationError("An URI can only be merged with an URI or String")
    if left.__class__ is not Binary or right.__class__ is not Binary:
        raise EvaluationError("Can only append Binary to a Binary")
    return Binary(left.data + right.data)


def hash_of(items: list[Value]) -> dict[Any, Value]:
    """Return the hash of an array of `[key, value]` pairs, or of alternating keys and values."""
    pairs = [item for item in items if item.__class__ is list]
    if pairs and len(pairs) == len(items):
        wrong_size = next((len(pair) for pair in pairs if len(pair) not in (1, 2)), None)
        if wrong_size is not None:
            raise EvaluationError(f"invalid number of elements ({wrong_size} for 1..2)")
        return {key_of(pair[0]): pair[1] if len(pair) == 2 else None for pair in pairs}
    if len(items) % 2:
        raise EvaluationError("odd number of arguments for Hash")
    return {key_of(items[i]): items[i + 1] for i in range(0, len(items), 2)}


def minus(left: Value, right: Value, reporter: Reporter) -> Value:
    if (left.__class__ is int or left.__class__ is float) and (right.__class__ is int or right.__class__ is float):
        return _in_range(left - right, "-")
    if left.__class__ is list:
        removed = right if right.__class__ is list else [[k, v] for k, v in entries(right)] if right.__class__ is dict else [right]
        if all(other.__class__ is str for other in removed):
            words = set(removed)
            return [item for item in left if item.__class__ is not str or item not in words]
        return [item for item in left if not any(is_same(item, other) for other in removed)]
    if left.__class__ is dict:
        keys = set(right) if right.__class__ is dict else {key_of(k) for k in (right if right.__class__ is list else [right])}
        return {k: v for k, v in left.items() if k not in keys}
    one, two = numeric(left, reporter, 0), numeric(right, reporter, 1)
    if isinstance(one, _TIMES) or isinstance(two, _TIMES):
        return _time_minus(one, two)
    return _in_range(one - two, "-")


def times(left: Value, right: Value, reporter: Reporter) -> Value:
    if (left.__class__ is int or left.__class__ is float) and (right.__class__ is int or right.__class__ is float):
        return _in_range(left * right, "*")
    one, two = numeric(left, reporter, 0), numeric(right, reporter, 1)
    if isinstance(one, Timestamp):
        raise _not_applicable("*", one)
    if isinstance(one, Timespan):
        if isinstance(two, _TIMES):
            raise EvaluationError(f"A Timestamp cannot be multiplied by {with_article(label(two))}")
        return Timespan(int(one.nanoseconds * two))
    if isinstance(two, Timestamp):
        raise _not_applicable_when("*", one, two)
    return Timespan(int(two.nanoseconds * one)) if isinstance(two, Timespan) else _in_range(one * two, "*")


def divide(left: Value, right: Value, reporter: Reporter) -> Value:
    """Return the quotient: Integers are rounded down, and a Timespan divided by a Timespan is a ratio."""
    one, two = numeric(left, reporter, 0), numeric(right, reporter, 1)
    if one.__class__ is int and two.__class__ is int:
        if two == 0:
            raise BadOperand("Division by 0", 1)
        return _in_range(one // two, "/")
    if isinstance(one, Timespan):
        return _divide_time(one, two)
    if isinstance(one, Timestamp):
        raise _not_applicable("/", one)
    if isinstance(two, _TIMES):
        raise _not_applicable_when("/", one, two)
    if two == 0:
        return _in_range(math.nan if one == 0 or one != one else math.inf, "/")
    return _in_range(one / two, "/")


def _divide_time(span: Timespan, divisor: Number | Time) -> Value:
    if isinstance(divisor, Timespan):
        return span.nanoseconds / divisor.nanoseconds if divisor.nanoseconds else _in_range(math.inf, "/")
    if isinstance(divisor, Timestamp):
        raise EvaluationError("A Timespan cannot be divided by a Timestamp")
    if divisor == 0:
        raise BadOperand("Division by 0", 1)
    return Timespan(span.nanoseconds // divisor if isinstance(divisor, int) else math.floor(span.nanoseconds / divisor))


def modulo(left: Value, right: Value, reporter: Reporter) -> Value:
    one, two = numeric(left, reporter, 0), numeric(right, reporter, 1)
    if isinstance(one, float):
        raise _not_applicable("%", one)
    if isinstance(two, float) or (isinstance(two, _TIMES) and isinstance(one, int)):
        raise _not_applicable_when("%", one, two)
    if isinstance(one, Timestamp):
        raise _not_applicable("%", one)
    if isinstance(two, _TIMES):
        raise EvaluationError(f"Can not do modulus on a Timespan using a {with_article(label(two))}")
    if two == 0:
        raise BadOperand("Division by 0", 1)
    return (one.nanoseconds // SECOND) % two if isinstance(one, Timespan) else one % two


def shift_left(left: Value, right: Value, reporter: Reporter) -> Value:
    if left.__class__ is list:
        return [*left, right]
    if left.__class__ is dict:
        raise _not_applicable("<<", left)
    return _shift(left, right, reporter, "<<")


def shift_right(left: Value, right: Value, reporter: Reporter) -> Value:
    return _shift(left, right, reporter, ">>")


def _shift(left: Value, right: Value, reporter: Reporter, operator: str) -> Value:
    number, distance = numeric(left, reporter, 0), numeric(right, reporter, 1)
    if not isinstance(number, int):
        raise _not_applicable(operator, number)
    if isinstance(distance, _TIMES):
        raise _not_applicable_when(operator, number, distance)
    count = int(distance) if operator == "<<" else -int(distance)
    if number:
        count = min(count, 1024)  # enough to be out of range, and nothing to fill the memory with
    return _in_range(number << count if count >= 0 else number >> min(-count, 256), operator)


def negate(value: Value, reporter: Reporter) -> Value:
    number = numeric(value, reporter)
    if isinstance(number, Timespan):
        return Timespan(-number.nanoseconds)
    if isinstance(number, Timestamp):
        raise _not_applicable("-", number)
    # Unlike the operators for two numbers, this one has no limits; what cannot hold the number says so.
    return -number


def _time_plus(left: Number | Time, right: Number | Time) -> Time:
    if left.__class__ is Timestamp and right.__class__ is Timestamp:
        raise EvaluationError("A Timestamp cannot be added to a Timestamp")
    total = nanoseconds(left) + nanoseconds(right)
    return Timestamp(total) if Timestamp in (left.__class__, right.__class__) else Timespan(total)


def _time_minus(left: Number | Time, right: Number | Time) -> Time:
    difference = nanoseconds(left) - nanoseconds(right)
    if right.__class__ is Timestamp:
        if left.__class__ is Timestamp:
            return Timespan(difference)
        if left.__class__ is Timespan:
            raise EvaluationError("A Timestamp cannot be subtracted from a Timespan")
        raise _not_applicable_when("-", left, right)
    return Timestamp(difference) if left.__class__ is Timestamp else Timespan(difference)


# --- access and splat ---------------------------------------------------------------------------------------------


def access(left: Value, keys: Sequence[Value], reporter: Reporter) -> Value:
    """
    Return `left[keys]`; of types, the parameterized type or references.

    Raises:
        BadOperand: a key does not fit (`operand` is its number), or `left` has no keys (`operand` is -1).
    """
    if left.__class__ is dict:
        if len(keys) == 1:
            return left.get(key_of(keys[0]))
        if not keys:
            raise BadOperand("Hash supports [] with one or more arguments. Got 0", -1)
        return [v for v in (left.get(key_of(k)) for k in keys) if v is not None]
    if left.__class__ is list:
        return _array_access(left, keys, reporter)
    if left.__class__ is str:
        return _string_access(left, keys)
    if isinstance(left, PuppetType):
        return type_from_access(left, keys)
    if left.__class__ is Binary:
        return Binary(_string_access(left.data.decode("latin-1"), keys).encode("latin-1"))
    noun = "Object" if left is DEFAULT or left.__class__ is URI or left.__class__ is Deferred else label(left)
    raise BadOperand(f"Operator '[]' is not applicable to {with_article(noun)}.", -1)


def _array_access(left: list[Value], keys: Sequence[Value], reporter: Reporter) -> Value:
    if len(keys) == 1 and (index := keys[0]).__class__ is int:
        return left[index] if -len(left) <= index < len(left) else None
    keys = flatten_arrays(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"Array supports [] with one or two arguments. Got {len(keys)}", -1)
    numbers = _indexes([numeric(key, reporter, index) for index, key in enumerate(keys)])
    if len(numbers) == 1:
        return left[numbers[0]] if -len(left) <= numbers[0] < len(left) else None
    start, count = _slice(len(left), numbers[0], numbers[1])
    return left[start : start + count] if count > 0 else []


def _indexes(numbers: list[Number | Time]) -> list[int]:
    """Return the numbers if all are integers; raise BadOperand for the first that is not."""
    indexes = [number for number in numbers if isinstance(number, int)]
    if len(indexes) < len(numbers):
        position, wrong = next((position, number) for position, number in enumerate(numbers) if not isinstance(number, int))
        raise BadOperand(f"An Array[] cannot use {infer(wrong).generalized()} where Integer is expected", position)
    return indexes


def _slice(size: int, start: int, count: int) -> tuple[int, int]:
    """Return absolute start and length; both may be relative to the end."""
    start = size + start if start < 0 else start
    count = size - start + count + 1 if count < 0 else count
    return (0, start + count) if start < 0 else (start, count)


def _string_access(left: str, keys: Sequence[Value]) -> str:
    keys = flatten_arrays(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"String supports [] with one or two arguments. Got {len(keys)}", -1)
    numbers = []
    for index, key in enumerate(keys):
        number = to_number(key)
        if number.__class__ is not int:
            shown = "Undef" if key is None else "Default" if key is DEFAULT else str(infer(key if number is None else number).generalized())
            raise BadOperand(
                f"A substring operation does not accept {with_article(shown)} as a character index. Expected an Integer", index
            )
        numbers.append(number)
    if len(numbers) == 1:
        index = int(numbers[0] or 0)
        index = len(left) + index if index < 0 else index
        return left[index : index + 1] if index >= 0 else ""
    start, count = _slice(len(left), int(numbers[0] or 0), int(numbers[1] or 0))
    return left[start : start + count] if count > 0 else ""


def unfold(value: Value) -> list[Value]:
    """Return the elements that `*value` inserts into a list."""
    if value.__class__ is list:
        return value
    if value is None:
        return []
    if value.__class__ is dict:
        return [[k, v] for k, v in entries(value)]
    return list(value) if value.__class__ is Iterator else [value]
