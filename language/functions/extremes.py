"""sort, unique, max, min, flatten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from shared.errors import EvaluationError

from ..callables.signatures import Closure
from ..types.inference.iterables import elements
from ..types.notation.operands import flatten_arrays
from ..values.core import Key, Value, entries, key_of
from ..values.labels import ruby_class
from ..values.ordering import Order, ruby_order, sort_as_ruby
from ..values.text import to_s
from .api import Context, Function, function
from .strings import ruby_text

Item = TypeVar("Item", bound=Value)


@function("flatten", "Any args*")
def flatten(context: Context, *args: Value) -> list[Value]:
    """Return all arguments in one array, nested arrays flattened."""
    return flatten_arrays(args)


# --- unique -------------------------------------------------------------------------------------------------------


def _unique(items: Iterable[Item], block: Closure | None) -> list[Item]:
    items_by_key: dict[Key, Item] = {}
    for item in items:
        items_by_key.setdefault(key_of(item if block is None else block(item)), item)
    return list(items_by_key.values())


@function("unique", "String string", "Callable[String] &block?")
def unique(context: Context, string: str, *, block: Closure | None = None) -> str:
    """Return the elements without repetitions, in the order of their first occurrence; a lambda returns the keys to compare."""
    return "".join(_unique(string, block))


@unique.also("Hash hash", "Callable[Any] &block?")
def unique_hash(context: Context, hash_: dict[Key, Value], *, block: Closure | None = None) -> Value:
    groups: dict[Key, tuple[list[Value], list[Value]]] = {}
    for key, value in entries(hash_):
        keys, values = groups.setdefault(key_of(value if block is None else block(value)), ([], []))
        keys.append(key)
        values.append(value)
    return {key_of(keys): _unique(values, None) for keys, values in groups.values()}


@unique.also("Array array", "Callable[Any] &block?")
def unique_array(context: Context, array: list[Value], *, block: Closure | None = None) -> list[Value]:
    return _unique(array, block)


@unique.also("Iterable iterable", "Callable[Any] &block?")
def unique_iterable(context: Context, iterable: Value, *, block: Closure | None = None) -> list[Value]:
    return _unique(elements(iterable), block)


# --- sort ---------------------------------------------------------------------------------------------------------


def order_by_block(block: Closure) -> Order:
    """Return the order that a lambda defines by returning -1, 0 or 1."""
    call = block.caller(2)

    def order(left: Value, right: Value) -> int:
        result = call(left, right)
        if result.__class__ is not int and result.__class__ is not float:
            raise EvaluationError(f"comparison of {ruby_class(left)} with {ruby_class(right)} failed")
        return int(result > 0) - int(result < 0)

    return order


@function("sort", "String string_value", "Callable[2,2] &block?")
def sort(context: Context, string_value: str, *, block: Closure | None = None) -> str:
    """Return the elements sorted, strings with upper case first; a lambda of two, which returns -1, 0 or 1, defines another order."""
    return "".join(sorted(string_value) if block is None else sort_as_ruby(string_value, order_by_block(block)))


@sort.also("Array array_value", "Callable[2,2] &block?")
def sort_array(context: Context, array_value: list[Value], *, block: Closure | None = None) -> list[Value]:
    if block is not None:
        return sort_as_ruby(array_value, order_by_block(block))
    texts = [item for item in array_value if item.__class__ is str]
    return [*sorted(texts)] if len(texts) == len(array_value) else sort_as_ruby(array_value, ruby_order)


# --- max, min -----------------------------------------------------------------------------------------------------

_NUMERIC: Final = re.compile(r"-?\d+([._eE]\d+)?", re.ASCII)


def _leading_float(text: str) -> float:
    """Return the number at the start of the text, as Ruby's lenient to_f does; 0.0 when there is none."""
    match = re.match(r"\s*[+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?", text)
    return float(match[0]) if match else 0.0


def _orders(context: Context, name: str) -> tuple[Order, Order]:
    """Return the orders of strings and of other values. Both compare texts that look like numbers as numbers, which is deprecated."""

    def warn(kind: str, conversion: str) -> None:
        context.warn_once(
            "deprecations",
            f"{name}_function_{kind}",
            f"The {name}() function's auto conversion of {conversion} is deprecated - "
            "change to convert input before calling, or use lambda",
        )

    def are_numbers(left: str, right: str) -> bool:
        return bool(_NUMERIC.fullmatch(left) and _NUMERIC.fullmatch(right))

    def compare_as_numbers(left: str, right: str) -> int:
        warn("numeric_coerce_string", "String to Numeric")
        return (_leading_float(left) > _leading_float(right)) - (_leading_float(left) < _leading_float(right))

    def strings(left: Value, right: Value) -> int:
        left_text, right_text = to_s(left), to_s(right)
        if are_numbers(left_text, right_text):
            return compare_as_numbers(left_text, right_text)
        return (left_text > right_text) - (left_text < right_text)

    def anything(left: Value, right: Value) -> int:
        left_text, right_text = ruby_text(left), ruby_text(right)
        if are_numbers(left_text, right_text):
            return compare_as_numbers(left_text, right_text)
        warn("string_coerce_any", "Any to String")
        return (left_text > right_text) - (left_text < right_text)

    return strings, anything


def _extreme(name: str, doc: str, sign: int) -> Function:
    extreme = Function(name, (), doc)

    def choose(values: tuple[Value, ...] | list[Value], order: Order) -> Value:
        if not values:
            raise EvaluationError(f"{name}(): Wrong number of arguments need at least one")
        best = values[0]
        for value in values[1:]:
            if order(value, best) * sign > 0:
                best = value
        return best

    def numbers(context: Context, *values: Value) -> Value:
        return choose(values, ruby_order)

    def strings(context: Context, *values: Value) -> Value:
        return choose(values, _orders(context, name)[0])

    def anything(context: Context, *values: Value) -> Value:
        return choose(values, _orders(context, name)[1])

    def with_block(context: Context, *values: Value, block: Closure) -> Value:
        return choose(values, order_by_block(block)) if values else None

    def array(code_of_values: Callable[..., Value]) -> Callable[..., Value]:
        def code(context: Context, values: list[Value], *, block: Closure | None = None) -> Value:
            return code_of_values(context, *values) if block is None else with_block(context, *values, block=block)

        return code

    extreme.also("Numeric values*")(numbers)
    extreme.also("String values*")(strings)
    for type_, code_of_values in (("Array[Numeric]", numbers), ("Array[String]", strings), ("Array", anything)):
        extreme.also(f"{type_} values", "Callable[2,2] &block?")(array(code_of_values))
    extreme.also("Any values*", "Callable[2,2] &block")(with_block)
    extreme.also("Any values*")(anything)
    return extreme


max_ = _extreme("max", "Return the largest of the values, or of the elements of an array.", 1)
min_ = _extreme("min", "Return the smallest of the values, or of the elements of an array.", -1)
