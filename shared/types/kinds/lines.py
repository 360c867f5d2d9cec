"""Checks for values in one line of a file, for types that own lines."""

from __future__ import annotations

import re
from typing import Any

from ...ral.attributes import text_of

_BREAKS = re.compile(r"[\n\r\0]")
_CONTROL = re.compile(r"[\x01-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")  # all but the tab; some readers end a line at some of them


def one_line(label: str) -> Any:
    """Return a check that refuses a value which would begin another line: `check=one_line("Comment")`."""

    def check(value: Any) -> None:
        text = text_of(value)
        if _BREAKS.search(text):
            raise ValueError(f"{label} cannot include newline")
        if _CONTROL.search(text):
            raise ValueError(f"{label} cannot include control characters")

    return check


def one_word(label: str) -> Any:
    """Return a check that refuses a value with any white space, or none at all."""

    def check(value: Any) -> None:
        text = text_of(value)
        if not text:
            raise ValueError(f"{label} must not be an empty string")
        if re.search(r"\s", text) or _BREAKS.search(text):
            raise ValueError(f"{label} must not contain whitespace: {text}")

    return check


def breaks_line(text: str) -> bool:
    """Return whether a text would be more than one line of a file."""
    return _BREAKS.search(text) is not None
