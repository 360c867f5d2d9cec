"""
HOCON as plain data: what Hiera's files use of it.

Read are comments, braces around the whole or none, `=`, `:`, `+=` and an object right behind a key, dotted and quoted keys, objects
that are merged when a key comes again, arrays, quoted, triple-quoted and unquoted texts, concatenation, and `${substitutions}` within the
file. `include` and substitution from the environment are refused: data must not depend on other files or on the process.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from shared.errors import BadData

__all__ = ["loads"]

MAX_DEPTH = 100
MAX_SUBSTITUTIONS = 10_000

_SPACE = re.compile(r"(?:[^\S\n]|\ufeff)+")
_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TRIPLE = re.compile(r'"""(.*?)"""("*)', re.DOTALL)
_UNQUOTED = re.compile(r"""(?:(?!//)[^$"{}\[\]:=,+#`^?!@*&\\\n])+""")
_KEY = re.compile(r"""(?:(?!//)[^$"{}\[\]:=,+#`^?!@*&\\\n.])+""")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SUBSTITUTION = re.compile(r"\$\{(\?)?\s*([^}\n]+?)\s*\}")
_ABSENT: Final = object()


class _Parts(list[Any]):
    """A value of several parts, of which one at least is a substitution."""


class _Substitution:
    __slots__ = ("keys", "optional", "text")

    def __init__(self, text: str, optional: bool) -> None:
        self.text = text
        self.optional = optional
        self.keys = _path(text)


def loads(content: bytes) -> Any:
    """The value of a HOCON text. BadData with the line when it is none, or uses what is not read here."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadData(f"octet {error.start} is not UTF-8") from error
    return _Resolver(_Reader(text).document()).resolved()


def _path(text: str) -> list[str]:
    reader = _Reader(text)
    keys = reader.keys()
    if reader.at < len(text):
        raise BadData(f"'{text}' is no path")
    return keys


class _Reader:
    """Recursive descent over the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def fail(self, message: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        raise BadData(f"{message} at line {line} column {self.at - self.text.rfind(chr(10), 0, self.at)}")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, *, lines: bool = True) -> bool:
        """Over space and comments; whether there was a line break."""
        broken = False
        while True:
            match = _SPACE.match(self.text, self.at) or _COMMENT.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
            elif lines and self.peek() == "\n":
                broken = True
                self.at += 1
            else:
                return broken

    def document(self) -> Any:
        self.skip()
        if self.peek() == "[":
            value: Any = self.array()
        elif self.peek() == "{":
            value = self.braced()
        else:
            value = self.members("")
        self.skip()
        if self.at < len(self.text):
            self.fail(f"Unexpected {self.peek()!r}")
        return value

    def braced(self) -> dict[str, Any]:
        self.enter()
        found = self.members("}")
        self.at += 1
        self.depth -= 1
        return found

    def enter(self) -> None:
        self.at += 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"Nested more than {MAX_DEPTH} deep")

    def members(self, closed: str) -> dict[str, Any]:
        """`key = value` up to `closed`, which is not taken."""
        found: dict[str, Any] = {}
        while True:
            self.skip()
            if self.peek() == closed:
                return found
            if not self.peek():
                self.fail("A brace is not closed")
            self.member(found)
            broken = self.skip()
            if self.peek() == ",":
                self.at += 1
            elif not broken and self.peek() not in (closed, ""):
                self.fail(f"Expected a comma or a line break before {self.peek()!r}")

    def member(self, into: dict[str, Any]) -> None:
        keys = self.keys()
        if keys[0] == "include" or (keys[0].startswith("include ") and len(keys) == 1):
            self.fail("include is not supported: write the data into one file")
        self.skip()
        append = self.text.startswith("+=", self.at)
        if append:
            self.at += 2
        elif self.peek() in ("=", ":"):
            self.at += 1
        elif self.peek() != "{":
            self.fail(f"Key '{'.'.join(keys)}' may not be followed by {self.peek()!r}")
        self.skip()
        value = self.value()
        for key in keys[:-1]:
            inner = into.get(key)
            if not isinstance(inner, dict):
                inner = into[key] = {}
            into = inner
        last = keys[-1]
        if append:
            known = into.get(last, [])
            into[last] = [*known, value] if isinstance(known, list) and not isinstance(known, _Parts) else [value]
        else:
            into[last] = _merged(into[last], value) if last in into else value

    def keys(self) -> list[str]:
        found: list[str] = []
        while True:
            self.skip(lines=False)
            if self.peek() == '"':
                found.append(self.quoted())
            else:
                match = _KEY.match(self.text, self.at)
                if match is None or not match[0].strip():
                    self.fail(f"Expected a key, found {self.peek()!r}" if self.peek() else "Expected a key")
                found.append(match[0].strip())
                self.at = match.end()
            self.skip(lines=False)
            if self.peek() != ".":
                return found
            self.at += 1

    def quoted(self) -> str:
        match = _TRIPLE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            return match[1] + match[2]
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            self.fail("A quote is not closed")
        try:
            value: str = json.loads(match[0], strict=False)
        except ValueError:
            self.fail("A backslash escapes nothing that is known")
        self.at = match.end()
        return value

    def value(self) -> Any:
        """One value, or several that stand side by side on a line."""
        parts: list[Any] = []
        while True:
            before = self.at
            self.skip(lines=False)
            space = self.text[before : self.at] if parts and _SPACE.fullmatch(self.text[before : self.at]) else ""
            char = self.peek()
            if char == "" or char in "\n,}]":
                break
            part = self.part()
            if space and isinstance(parts[-1], str | int | float | bool | _Substitution | _Number):
                parts.append(space)
            parts.append(part)
        if not parts:
            self.fail("Expected a value")
        return _joined(parts, self) if not any(isinstance(part, _Substitution) for part in parts) else _Parts(parts)

    def part(self) -> Any:
        char = self.peek()
        if char == "{":
            return self.braced()
        if char == "[":
            return self.array()
        if char == '"':
            return self.quoted()
        if char == "$":
            match = _SUBSTITUTION.match(self.text, self.at)
            if match is None:
                self.fail("A substitution is written ${path} or ${?path}")
            self.at = match.end()
            return _Substitution(match[2], bool(match[1]))
        match = _UNQUOTED.match(self.text, self.at)
        if match is None:
            self.fail(f"Unexpected {char!r}")
        text = match[0].rstrip()
        self.at += len(text)
        return _Number(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, text)

    def array(self) -> list[Any]:
        self.enter()
        found: list[Any] = []
        while True:
            self.skip()
            if self.peek() == "]":
                self.at += 1
                self.depth -= 1
                return found
            if not self.peek():
                self.fail("A bracket is not closed")
            found.append(self.value())
            broken = self.skip()
            if self.peek() == ",":
                self.at += 1
            elif not broken and self.peek() not in ("]", ""):
                self.fail(f"Expected a comma or a line break before {self.peek()!r}")


class _Word:
    """true, false or null: a value when it stands alone, else text."""

    def __init__(self, text: str, value: Any) -> None:
        self.text = text
        self.value = value


class _Number(_Word):
    def __init__(self, text: str) -> None:
        super().__init__(text, int(text[:400]) if text.lstrip("-").isdigit() else float(text))


_WORDS: Final = {"true": _Word("true", True), "false": _Word("false", False), "null": _Word("null", None)}


def _joined(parts: list[Any], reader: _Reader | None = None) -> Any:
    """Parts without substitutions as one value."""
    if len(parts) == 1:
        return parts[0].value if isinstance(parts[0], _Word) else parts[0]
    solid = [part for part in parts if not (isinstance(part, str) and not part.strip())]
    if all(isinstance(part, dict) for part in solid):
        result: Any = {}
        for part in solid:
            result = _merged(result, part)
        return result
    if all(isinstance(part, list) for part in solid):
        return [item for part in solid for item in part]
    if any(isinstance(part, dict | list) for part in solid):
        message = "An object or array cannot be joined with text"
        if reader is not None:
            reader.fail(message)
        raise BadData(message)
    return "".join(part.text if isinstance(part, _Word) else _text(part) for part in parts)


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def _merged(known: Any, value: Any) -> Any:
    if not isinstance(known, dict) or not isinstance(value, dict):
        return value
    return {**known, **{key: _merged(known[key], item) if key in known else item for key, item in value.items()}}


class _Resolver:
    """Substitutions, put in when everything has been read."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.active: list[str] = []
        self.count = 0

    def resolved(self) -> Any:
        return self._value(self.root)

    def _value(self, value: Any) -> Any:
        if isinstance(value, _Parts):
            parts = [each for part in value if (each := self._part(part)) is not _ABSENT]
            return _joined(parts) if parts and any(part is not _ABSENT for part in parts) else _ABSENT
        if isinstance(value, dict):
            found = {key: self._value(item) for key, item in value.items()}
            return {key: item for key, item in found.items() if item is not _ABSENT}
        if isinstance(value, list):
            return [item for each in value if (item := self._value(each)) is not _ABSENT]
        return value

    def _part(self, part: Any) -> Any:
        if not isinstance(part, _Substitution):
            return self._value(part)
        self.count += 1
        if self.count > MAX_SUBSTITUTIONS:
            raise BadData(f"More than {MAX_SUBSTITUTIONS} substitutions")
        if part.text in self.active:
            raise BadData(f"The substitution ${{{part.text}}} leads back to itself")
        value = self.root
        for key in part.keys:
            value = value.get(key, _ABSENT) if isinstance(value, dict) else _ABSENT
        if value is _ABSENT:
            if part.optional:
                return _ABSENT
            raise BadData(f"Could not resolve substitution to a value: ${{{part.text}}}")
        self.active.append(part.text)
        try:
            return self._value(value)
        finally:
            self.active.pop()
