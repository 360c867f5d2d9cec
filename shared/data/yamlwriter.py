"""
YAML in Ruby's style, written fast: reports and state files are large, and a general emitter takes longer than the run itself.

Block style, keys in their order, no aliases; text is quoted wherever YAML 1.1 or Ruby would read something else out of it.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from . import plainjson


class Symbol(str):
    """A Ruby symbol: text that is written as `:text`."""

    __slots__ = ()


class OldSymbol(str):
    """A Ruby symbol as 3.8 writes it: `!ruby/sym text`."""

    __slots__ = ()


class YamlTimestamp(str):
    """A time, `2026-11-20 21:48:31.123456789 +00:00`, that is written without quotes, so that readers take it for a time."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RubyObject:
    """A map that is written with Ruby's tag of `cls`, e.g. `Puppet::Node::Facts`."""

    cls: str
    fields: dict[str, Any]


# What needs no quotes: it begins with a letter, `/` or `_`, has only these characters, and neither `: ` nor an outer or second blank.
_PLAIN = re.compile(r"[\w/.,+@%()\[\]{}=;~$<>*&!?|^'\"\\ :-]*", re.ASCII)
_PLAIN_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/")
_WORDS = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null"))  # in any case: not text
_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE = 256 * 1024  # characters that are looked at in one step: it holds all threads of the process
_STEP = "  "  # of indentation
_LONG = 120  # characters above which a key takes the explicit form; readers stop at 1024


class CannotWrite(TypeError):
    """A value of a type that has no form here."""


