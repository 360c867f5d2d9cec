"""The texts of changes, as Puppet prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ABSENT = "absent"  # what a property's value is when the thing, or this aspect of it, is not there
REDACTED = "[redacted]"


def displayed(value: Any) -> str:
    """
    Return a value as a change message shows it.

    Strings are in single quotes, numbers and booleans bare, hashes over several lines, None is nothing.

    Source: resource layer reference 1.5.
    """
    return "" if value is None else _pretty(value, 0)


def _pretty(value: Any, depth: int) -> str:
    if value is None:
        return "undef"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:f}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return _array(value, depth)
    if isinstance(value, Mapping):
        pad = "  " * (depth + 1)
        inner = ",\n".join(f"{pad}{_pretty(k, depth + 1)} => {_pretty(v, depth + 1)}" for k, v in value.items())
        return "{\n" + inner + "\n" + "  " * depth + "}"
    return _quote(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _array(items: Sequence[Any], depth: int) -> str:
    """Return plain elements in one line; an array or hash, and the element after it, begin a line of their own."""
    text = "["
    breaks = False
    for number, item in enumerate(items):
        nested = isinstance(item, list | tuple | Mapping)
        text += "," if number else ""
        text += "\n" + "  " * (depth + 1) if nested or breaks else (" " if number else "")
        text += _pretty(item, depth + 1)
        breaks = nested
    return text + "]"


def _quote(text: str) -> str:
    """Return the text in single quotes, or in double quotes when it contains control characters, which only they can show."""
    if any(c in text for c in "\n\r\t\x1b") or any(ord(c) < 32 for c in text):
        escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\", "$": "\\$"}
        return '"' + "".join(escapes.get(c) or (c if ord(c) >= 32 else f"\\u{{{ord(c):X}}}") for c in text) + '"'
    return "'" + text.replace("\\'", "\\\\'").replace("'", "\\'") + "'"


def change_message(name: str, current: Any, desired: Any, is_text: str, should_text: str) -> str:
    """Return the message of a property's change: defined, undefined, or changed."""
    if current == ABSENT:
        return f"defined '{name}' as {should_text}"
    if desired in (ABSENT, [ABSENT]):
        return f"undefined '{name}' from {is_text}"
    return f"{name} changed {is_text} to {should_text}"
