"""Functions of SQL that PostgreSQL has and SQLite lacks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .json_values import register_json_functions
from .time_formats import format_time

MATCH_TIMEOUT = 1.0
"""Seconds for one match of a regular expression."""

if TYPE_CHECKING:
    import regex

_MAX_PATTERN = 10_000


def register_functions(create_function: Callable[..., Any]) -> None:
    """Make the functions known to a connection whose `create_function` this is."""
    create_function("regexp", 2, _regexp, deterministic=True)
    create_function("to_char", 2, format_time, deterministic=True)
    register_json_functions(create_function)


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """
    Return the compiled form of one of PostgreSQL's advanced regular expressions, as near as the module `regex` gets.

    ValueError says why it is none.
    """
    import regex  # 1 MB for the few queries with regular expressions

    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"regular expression is longer than {_MAX_PATTERN} characters")
    try:
        return _compiled(pattern)
    except regex.error as err:
        reason = next((text for word, text in _REASONS.items() if word in str(err)), str(err))
        raise ValueError(f"invalid regular expression: {reason}") from err


_REASONS = {
    "set": "brackets [] not balanced",
    "parenthesis": "parentheses () not balanced",
    "missing )": "parentheses () not balanced",
    "repeat": "quantifier operand invalid",
    "range": "invalid character range",
    "escape": "invalid escape \\ sequence",
    "group": "invalid backreference number",
}
"""PostgreSQL's words for what is wrong with a regular expression, by a word in those of `regex`."""

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]])*\]|\$", re.DOTALL)
_TRANSLATED = {"$": r"\Z", r"\y": r"\b", r"\Y": r"\B"}


@lru_cache(256)
def _compiled(pattern: str) -> regex.Pattern[str]:
    """In PostgreSQL a dot is any character, a dollar the end of the text only, and `\\y` the begin or the end of a word."""
    import regex

    return regex.compile(_TOKEN.sub(lambda match: _TRANSLATED.get(match[0], match[0]), pattern), regex.DOTALL)


def _regexp(pattern: str | None, value: Any) -> int | None:
    """`value REGEXP pattern`: whether the pattern is found in the value; NULL where one of them is NULL."""
    if pattern is None or value is None:
        return None
    text = value if isinstance(value, str) else str(value)
    # `concurrent` lets other threads, among them the event loop's, go on.
    return int(compile_pattern(pattern).search(text, timeout=MATCH_TIMEOUT, concurrent=True) is not None)
