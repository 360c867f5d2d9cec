"""The keys between the brackets of `x[a, b]`: flattened, counted and checked. The texts are those of the reference implementation."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors.issues import BadOperand
from ...values.core import DEFAULT, Value
from ...values.labels import label, ruby_class, uppercase_article, with_article
from ..base import INF, PuppetType, Range
from ..infer import infer
from ..scalars import IntegerType

Keys = list[Value]


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


def check_keys(base: PuppetType, keys: Keys, low: int, high: float, accepted: Sequence[tuple[type, str]]) -> None:
    """
    Check the number and the classes of the keys of `base`.

    Args:
        accepted: the classes that a key may have, each with its name for the message.
    Raises:
        BadOperand: there are too few or too many keys, or one is of another class.
    """
    if not low <= len(keys) <= high:
        raise arity_error(uppercase_article(label(base)), 1, high, len(keys))
    for index, key in enumerate(keys):
        if not isinstance(key, tuple(kind for kind, _ in accepted)) or (key.__class__ is bool and bool not in [k for k, _ in accepted]):
            expected = " or ".join(name for _, name in accepted)
            raise BadOperand(
                f"Error creating type specialization of {with_article(label(base))}, "
                f"Cannot use {type_text(key)} where {expected} is expected",
                index,
            )


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
    low = -INF if keys[0] is DEFAULT else keys[0]
    return low, INF if len(keys) < 2 or keys[1] is DEFAULT else keys[1]
