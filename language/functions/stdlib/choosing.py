"""pick, pick_default: the first value that is neither undef nor empty."""

from __future__ import annotations

from shared.errors import EvaluationError

from ...values.core import Value
from ..api import Context, legacy_function


def _non_empty(values: tuple[Value, ...]) -> list[Value]:
    return [value for value in values if value is not None and value != ""]


@legacy_function("pick", -1)
def pick(context: Context, *values: Value) -> Value:
    """Return the first value that is neither undef nor ''; raise an error when there is none."""
    candidates = _non_empty(values)
    if not candidates:
        raise EvaluationError("pick(): must receive at least one non empty value")
    return candidates[0]


@legacy_function("pick_default", -1)
def pick_default(context: Context, *values: Value) -> Value:
    """Return the first value that is neither undef nor '', otherwise the last argument."""
    if not values:
        raise EvaluationError("Must receive at least one argument.")
    return [*_non_empty(values[:-1]), values[-1]][0]
