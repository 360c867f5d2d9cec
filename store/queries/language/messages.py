"""Values as PuppetDB's messages show them: its own notation for data."""

from __future__ import annotations

import json

from ...jsontext import Json


def show_value(value: Json) -> str:
    """Return a value in that notation, without commas: `["=" "certname" 5]`."""
    if isinstance(value, list):
        return f"[{' '.join(map(show_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f":{key} {show_value(member)}" for key, member in value.items()) + "}"
    if value is None:
        return "nil"
    # A half of a surrogate pair, which no text in UTF-8 has, is shown as its escape.
    return (
        json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode() if isinstance(value, str | bool) else repr(value)
    )


def list_names(names: list[str]) -> str:
    """Return names in quotes as a sentence lists them: `'a', 'b', and 'c'`."""
    quoted = [f"'{name}'" for name in names]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
