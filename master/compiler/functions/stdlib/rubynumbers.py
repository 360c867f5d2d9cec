"""Numbers in strings as Ruby's lenient conversions read them: the number at the start of the text, else zero."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ...values.core import Value
from ...values.labels import ruby_class
from ...values.numbers import parse_integer

_INTEGER: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*)", re.ASCII)
_FLOAT: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+)?)", re.ASCII)


def integer_at_start(value: Value) -> int:
    """Return what Ruby's `to_i` returns; raise EvaluationError for a value that does not have this method."""
    if value.__class__ is int:
        return int(value)
    if isinstance(value, float):
        return _truncate(value)
    if value is None:
        return 0
    if isinstance(value, str):
        match = _INTEGER.match(value)
        return parse_integer(match[1].replace("_", "")) if match else 0
    raise EvaluationError(f"{ruby_class(value)} cannot be converted to an integer")


def float_at_start(text: str) -> float:
    """Return what Ruby's `to_f` returns for a string."""
    match = _FLOAT.match(text)
    return float(match[1].replace("_", "")) if match else 0.0


def _truncate(value: float) -> int:
    try:
        return int(value)
    except (OverflowError, ValueError) as error:
        raise EvaluationError(f"{value} cannot be converted to an integer") from error
