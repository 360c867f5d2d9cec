"""The keys between the brackets of `x[a, b]`: flattened, counted and checked. The texts are those of the reference implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...errors.issues import BadOperand
from ...values.core import DEFAULT, PuppetType, Value
from ...values.labels import label, ruby_class, uppercase_article, with_article
from ..inference.infer import infer
from ..kinds.base import INF, Range
from ..kinds.scalars import IntegerType

Keys = list[Value]
Kind = TypeVar("Kind", bound=Value)


def flatten_arrays(keys: Sequence[Value]) -> Keys:
    """Return `keys` with the elements of nested arrays in their places."""
    if not any(k.__class__ is list for k in keys):
        return list(keys)
    out: Keys = []
    for key in keys:
        out.extend(flatten_arrays(key) if key.__class__ is list else (key,))
    return out


def arity_error(base: str, low: int, high: float, count: int) -> BadOperand:
    """Return the error for a wrong number of keys; `low` and `high` are the numbers that `base` accepts."""
    if high == INF:
        text = f"{low} or more arguments"
    elif high != low:
        text = f"{low} to {int(high)} arguments"
    else:
        text = f"{low} argument{'' if low == 1 else 's'}"
    return BadOperand(f"{base}[] accepts {text}. Got {count}")


def check_keys(base: PuppetType, keys: Keys, low: int, high: float, accepted: Mapping[type[Kind], str]) -> list[Kind]:
    """
    Return the keys of `base` after a check of their number and classes.

    Args:
        accepted: the classes that a key may have, each with its name for the message.
    Raises:
        BadOperand: there are too few or too many keys, or one is of another class.
    """
    if not low <= len(keys) <= high:
        raise arity_error(uppercase_article(label(base)), 1, high, len(keys))
    checked: list[Kind] = []
    classes = tuple(accepted)
    for index, key in enumerate(keys):
        if not isinstance(key, classes) or (isinstance(key, bool) and bool not in classes):
            raise BadOperand(
                f"Error creating type specialization of {with_article(label(base))}, "
                f"Cannot use {type_text(key)} where {' or '.join(accepted.values())} is expected",
                index,
            )
        checked.append(key)
    return checked


def type_text(value: Value) -> str:
    """Return the generalized type of a value as messages about keys show it."""
    if value is None:
        return "Undef"
    return "Default" if value is DEFAULT else str(infer(value).generalized())


def size_of(keys: Keys, start: int) -> Range:
    """Return the size that an Integer type, or one or two integers, describe. `start` is the number of the first key."""
    if len(keys) == 1 and isinstance(keys[0], IntegerType):
        return keys[0].range
    for index, key in enumerate(keys):
        if key is not DEFAULT and key.__class__ is not int:
            raise BadOperand(
                "A Type's size constraint arguments must be a single Integer type, or 1-2 integers (or default). "
                f"Got {with_article(label(key) if isinstance(key, PuppetType) else ruby_class(key))}",
                start + index,
            )
    return IntegerType(*limits(keys)).range


def limits(keys: Keys) -> tuple[float, float]:
    """Return the range of one or two keys that are known to be numbers or `default`."""
    low, high = keys[0], keys[1] if len(keys) > 1 else DEFAULT
    return low if isinstance(low, int | float) else -INF, high if isinstance(high, int | float) else INF
