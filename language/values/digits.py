"""Digits that somebody wrote, as an integer."""

from __future__ import annotations

from shared.errors import EvaluationError

MAX_DIGITS = 4000  # Python refuses more, because reading them takes quadratic time


def parse_integer(text: str, base: int = 10) -> int:
    """Return the integer of `text`, digits with or without a sign; raise EvaluationError for more than MAX_DIGITS digits."""
    if len(text) > MAX_DIGITS:
        raise EvaluationError(f"The number {text[:20]}… has more than {MAX_DIGITS} digits")
    return int(text, base)
