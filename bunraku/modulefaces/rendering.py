"""The result of an action, as text for a person or data for a program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.data import plainjson, plainyaml
from shared.errors import ConfigError, Unsupported
from shared.indirector import Model
from shared.process.log import escape_controls
from shared.wire.dialects import MODERN

FORMS = ("console", "s", "json", "yaml")
"""The forms of every action; it may have more of its own."""


def plain(value: Any) -> Any:
    """Return a result as plain data: models in their wire form, paths and times as text; raise ConfigError for anything else."""
    if isinstance(value, Model):
        return value.to_data(MODERN)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise ConfigError(
        f"A {type(value).__name__} cannot be rendered", hint="An action returns plain data, models, or what its own renderer takes."
    )


def rendered(value: Any, form: str) -> bytes:
    """Return a result in one of FORMS; nothing for None. Raises ConfigError when it is not data."""
    if value is None:
        return b""
    if form == "json":
        return plainjson.dumps_pretty(plain(value))
    if form == "yaml":
        return plainyaml.dumps(plain(value))
    if isinstance(value, Model):
        try:
            return value.to_bytes(MODERN)
        except Unsupported:
            return plainjson.dumps_pretty(plain(value))  # most have no form of their own
    data = plain(value)
    items = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    if any(isinstance(item, dict | list) for item in items):
        return plainjson.dumps_pretty(data)
    if isinstance(data, dict):
        width = max(map(len, map(escape_controls, data)), default=0)
        return b"".join(_line(f"{escape_controls(key):<{width}}  {_scalar(item)}".rstrip()) for key, item in data.items())
    if isinstance(data, list):
        return b"".join(_line(_scalar(item)) for item in data)
    return _line(escape_controls(data, lines=True) if isinstance(data, str) else _scalar(data))


def write_output(output: str | bytes) -> None:
    """Print rendered output: text with a newline at the end, bytes unchanged."""
    body = _line(output) if isinstance(output, str) else output
    sys.stdout.flush()
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def _line(text: str) -> bytes:
    return text.encode() if text.endswith("\n") or not text else f"{text}\n".encode()


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else escape_controls(str(value))
