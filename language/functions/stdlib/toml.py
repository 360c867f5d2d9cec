"""TOML text: simple values first, then tables, then arrays of tables, each sorted by key."""

from __future__ import annotations

import re
from typing import TypeGuard

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...values.core import Value, entries
from ...values.labels import ruby_class, with_article
from ...values.text import float_text, inspect
from ..strings import ruby_text


def dump(data: Value) -> str:
    """Return the document for a hash."""
    if not isinstance(data, dict):
        raise EvaluationError(f"to_toml(): expects a Hash value, got {ruby_class(data)}")
    lines: list[str] = []
    _table(data, [], lines)
    return "".join(line + "\n" for line in lines)


def _is_tables(value: Value) -> TypeGuard[list[Value]]:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _table(data: dict[Value, Value], path: list[str], lines: list[str]) -> None:
    simple = any(not isinstance(value, dict) and not _is_tables(value) for value in data.values())
    if path and (simple or not data):
        lines.append(f"[{'.'.join(path)}]")
    _pairs(data, path, lines)


def _pairs(data: dict[Value, Value], path: list[str], lines: list[str]) -> None:
    named = sorted(((ruby_text(key), value) for key, value in entries(data)), key=lambda pair: pair[0])
    for key, value in named:
        if not isinstance(value, dict) and not _is_tables(value):
            # A regular expression is quoted here, but not in an array.
            lines.append(f"{_key(key)} = {_literal(str(value) if isinstance(value, Regexp) else value)}")
    for key, value in named:
        if isinstance(value, dict):
            _table(value, [*path, _key(key)], lines)
    for key, value in named:
        if _is_tables(value):
            for child in value:
                if not isinstance(child, dict):
                    raise EvaluationError(f"to_toml(): '{key}' is an array of tables, it cannot hold {with_article(ruby_class(child))}")
                lines.append(f"[[{'.'.join([*path, _key(key)])}]]")
                _pairs(child, [*path, _key(key)], lines)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[a-zA-Z0-9_-]*", key) else '"' + key.replace('"', '\\"') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return re.sub(r"\\(#[$@{])", r"\1", inspect(value))
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return float_text(value) if isinstance(value, float) else inspect(value)
