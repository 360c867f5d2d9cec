"""The language of `changes` and `onlyif`: parsing and comparing. Pure. Source: resource layer reference 10.6."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from shared.errors import EvaluationError, ResourceError
from shared.regexps import Regexp

Command = list[Any]  # name, then arguments

_ARGUMENTS = {
    "set": "path text", "setm": "path text text", "rm": "path", "remove": "path", "clear": "path", "clearm": "path text",
    "touch": "path", "mv": "path path", "move": "path path", "rename": "path text", "insert": "text text path", "ins": "text text path",
    "get": "path comparator text", "values": "path rest", "match": "path rest", "defvar": "text path", "defnode": "text path text",
    "size": "comparator number", "include": "text", "not_include": "text", "==": "rest", "!=": "rest",
}  # fmt: skip
_NAME = re.compile(r"\w+|==|!=")
_COMPARATOR = re.compile(r"==|!=|=~|<=|>=|<|>")
_STRING = re.compile(r"""(['"])((?:\\.|(?!\1)[^\\])*)\1?|(\S+)""", re.DOTALL)


def parse(lines: Sequence[str], prefix: str) -> list[Command]:
    """
    Return the commands in lines of text; relative paths get the prefix.

    Raises:
        ResourceError: an unknown command, or one with an argument missing.
    """
    return [_Reader(line.strip(), prefix).command() for line in lines if line.strip()]


class _Reader:
    def __init__(self, line: str, prefix: str) -> None:
        self.line = line
        self.prefix = prefix
        self.at = 0

    def command(self) -> Command:
        match = _NAME.match(self.line)
        name = match[0] if match else self.line.split()[0]
        if name not in _ARGUMENTS:
            raise ResourceError(f"Unknown command {name}")
        self.at = len(name)
        command: Command = [name]
        for number, kind in enumerate(_ARGUMENTS[name].split(), start=1):
            while self.at < len(self.line) and self.line[self.at].isspace():
                self.at += 1
            value = getattr(self, kind)()
            if value is None:
                word = {"path": "path", "text": "string"}.get(kind)
                raise ResourceError(f"missing {word} argument {number} for {name}" if word else f"invalid {kind} for command {name}")
            command.append(value)
        return command

    def path(self) -> str | None:
        """Return a path, up to a blank outside of brackets and quotes; None: the text is at its end."""
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.line):
            char = self.line[self.at]
            if char == "\\":
                self.at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "[]":
                depth += 1 if char == "[" else -1
                if depth < 0:
                    raise ResourceError("unmatched [")
            elif char.isspace() and not depth:
                break
            self.at += 1
        text = self.line[start : self.at]
        if not text:
            return None
        if text[0] in "'\"":
            text = text[1:-1]
        text = text.removesuffix("/")
        return text if text[:1] in ("$", "/") else self.prefix + text

    def text(self) -> str | None:
        match = _STRING.match(self.line, self.at)
        if not match:
            return None
        self.at = match.end()
        return match[3] if match[3] is not None else match[2].replace(f"\\{match[1]}", match[1])

    def comparator(self) -> str | None:
        match = _COMPARATOR.match(self.line, self.at)
        self.at = match.end() if match else self.at
        return match[0] if match else None

    def number(self) -> int | None:
        match = re.compile(r"\d+").match(self.line, self.at)
        self.at = match.end() if match else self.at
        return int(match[0]) if match else None

    def rest(self) -> str:
        text, self.at = self.line[self.at :], len(self.line)
        return text


def parse_list(text: str) -> list[str]:
    """Return an array of quoted strings, as `['a', "b"]`; ResourceError when it is not one."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as err:
        raise ResourceError(f"Invalid array in command: {text}") from err
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ResourceError(f"Invalid array in command: {text}")
    return value


def compare_values(value: str, comparator: str, desired: str) -> bool:
    """Return whether a value satisfies a comparison: as numbers when both are."""
    if comparator == "=~":
        try:
            return Regexp(desired).search(value) is not None
        except EvaluationError as err:
            raise ResourceError(f"Invalid regular expression {desired}: {err.message}", hint=err.hint) from err
    operand: Any = value
    right: Any = desired
    if comparator in ("<", "<=", ">", ">=") and _is_number(value) and _is_number(desired):
        operand, right = float(value), float(desired)
    return _compare(operand, comparator, right)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", text, re.ASCII) is not None


def _compare(first: Any, comparator: str, second: Any) -> bool:
    return bool(
        {
            "==": first == second,
            "!=": first != second,
            "<": first < second,
            "<=": first <= second,
            ">": first > second,
            ">=": first >= second,
        }[comparator]
    )


def satisfies_clause(values: Sequence[str | None], clause: Command) -> bool:
    """Return whether paths or values satisfy `size`, `include`, `not_include`, `==` or `!=`."""
    verb = clause[0]
    if verb == "size":
        if clause[1] == "=~":
            raise ResourceError("A size cannot be compared by =~")
        return _compare(len(values), clause[1], clause[2])
    if verb in ("include", "not_include"):
        return (clause[1] in values) is (verb == "include")
    if verb in ("==", "!="):
        return (list(values) == parse_list(clause[1])) is (verb == "==")
    raise ResourceError(f"Unknown clause {verb}")
