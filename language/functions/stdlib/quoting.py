"""Quoting for shells: shell_escape, shell_join, shell_split, batch_escape, powershell_escape."""

from __future__ import annotations

import re
from typing import Final

from shared.errors import EvaluationError

from ...values.core import Value
from ...values.text import inspect
from ..api import Context, function, legacy_function, require_count
from ..strings import ruby_text

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_\-.,:+/@\n]")
_WORD: Final = re.compile(r"""\s*(?:([^\s\\'"]+) | '([^']*)' | "((?:[^"\\] | \\.)*)" | (\\.?) | (\S))(\s|\Z)?""", re.VERBOSE | re.DOTALL)


def escape_for_shell(text: str) -> str:
    """Return `text` as one word of a POSIX shell, escaped with backslashes."""
    if not text:
        return "''"
    return _UNSAFE.sub(lambda match: "\\" + match[0], text).replace("\n", "'\n'")


@function("stdlib::shell_escape", "Any string")
def shell_escape(context: Context, string: Value) -> str:
    """Return a text as one word of a POSIX shell, escaped with backslashes."""
    return escape_for_shell(ruby_text(string))


@legacy_function("shell_join", -1)
def shell_join(context: Context, *arguments: Value) -> str:
    """Return the elements of an array as words of a command line."""
    require_count("shell_join", arguments, 1, 1)
    if not isinstance(arguments[0], list):
        raise EvaluationError(f"First argument is not an Array: {inspect(arguments[0])}")
    return " ".join(escape_for_shell(ruby_text(item)) for item in arguments[0])


@legacy_function("shell_split", -1)
def shell_split(context: Context, *arguments: Value) -> list[str]:
    """Return the words of a command line, without their quotes."""
    require_count("shell_split", arguments, 1, 1)
    line = ruby_text(arguments[0])
    words: list[str] = []
    word = ""
    offset = 0
    while offset < len(line) and (match := _WORD.match(line, offset)) is not None:
        unquoted, single, double, backslash, unmatched, end = match.groups()
        if unmatched is not None:
            raise EvaluationError(f"Unmatched quote: {inspect(line)}")
        if double is not None:
            word += re.sub(r'\\([$`"\\\n])', r"\1", double)
        elif backslash is not None:
            # A backslash does not escape a line break or the end of the text.
            word += backslash if backslash in ("\\", "\\\n") else backslash[1:]
        else:
            word += unquoted if unquoted is not None else single
        if end is not None:
            words.append(word)
            word = ""
        offset = match.end()
    return words


@function("stdlib::batch_escape", "Any string")
def batch_escape(context: Context, string: Value) -> str:
    """Return a text in double quotes, as one word of Windows' cmd.exe."""
    text = ruby_text(string)
    return '"' + "".join('""' if char == '"' else f"\\{char}" if char in "$\\" else char for char in text) + '"'


@function("stdlib::powershell_escape", "Any string")
def powershell_escape(context: Context, string: Value) -> str:
    """Return a text as one word of PowerShell, escaped with backticks."""
    text = ruby_text(string)
    return "".join('\\`"' if char == '"' else f"`{char}" if char in " '`|\n$" else char for char in text)
