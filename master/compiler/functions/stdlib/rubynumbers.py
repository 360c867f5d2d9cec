"""Numbers in strings as Ruby's lenient conversions read them: what stands in front counts, else zero."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ...values.core import Value
from ...values.labels import ruby_class
from ...values.numbers import whole

__all__ = ["float_at_start", "integer_at_start"]

_INTEGER: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*)", re.ASCII)
_FLOAT: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+)?)", re.ASCII)


def integer_at_start(value: Value) -> int:
    """Ruby's `to_i`; EvaluationError for what has none."""
    if value.__class__ is int:
        return int(value)
    if isinstance(value, float):
        return _truncated(value)
    if value is None:
        return 0
    if isinstance(value, str):
        found = _INTEGER.match(value)
        return whole(found[1].replace("_", "")) if found else 0
    raise EvaluationError(f"{ruby_class(value)} cannot be converted to an integer")


def float_at_start(text: str) -> float:
    """Ruby's `to_f` of a string."""
    found = _FLOAT.match(text)
    return float(found[1].replace("_", "")) if found else 0.0


def _truncated(value: float) -> int:
    try:
        return int(value)
    except (OverflowError, ValueError) as error:
        raise EvaluationError(f"{value} cannot be converted to an integer") from error
