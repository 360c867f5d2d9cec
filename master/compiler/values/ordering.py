"""The order of values by Ruby's `<=>`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

from shared.errors import EvaluationError

from .comparison import nanoseconds
from .core import Value
from .labels import ruby_class
from .text import inspect
from .times import Timespan, Timestamp
from .versions import SemVer

Order = Callable[[Value, Value], int]


def _comparable(left: Value) -> str | None:
    kind = left.__class__
    if kind is str or kind is list:
        return kind.__name__
    if kind is int or kind is float:
        return "number"
    return kind.__name__ if hasattr(left, "nanoseconds") or kind is SemVer else None


def _is_number_and_time(left: Value, right: Value) -> bool:
    """Return whether one of the two is a number, which counts as seconds, and the other a time."""
    kinds = {left.__class__, right.__class__}
    return not kinds.isdisjoint(_TIMES) and not kinds.isdisjoint(_NUMBERS)


_TIMES = frozenset((Timespan, Timestamp))
_NUMBERS = frozenset((int, float))


def ruby_order(left: Value, right: Value) -> int:
    """Return Ruby's `<=>` of two values, -1, 0 or 1; raise EvaluationError when it does not order them."""
    order = _order(left, right)
    if order is not None:
        return order
    shown = inspect(right) if right is None or right.__class__ in (bool, int, float) else ruby_class(right)
    raise EvaluationError(f"comparison of {ruby_class(left)} with {shown} failed")


def _order(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1, or None when the two, or parts of them, are not ordered."""
    if _is_number_and_time(left, right):
        left, right = nanoseconds(left), nanoseconds(right)
    group = _comparable(left)
    if group is None or group != _comparable(right):
        return 0 if left is right or (left.__class__ is right.__class__ and left == right) else None
    if group == "list":
        for mine, other in zip(left, right, strict=False):
            order = _order(mine, other)
            if order != 0:
                return order
        return (len(left) > len(right)) - (len(left) < len(right))
    if left == right or left < right or left > right:  # a NaN is none of these
        return int(left > right) - int(left < right)
    return None


def sort_as_ruby(items: Sequence[Value], order: Order = ruby_order) -> list[Value]:
    """
    Return the items in their order.

    Raises:
        EvaluationError: `order` cannot compare two of them.
    """
    # Python calls the key with the later item first; the operands are swapped, so that lambdas and errors get the earlier one first.
    return sorted(items, key=cmp_to_key(lambda later, earlier: -order(earlier, later)))
