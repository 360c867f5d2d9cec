"""Conversion of the source between quotes to the text that it represents."""

from __future__ import annotations

import re
from collections.abc import Callable

DOUBLE_QUOTED: frozenset[str] = frozenset({"\\", "$", "'", '"', "r", "n", "t", "s", "u", "\n", "\r\n"})

_SINGLE = re.compile(r"\\([\\'])")
_ESCAPE = re.compile(
    r"""
      \\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})   # 1, 2: a character by its number
    | \\(\r?\n|[^\r\n])                                # 3: any other escape
    """,
    re.VERBOSE,
)
_MEANING = {"r": "\r", "n": "\n", "t": "\t", "s": " ", "\n": "", "\r\n": ""}

BAD_UNICODE = "Unicode escape '\\u' was not followed by 4 hex digits or 1-6 hex digits in {} or was > 10ffff"


def single_quoted(raw: str) -> str:
    """Return the text between single quotes: `\\\\` and `\\'` are escapes, every other backslash is a character."""
    return _SINGLE.sub(r"\1", raw) if "\\" in raw else raw


def unescape(raw: str, escapes: frozenset[str], warn: Callable[[str], None] | None) -> str:
    """
    Return `raw` with these escapes replaced and the others unchanged.

    `escapes` holds the characters that may follow a backslash, a line break among them when it is to be removed. `warn` is called for
    escapes that mean nothing; None where that is silent (heredocs).
    """
    if "\\" not in raw or not escapes:
        return raw

    def meaning(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is not None:
            if "u" not in escapes:
                return match[0]
            number = int(code, 16)
            if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                return chr(number)
            if warn:
                warn(BAD_UNICODE)
            return match[0]
        char = match[3]
        if char not in escapes:
            if warn:
                warn(f"Unrecognized escape sequence '\\{char}'")
            return match[0]
        if char == "u":
            if warn:
                warn(BAD_UNICODE)
            return match[0]
        return _MEANING.get(char, char)

    return _ESCAPE.sub(meaning, raw)