class WrittenItems:
    """
    The lines of lists and maps on the second level of documents, by their key and their JSON.

    Most facts of a node repeat, from run to run and from node to node. May be used by several threads.

    Args:
        size: The approximate number of cached characters.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._added = 0
        self._lines: dict[tuple[str, bytes], str] = {}
        self._older: dict[tuple[str, bytes], str] = {}  # what is not used again before the others are as many as may be kept is dropped

    def find(self, key: tuple[str, bytes]) -> str | None:
        """Return the lines of an item, None when they are not cached."""
        lines = self._lines.get(key)
        if lines is None and (lines := self._older.get(key)) is not None:
            self.keep(key, lines)
        return lines

    def keep(self, key: tuple[str, bytes], lines: str) -> None:
        """Keep the lines of an item."""
        self._lines[key] = lines
        self._added += len(lines) + len(key[1])
        if self._added > self.size // 2:
            self._older, self._lines, self._added = self._lines, {}, 0


def write(data: Any, items: WrittenItems | None = None) -> str:
    """
    Return one document, from `---` to its last newline; raise CannotWrite for a value that is neither a map, a list nor a scalar.

    Args:
        items: Caches the lines of earlier documents.
    """
    document = _Document(items)
    document.node(data, "---", "")
    return "\n".join(document.lines) + "\n"


class _Document:
    """The lines of one document. One-line texts are cached in their written form, because reports repeat them."""

    def __init__(self, items: WrittenItems | None = None) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}
        self.items = items

    def node(self, value: Any, head: str, indent: str) -> None:
        """Return `value` after `head` (`---`, `key:` or `-`); its contents are on further lines, at `indent`."""
        if isinstance(value, str):
            self.lines.append(f"{head} {self.text(value, indent)}")
        elif value is None:
            self.lines.append(head)
        elif value is False or value is True:
            self.lines.append(f"{head} true" if value else f"{head} false")
        elif isinstance(value, list | tuple):
            self.sequence(value, head, indent)
        elif isinstance(value, RubyObject):
            self.mapping(value.fields, f"{head} !ruby/object:{value.cls}", indent)
        elif isinstance(value, dict | Mapping):  # asking a dict whether it is a Mapping takes ten times as long
            self.mapping(value, head, indent)
        else:
            self.lines.append(f"{head} {_scalar(value)}")

    def mapping(self, value: Mapping[Any, Any], head: str, indent: str) -> None:
        if not value:
            self.lines.append(f"{head} {{}}")
            return
        # A map in a list begins beside its dash.
        beside = head.endswith("-") and head != "---"
        if not beside:
            self.lines.append(head)
        if indent == _STEP and not beside and self.items is not None:
            self.remembered_items(value, self.items)
        else:
            self.add_items(value, head, indent, beside=beside)

    def remembered_items(self, value: Mapping[Any, Any], items: WrittenItems) -> None:
        """Add the items of a map in the second level, as they were written before."""
        for key, item in value.items():
            exact = plainjson.dumps_exactly(item) if type(key) is str and type(item) in (dict, list) else None
            if exact is None:
                self.add_items({key: item}, "", _STEP, beside=False)
                continue
            lines = items.find((key, exact))
            if lines is None:
                first = len(self.lines)
                self.add_items({key: item}, "", _STEP, beside=False)
                lines = "\n".join(self.lines[first:])
                del self.lines[first:]
                items.keep((key, exact), lines)
            self.lines.append(lines)

    def add_items(self, value: Mapping[Any, Any], head: str, indent: str, *, beside: bool) -> None:
        """Add the items of a map, the first one in the line of the dash in `head`."""
        inner, lines, known = indent + _STEP, self.lines, self.known
        for number, (key, item) in enumerate(value.items()):
            text = known.get(key) if type(key) is str else None
            if text is None:
                text = self.text(key, indent) if isinstance(key, str) else _scalar(key)
            if len(text) > _LONG or "\n" in text:
                text = _quoted(key) if isinstance(key, str) else text
                lead, text = f"? {text}", ":"
                lines.append(f"{head} {lead}" if beside and number == 0 else f"{indent}{lead}")
                start = indent + text
            else:
                start = f"{head} {text}:" if beside and number == 0 else f"{indent}{text}:"
            kind = type(item)  # most items are one of the following, for which a call would take as long as all the rest
            if kind is str and (text := known.get(item)) is not None:
                lines.append(f"{start} {text}")
            elif item is None:
                lines.append(start)
            elif kind is bool:
                lines.append(f"{start} true" if item else f"{start} false")
            elif kind is int:
                lines.append(f"{start} {item}")
            else:
                # A list stands at its key's own indentation.
                self.node(item, start, indent if isinstance(item, list | tuple) else inner)

    def sequence(self, value: list[Any] | tuple[Any, ...], head: str, indent: str) -> None:
        if not value:
            self.lines.append(f"{head} []")
            return
        beside = head.endswith("-") and head != "---"
        if not beside:
            self.lines.append(head)
        inner, known = indent + _STEP, self.known
        for number, item in enumerate(value):
            dash = f"{head} -" if beside and number == 0 else f"{indent}-"
            if type(item) is str and (text := known.get(item)) is not None:
                self.lines.append(f"{dash} {text}")
            else:
                self.node(item, dash, inner)

    def text(self, text: str, indent: str) -> str:
        if type(text) is not str:
            return _text(text, indent)
        known = self.known.get(text)
        if known is None:
            known = _text(text, indent)
            if "\n" not in text:  # the others depend on the indentation
                self.known[text] = known
        return known


def _text(text: str, indent: str) -> str:
    if type(text) is not str:
        if isinstance(text, Symbol):
            return f":{text}" if _is_plain(text) else f":{_quoted(text)}"
        if isinstance(text, YamlTimestamp):
            return str(text)
        if isinstance(text, OldSymbol):
            return f"!ruby/sym {_text(str(text), indent)}"
        text = str(text)
    if _is_plain(text):
        if len(text) > 5 or text.lower() not in _WORDS:
            return text
        return f'"{text}"' if text in ("y", "Y", "n", "N") else f"'{text}'"  # as Ruby does
    if "\n" in text:
        return _block(text, indent) or _quoted(text)
    if not _is_printable(text):
        return _quoted(text)
    return "'" + text.replace("'", "''") + "'"


def _block(text: str, indent: str) -> str:
    """Return several lines as they are; '' when that would not be read back the same."""
    body = text.rstrip("\n")
    if not body or body.lstrip("\n")[0] == " " or not _is_printable(text.replace("\n", "")):
        return ""
    ends = len(text) - len(body)
    mark = "|-" if ends == 0 else "|" if ends == 1 else "|+"
    pad = indent or "  "
    lines = [pad + line if line else "" for line in body.split("\n")]
    return "\n".join([mark, *lines, *[""] * max(ends - 1, 0)])


def _is_plain(text: str) -> bool:
    """Return whether a text needs no quotes."""
    if text[:1] not in _PLAIN_FIRST or text[-1] in " :" or ": " in text or "  " in text:
        return False
    return all(_PLAIN.fullmatch(text, start, start + _PIECE) for start in range(0, len(text), _PIECE))


def _is_printable(text: str) -> bool:
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return all(piece.isprintable() if piece.isascii() else _unprintable().search(piece) is None for piece in pieces)


@cache
def _unprintable() -> re.Pattern[str]:
    """Return the pattern of characters that YAML must escape; compiling it takes 4 ms, and few processes need it."""
    return re.compile("[^\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\U00010000-\U0010ffff]")


def _quoted(text: str) -> str:
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    if any(_SURROGATE.search(piece) for piece in pieces):  # octets that are not UTF-8 (see plainjson.loads_pson)
        return f'!!binary "{base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()}"'
    return '"' + "".join(_escaped_text(json.dumps(piece, ensure_ascii=False)[1:-1]) for piece in pieces) + '"'


def _escaped_text(text: str) -> str:
    return text if text.isascii() and text.isprintable() else _unprintable().sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _scalar(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    raise CannotWrite(f"YAML has no form for a {type(value).__name__}")


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # Without a point, 1e-05 is read as text.
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
