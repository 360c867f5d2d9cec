"""How many examples a property is tried with: as many as its test names in the full run, a fifth of them in the gate."""

from __future__ import annotations

from hypothesis import settings


def examples(full: int) -> int:
    """Return how many of `full` examples the profile in force asks for, five at least."""
    return max(5, full * settings.default.max_examples // 100)
