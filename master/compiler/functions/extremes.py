"""sort, unique, max, min, flatten."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from shared.errors import EvaluationError

from ..callables.signatures import Closure
from ..types.iterables import elements
from ..types.notation.operands import flatten_arrays
from ..values.core import Value, entries, key_of
from ..values.labels import ruby_class
from ..values.ordering import Order, ruby_order, sort_as_ruby
from .api import Context, Function, function
from .strings import ruby_text


@function("flatten", "Any args*")
def flatten(context: Context, *args: Value) -> list[Value]:
    """All arguments in one array, nested arrays opened."""
    return flatten_arrays(args)


# --- unique -------------------------------------------------------------------------------------------------------


def _unique(items: Value, block: Closure | None) -> list[Value]:
    seen: dict[Value, Value] = {}
    for item in items:
        seen.setdefault(key_of(item if block is None else block(item)), item)
    return list(seen.values())


@function("unique", "String string", "Callable[String] &block?")
def unique(context: Context, string: str, *, block: Closure | None = None) -> str:
    """Each element once, the first time it comes up; with a lambda: what it gives for them decides."""
    return "".join(_unique(string, block))


@unique.also("Hash hash", "Callable[Any] &block?")
def unique_hash(context: Context, hash_: Value, *, block: Closure | None = None) -> Value:
    groups: dict[Value, tuple[list[Value], list[Value]]] = {}
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


def by_block(block: Closure) -> Order:
    """An order by a lambda, which gives -1, 0 or 1."""
    call = block.caller(2)

    def order(left: Value, right: Value) -> int:
        result = call(left, right)
        if result.__class__ not in (int, float):
            raise EvaluationError(f"comparison of {ruby_class(left)} with {ruby_class(right)} failed")
        return int(result > 0) - int(result < 0)

    return order


@function("sort", "String string_value", "Callable[2,2] &block?")
def sort(context: Context, string_value: str, *, block: Closure | None = None) -> str:
    """In order, strings by case; with a lambda of two, which gives -1, 0 or 1, in its order."""
    return "".join(_sorted(list(string_value), block))


@sort.also("Array array_value", "Callable[2,2] &block?")
def sort_array(context: Context, array_value: list[Value], *, block: Closure | None = None) -> list[Value]:
    return _sorted(array_value, block)


def _sorted(items: list[Value], block: Closure | None) -> list[Value]:
    if block is None and all(item.__class__ is str for item in items):
        return sorted(items)
    return sort_as_ruby(items, ruby_order if block is None else by_block(block))


# --- max, min -----------------------------------------------------------------------------------------------------

_NUMERIC: Final = re.compile(r"-?\d+([._eE]\d+)?", re.ASCII)


def _leading_float(value: Value) -> float:
    """Ruby's lenient to_f: the number at the start of the text."""
    found = re.match(r"\s*[+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?", str(value))
    return float(found[0]) if found else 0.0


def _orders(context: Context, name: str) -> tuple[Order, Order]:
    """How strings and how other values are compared: as numbers where both look like some, which is deprecated."""

    def warn(kind: str, what: str) -> None:
        context.warn_once(
            "deprecations",
            f"{name}_function_{kind}",
            f"The {name}() function's auto conversion of {what} is deprecated - change to convert input before calling, or use lambda",
        )

    def numbers(left: str, right: str) -> bool:
        return bool(_NUMERIC.fullmatch(left) and _NUMERIC.fullmatch(right))

    def strings(left: Value, right: Value) -> int:
        if numbers(left, right):
            warn("numeric_coerce_string", "String to Numeric")
            left, right = _leading_float(left), _leading_float(right)
        return int(left > right) - int(left < right)

    def anything(left: Value, right: Value) -> int:
        one, two = ruby_text(left), ruby_text(right)
        if numbers(one, two):
            warn("numeric_coerce_string", "String to Numeric")
            return (_leading_float(one) > _leading_float(two)) - (_leading_float(one) < _leading_float(two))
        warn("string_coerce_any", "Any to String")
        return (one > two) - (one < two)

    return strings, anything


def _extreme(name: str, doc: str, sign: int) -> Function:
    declared = Function(name, (), doc)

    def chosen(values: tuple[Value, ...] | list[Value], order: Order) -> Value:
        if not values:
            raise EvaluationError(f"{name}(): Wrong number of arguments need at least one")
        best = values[0]
        for value in values[1:]:
            if order(value, best) * sign > 0:
                best = value
        return best

    def numbers(context: Context, *values: Value) -> Value:
        return chosen(values, ruby_order)

    def strings(context: Context, *values: Value) -> Value:
        return chosen(values, _orders(context, name)[0])

    def anything(context: Context, *values: Value) -> Value:
        return chosen(values, _orders(context, name)[1])

    def with_block(context: Context, *values: Value, block: Closure) -> Value:
        return chosen(values, by_block(block)) if values else None

    def array(plain: Callable[..., Value]) -> Callable[..., Value]:
        def code(context: Context, values: list[Value], *, block: Closure | None = None) -> Value:
            return plain(context, *values) if block is None else with_block(context, *values, block=block)

        return code

    declared.also("Numeric values*")(numbers)
    declared.also("String values*")(strings)
    for type_, plain in (("Array[Numeric]", numbers), ("Array[String]", strings), ("Array", anything)):
        declared.also(f"{type_} values", "Callable[2,2] &block?")(array(plain))
    declared.also("Any values*", "Callable[2,2] &block")(with_block)
    declared.also("Any values*")(anything)
    return declared


max_ = _extreme("max", "The largest of the values, or of an array's.", 1)
min_ = _extreme("min", "The smallest of the values, or of an array's.", -1)
