"""Checks for values that become arguments of a command or fields of a file, and that others than the administrator may have shaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ral.attributes import text_of


def check_plain(value: Any) -> None:
    """Raise ValueError for a text with control characters: no option needs them, and a newline would begin another line of a file."""
    if any(ord(c) < 32 or ord(c) == 127 for c in text_of(value)):
        raise ValueError(f"Control characters are not allowed: {text_of(value)!r}")


def check_name(value: Any) -> None:
    """Raise ValueError for a text that cannot be a name: empty, with control characters, or like an option of a command."""
    check_plain(value)
    if not text_of(value):
        raise ValueError("The name must not be empty")
    if text_of(value).startswith("-"):
        raise ValueError(f"A name must not look like an option: {text_of(value)!r}")


def check_field(value: Any) -> None:
    """Raise ValueError for a text that cannot be one field of a line like those of /etc/passwd."""
    check_plain(value)
    if ":" in text_of(value):
        raise ValueError(f"A colon is not allowed here: {text_of(value)!r}")


def check_options(value: Any) -> None:
    """Raise ValueError for values that cannot be options of a command: only texts and hashes of texts, without control characters, can."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            check_plain(key)
            check_plain(item)
    elif isinstance(value, list | tuple):
        for item in value:
            check_options(item)
    else:
        check_plain(value)


def option_arguments(check_options: list[Any]) -> list[str]:
    """Return options as arguments: a hash gives `key=value`, sorted by key. Source: resource layer reference 7.1."""
    arguments: list[str] = []
    for argument in check_options:
        if isinstance(argument, Mapping):
            arguments += [f"{key}={text_of(argument[key])}" for key in sorted(argument)]
        elif isinstance(argument, list | tuple):
            arguments += option_arguments(list(argument))
        else:
            arguments.append(text_of(argument))
    return arguments
