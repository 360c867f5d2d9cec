"""The order of values by Ruby's `<=>`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any, TypeVar

from shared.errors import EvaluationError

from .comparison import is_time_or_number, nanoseconds
from .core import Value
from .labels import ruby_class
from .text import inspect
from .times import Timespan, Timestamp
from .versions import SemVer

Item = TypeVar("Item")
Order = Callable[[Value, Value], int]


def _comparable(left: Value) -> str | None:
    kind = left.__class__
    if kind is int or kind is float:
        return "number"
    return kind.__name__ if kind in _ORDERED else None


_ORDERED = frozenset((str, list, Timespan, Timestamp, SemVer))


def ruby_order(left: Value, right: Value) -> int:
    """Return Ruby's `<=>` of two values, -1, 0 or 1; raise EvaluationError when it does not order them."""
    order = _order(left, right)
    if order is not None:
        return order
    shown = inspect(right) if right is None or right.__class__ in (bool, int, float) else ruby_class(right)
    raise EvaluationError(f"comparison of {ruby_class(left)} with {shown} failed")


def _order(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1, or None when the two, or parts of them, are not ordered."""
    if left.__class__ is list and right.__class__ is list:
        for mine, other in zip(left, right, strict=False):
            order = _order(mine, other)
            if order != 0:
                return order
        return (len(left) > len(right)) - (len(left) < len(right))
    group, other_group = _comparable(left), _comparable(right)
    if group != other_group and "number" in (group, other_group) and is_time_or_number(left) and is_time_or_number(right):
        return _order_of_group(nanoseconds(left), nanoseconds(right))  # a number beside a time counts as seconds
    if group is None or group != other_group:
        return 0 if left is right or (left.__class__ is right.__class__ and left == right) else None
    return _order_of_group(left, right)


def _order_of_group(left: Any, right: Any) -> int | None:
    """Return the order of two values of classes that Python can compare; None when one of them is a NaN."""
    if left == right or left < right or left > right:
        return int(left > right) - int(left < right)
    return None


def sort_as_ruby(items: Iterable[Item], order: Callable[[Item, Item], int]) -> list[Item]:
    """
    Return the items in their order.

    Raises:
        EvaluationError: `order` cannot compare two of them.
    """

    def backwards(later: Item, earlier: Item) -> int:
        """Compare with swapped operands: Python gives the later one first, but lambdas and errors should get the earlier one first."""
        return -order(earlier, later)

    return sorted(items, key=cmp_to_key(backwards))
