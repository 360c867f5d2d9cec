"""Quoting for shells: shell_escape, shell_join, shell_split, batch_escape, powershell_escape."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ...values.core import Value
from ...values.text import inspect
from ..api import Context, function, legacy_function
from ..strings import ruby_text

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_\-.,:+/@\n]")
_WORD: Final = re.compile(r"""\s*(?:([^\s\\'"]+) | '([^']*)' | "((?:[^"\\] | \\.)*)" | (\\.?) | (\S))(\s|\Z)?""", re.VERBOSE | re.DOTALL)


def escaped(text: str) -> str:
    """Return `text` as one word of a POSIX shell, by backslashes."""
    if not text:
        return "''"
    return _UNSAFE.sub(lambda found: "\\" + found[0], text).replace("\n", "'\n'")


@function("stdlib::shell_escape", "Any string")
def shell_escape(context: Context, string: Value) -> str:
    """Return a text as one word of a POSIX shell, by backslashes."""
    return escaped(ruby_text(string))


@legacy_function("shell_join", -1)
def shell_join(context: Context, *arguments: Value) -> str:
    """Return the elements of an array as words of a command line."""
    if len(arguments) != 1:
        raise EvaluationError(f"shell_join(): Wrong number of arguments given ({len(arguments)} for 1)")
    if not isinstance(arguments[0], list):
        raise EvaluationError(f"First argument is not an Array: {inspect(arguments[0])}")
    return " ".join(escaped(ruby_text(item)) for item in arguments[0])


@legacy_function("shell_split", -1)
def shell_split(context: Context, *arguments: Value) -> list[str]:
    """Return the words of a command line, without their quotes."""
    if len(arguments) != 1:
        raise EvaluationError(f"shell_split(): Wrong number of arguments given ({len(arguments)} for 1)")
    line = ruby_text(arguments[0])
    words: list[str] = []
    word = ""
    at = 0
    while at < len(line) and (found := _WORD.match(line, at)) is not None:
        bare, single, double, backslash, stray, end = found.groups()
        if stray is not None:
            raise EvaluationError(f"Unmatched quote: {inspect(line)}")
        if double is not None:
            word += re.sub(r'\\([$`"\\\n])', r"\1", double)
        elif backslash is not None:
            # Nothing, or a line's end, behind a backslash is not what it escapes.
            word += backslash if backslash in ("\\", "\\\n") else backslash[1:]
        else:
            word += bare if bare is not None else single
        if end is not None:
            words.append(word)
            word = ""
        at = found.end()
    return words


@function("stdlib::batch_escape", "Any string")
def batch_escape(context: Context, string: Value) -> str:
    """Return a text in double quotes, as one word of Windows' cmd.exe."""
    text = ruby_text(string)
    return '"' + "".join('""' if char == '"' else f"\\{char}" if char in "$\\" else char for char in text) + '"'


@function("stdlib::powershell_escape", "Any string")
def powershell_escape(context: Context, string: Value) -> str:
    """Return a text as one word of PowerShell, by backticks."""
    text = ruby_text(string)
    return "".join('\\`"' if char == '"' else f"`{char}" if char in " '`|\n$" else char for char in text)
