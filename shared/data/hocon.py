"""
HOCON as plain data: JSON with fewer quotes, comments, paths as keys, merging, and references to other keys.

Not read: `include`, which would need files, and environment variables as the last resort of a reference.
Source: the HOCON specification of lightbend/config.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ..errors import BadData, octet_place

MAX_DEPTH: Final = 100  # levels of nesting, and of references to references
MAX_SIZE: Final = 200_000  # values after all references are followed
MAX_TEXT: Final = 16 * 2**20  # characters of all texts then, besides those of the document
MAX_COPIED: Final = 4_000_000  # keys and items that are copied so that lists and objects can be joined

_SPACE: Final = re.compile(r"(?:[ \t\r\f\v\ufeff\u00a0\u2028\u2029]|#[^\n]*|//[^\n]*)*")
_LINES: Final = re.compile(r"(?:[\s\ufeff]|#[^\n]*|//[^\n]*)*")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LONG_STRING: Final = re.compile(r'"""(.*?"*)"""(?!")', re.DOTALL)
_UNQUOTED: Final = re.compile(r'(?:(?!//)[^\s$"{}\[\]:=,+#`^?!@*&\\])+')
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_REFERENCE: Final = re.compile(r"\$\{(\?)?([^}\n]*)\}")
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class _Reference:
    path: tuple[str, ...]
    optional: bool
    at: int


@dataclass(frozen=True, slots=True)
class _Joined:
    """Several values behind each other; texts between them are the blanks that stood there."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Merged:
    """The earlier and the present value of a key."""

    earlier: Any
    value: Any


@dataclass(frozen=True, slots=True)
class _Appended:
    """An item behind those that a key was given before."""

    item: Any


@dataclass(frozen=True, slots=True)
class _Raw:
    """Unquoted text: a number or word if nothing follows it."""

    text: str


_NOTHING: Final = object()


def loads(text: str | bytes) -> Any:
    """
    Return the value of one HOCON document; braces around it may be missing.

    Raises:
        BadData: the fault and its line.
    """
    try:
        parser = _Parser(text if isinstance(text, str) else text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadData(f"The HOCON text cannot be read: {octet_place(error)}") from error
    try:
        tree = parser.document()
        return _Resolver(tree, parser).resolved(tree, (), 0)
    except RecursionError as error:
        raise BadData("The HOCON text is nested too deeply") from error


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.copied = 0

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        line = self.text.count("\n", 0, self.at if at is None else at) + 1
        raise BadData(f"The HOCON text is malformed in line {line}: {message}")

    def copy(self, number: int) -> None:
        """Count keys and items that will be copied."""
        self.copied += number
        if self.copied > MAX_COPIED:
            raise BadData(f"The HOCON text joins lists or objects of more than {MAX_COPIED} items")

    def skip(self, pattern: re.Pattern[str] = _LINES) -> None:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def document(self) -> Any:
        self.skip()
        value = self.value() if self.peek() in ("{", "[") else self.members("")
        self.skip()
        if self.at < len(self.text):
            self.fail(f"expected the end, found {self.peek()!r}")
        return value

    # --- objects and arrays ---

    def members(self, end: str) -> dict[str, Any]:
        """
        members = (path (object | (":" | "=" | "+=") value))*    # with a comma or a line break between them
        """
        members: dict[str, Any] = {}
        while True:
            self.skip()
            if self.peek() == end:
                return members
            path = self.path()
            self.skip()
            if self.text.startswith("+=", self.at):
                self.at += 2
                self.put(members, path, _Appended(self.value()))
            elif self.peek() == "{":
                self.put(members, path, self.value())
            elif self.peek() in (":", "="):
                self.at += 1
                self.put(members, path, self.value())
            else:
                self.fail(f"expected ':', '=' or '{{' behind the key {'.'.join(path)}")
            self.separator(end)

    def separator(self, end: str) -> None:
        before = self.at
        self.skip()
        if self.peek() == ",":
            self.at += 1
        elif self.peek() != end and "\n" not in self.text[before : self.at]:
            message = f"expected ',' or a line break, found {self.peek()!r}, which a value may hold in quotes only"
            self.fail(message if self.peek() else "it ends too early")

    def path(self) -> tuple[str, ...]:
        parts: list[str] = [""]
        start = self.at
        while True:
            if self.text.startswith('"', self.at):
                parts[-1] += self.quoted()
            elif (match := _UNQUOTED.match(self.text, self.at)) is not None:
                if (
                    match[0] == "include"
                    and parts == [""]
                    and re.match(r'\s*(?:"|file\(|url\(|classpath\(|required\()', self.text[match.end() :])
                ):
                    self.fail("include is not supported here: put everything into one text")
                first, *more = match[0].split(".")
                parts[-1] += first
                parts.extend(more)
                self.at = match.end()
            else:
                blank = re.compile(r"[ \t]+(?=[^\s:={+,#/])").match(self.text, self.at)
                if blank is None or self.at == start:
                    break
                parts[-1] += blank[0]
                self.at = blank.end()
        if self.at == start:
            self.fail(f"expected a key, found {self.peek()!r}" if self.peek() else "it ends too early")
        if "" in parts and '""' not in self.text[start : self.at]:
            self.fail("a part of the key is empty")
        return tuple(part.strip() if part.strip() else part for part in parts)

    def items(self) -> list[Any]:
        items: list[Any] = []
        while True:
            self.skip()
            if self.peek() == "]":
                return items
            items.append(self.value())
            self.separator("]")

    def put(self, into: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
        for part in reversed(path[1:]):
            value = {part: value}
        there = into.get(path[0], _NOTHING)
        into[path[0]] = value if there is _NOTHING else self.combined(there, value)

    def combined(self, earlier: Any, value: Any) -> Any:
        if not isinstance(earlier, dict) or not isinstance(value, dict):
            return value if _is_plain(value) else _Merged(earlier, value)
        self.copy(len(earlier) + len(value))
        merged = {key: self.combined(earlier[key], item) if key in earlier else item for key, item in value.items()}
        return merged | {key: item for key, item in earlier.items() if key not in merged}

    # --- values ---

    def value(self) -> Any:
        """Everything up to the end of the line, a comma or a closing bracket: one value, or several that are joined."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"it is nested more than {MAX_DEPTH} levels deep")
        self.skip()
        parts: list[Any] = []
        while True:
            part = self.part()
            if part is _NOTHING:
                break
            parts.append(part)
            before = self.at
            self.skip(_SPACE)
            if self.peek() in ("", "\n", ",", "]", "}"):
                break
            parts.append(_Raw(re.sub(r"(#|//).*", "", self.text[before : self.at])))
        self.depth -= 1
        if not parts:
            self.fail(f"expected a value, found {self.peek()!r}" if self.peek() else "it ends too early")
        return parts[0] if len(parts) == 1 else _Joined(tuple(parts))

    def part(self) -> Any:
        char = self.peek()
        if char == "{":
            return self.bracketed("}")
        if char == "[":
            return self.bracketed("]")
        if char == '"':
            return self.quoted()
        reference = _REFERENCE.match(self.text, self.at)
        if reference is not None:
            start = self.at
            inner = _Parser(reference[2].strip())
            path = inner.path()
            self.at = reference.end()
            return _Reference(path, reference[1] is not None, start)
        match = _UNQUOTED.match(self.text, self.at)
        if match is None:
            return _NOTHING
        self.at = match.end()
        return _Raw(match[0])

    def bracketed(self, end: str) -> Any:
        self.at += 1
        value: Any = self.members("}") if end == "}" else self.items()
        self.at += 1
        return value

    def quoted(self) -> str:
        long = _LONG_STRING.match(self.text, self.at)
        if long is not None:
            self.at = long.end()
            return long[1]
        match = _STRING.match(self.text, self.at)
        if match is None:
            self.fail("a string is not closed")
        try:
            text: str = json.loads(match[0], strict=False)
        except ValueError:
            self.fail("a string has an escape that does not exist")
        self.at = match.end()
        return text


def _is_plain(value: Any) -> bool:
    """Return whether the value replaces any earlier value."""
    return not isinstance(value, dict | _Reference | _Joined | _Merged | _Appended)


class _Resolver:
    """Follows references; a reference of a key to itself means the key's earlier value."""

    def __init__(self, root: Any, parser: _Parser) -> None:
        self.root = root
        self.parser = parser
        self.open: list[tuple[str, ...]] = []
        self.count = 0
        self.characters = -len(parser.text)

    def resolved(self, value: Any, path: tuple[str, ...], depth: int, earlier: Any = _NOTHING) -> Any:
        self.count += 1
        if self.count > MAX_SIZE:
            raise BadData(f"The HOCON text has more than {MAX_SIZE} values when its references are followed")
        if depth > MAX_DEPTH:
            raise BadData(f"The HOCON text is nested more than {MAX_DEPTH} levels deep when its references are followed")
        if isinstance(value, dict):
            members = {key: self.resolved(item, (*path, key), depth + 1) for key, item in value.items()}
            return {key: item for key, item in members.items() if item is not _NOTHING}
        if isinstance(value, list):
            items = [self.resolved(item, path, depth + 1) for item in value]
            return [item for item in items if item is not _NOTHING]
        if isinstance(value, _Merged | _Appended):
            return self.merged(value, path, depth, earlier)
        if isinstance(value, _Reference):
            return self.follow(value, path, depth, earlier)
        if isinstance(value, _Joined):
            return self.joined(value, path, depth, earlier)
        text = value.text if isinstance(value, _Raw) else value
        if isinstance(text, str):
            self.count_characters(len(text))
        return _word(text) if isinstance(value, _Raw) else value

    def count_characters(self, number: int) -> None:
        self.characters += number
        if self.characters > MAX_TEXT:
            raise BadData(f"The HOCON text has more than {MAX_TEXT} characters when its references are followed")

    def merged(self, value: Any, path: tuple[str, ...], depth: int, before: Any) -> Any:
        """Return the final value of a key from all its values."""
        steps: list[Any] = []
        while isinstance(value, _Merged):
            steps.append(value.value)
            value = value.earlier
        steps.append(value)
        is_copy = False
        for step in reversed(steps):
            if isinstance(step, _Appended):
                if before is not _NOTHING and not isinstance(before, list):
                    raise BadData(f"The HOCON text joins values of different kinds for {'.'.join(path)}")
                if not is_copy:
                    before = list(before) if isinstance(before, list) else []
                    self.parser.copy(len(before))
                    is_copy = True
                if (item := self.resolved(step.item, path, depth + 1)) is not _NOTHING:
                    before.append(item)
            elif (now := self.resolved(step, path, depth + 1, before)) is not _NOTHING:
                before = self.deeply(before, now) if isinstance(before, dict) and isinstance(now, dict) else now
                is_copy = False
        return before

    def follow(self, reference: _Reference, path: tuple[str, ...], depth: int, earlier: Any) -> Any:
        if reference.path == path:
            value = earlier
        elif reference.path in self.open:
            self.parser.fail(f"the reference to {'.'.join(reference.path)} leads back to itself", reference.at)
        else:
            self.open.append(reference.path)
            value = self.at(reference.path, depth)
            self.open.pop()
        if value is _NOTHING and not reference.optional:
            self.parser.fail(f"there is no {'.'.join(reference.path)} for the reference to it", reference.at)
        return value

    def at(self, path: tuple[str, ...], depth: int) -> Any:
        value: Any = self.root
        for index, part in enumerate(path):
            if isinstance(value, _Merged | _Reference | _Joined):
                value = self.resolved(value, path[:index], depth + 1)
            if not isinstance(value, dict) or part not in value:
                return _NOTHING
            value = value[part]
        return self.resolved(value, path, depth + 1)

    def joined(self, value: _Joined, path: tuple[str, ...], depth: int, earlier: Any) -> Any:
        parts: list[Any] = []
        for part in value.parts:
            made = part.text if isinstance(part, _Raw) else self.resolved(part, path, depth + 1, earlier)
            if made is not _NOTHING:
                parts.append(made)
        solid = [part for part in parts if not isinstance(part, str) or part.strip()]
        if solid and all(isinstance(part, dict) for part in solid):
            merged: dict[str, Any] = {}
            for part in solid:
                merged = self.deeply(merged, part)
            return merged
        if solid and all(isinstance(part, list) for part in solid):
            self.parser.copy(sum(map(len, solid)))
            return [item for part in solid for item in part]
        if any(isinstance(part, dict | list) for part in solid):
            raise BadData(f"The HOCON text joins values of different kinds for {'.'.join(path)}")
        if not parts:
            return _NOTHING
        texts = [part if isinstance(part, str) else _shown(part) for part in parts]
        self.count_characters(sum(map(len, texts)))
        text = "".join(texts)
        return _word(text) if all(isinstance(part, _Raw) for part in value.parts) else text

    def deeply(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        """Return both merged, the right one winning; its keys come first, as other readers have it."""
        self.parser.copy(len(left) + len(right))
        merged: dict[str, Any] = {}
        for key, item in right.items():
            old = left.get(key)
            merged[key] = self.deeply(old, item) if isinstance(old, dict) and isinstance(item, dict) else item
        return merged | {key: item for key, item in left.items() if key not in merged}


def _word(text: str) -> Any:
    """Unquoted text: a word of HOCON, a number as Ruby reads it (octal after a zero, integers without a point), or text."""
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.fullmatch(text)
    if number is None or len(text) > 400:
        return text
    if not number[1] and not number[2]:
        if re.match(r"-?0\d", text) is None:
            return int(text)
        return text if "8" in text or "9" in text else int(text, 8)
    made = float(text)
    if not math.isfinite(made):
        raise BadData(f"The HOCON text has a number that is too large: {text}")
    return int(made) if made.is_integer() else made


def _shown(value: Any) -> str:
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
