"""Iteration over values: the type Iterable, and the elements of a value."""

from __future__ import annotations

from collections.abc import Iterable

from shared.errors import EvaluationError

from ...values.core import Guard, Iterator, PuppetType, Value, entries
from ..kinds.base import ANY, AnyType, Wrapper
from ..kinds.scalars import EnumType, IntegerType
from ..named.aliases import AliasType
from .infer import infer

_ITERABLE = frozenset((list, dict, str, Iterator))


class IterableType(Wrapper):
    __slots__ = ()
    name = "Iterable"

    def _any(self) -> bool:
        return self.type is None or self.type.assignable(ANY)

    def instance(self, value: Value) -> bool:
        if self._any():
            if value.__class__ in _ITERABLE or isinstance(value, EnumType):
                return True
            if isinstance(value, AliasType):
                return self.instance(value.resolved())
            return (value.__class__ is int and value >= 0) or (isinstance(value, IntegerType) and value.finite)
        return self.assignable(infer(value))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        element = other.iterable_of
        if element is None:
            return False
        if self._any():
            return True
        assert self.type is not None
        return not isinstance(element, AnyType) and self.type.assignable(element, guard)

    @property
    def iterable_of(self) -> PuppetType | None:
        return self.type if self.type is not None else ANY


def elements(value: Value) -> Iterable[Value]:
    """
    Return the items of iterating over `value`: elements of an Array, `[key, value]` pairs of a Hash, characters of a String, numbers.

    Raises:
        EvaluationError: values of this kind cannot be iterated over.
    """
    if value.__class__ is list:
        return value
    if value.__class__ is dict:
        return [[k, v] for k, v in entries(value)]
    if value.__class__ is str:
        return list(value)
    if value.__class__ is int:
        return range(value)
    if isinstance(value, PuppetType):
        value = value.resolved()
    if isinstance(value, IntegerType):
        return range(int(value.low), int(value.high) + 1)
    if isinstance(value, EnumType):
        return value.values
    if value.__class__ is Iterator:
        return value
    raise EvaluationError(f"{value} is not Iterable")


def pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """Return pairs of index and element; for a Hash, pairs of key and value."""
    return entries(value) if value.__class__ is dict else enumerate(elements(value))
