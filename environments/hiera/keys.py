"""The keys of lookups: how a text is parsed, and the path that a key digs into a value. Source: language reference 18.4."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from language.values.core import MISSING, MaybeValue, Value, key_of
from language.values.labels import ruby_class

from .errors import DataError

_INDEX = re.compile(r":?[+-]?[0-9]+")
_SEGMENT = re.compile(r"""\s*"([^"]+)"\s*|\s*'([^']+)'\s*|([^'".]+)""")

Segment = str | int


class LookupKey:
    """
    A parsed key.

    Attributes:
        text: the key as it was written.
        root: its first segment, the one that data files have.
        segments: the path that is dug into the value of the root.
        module: the module whose data may have the key; None when the root has no `::`.
    """

    __slots__ = ("module", "root", "segments", "text")

    def __init__(self, text: str, segments: Sequence[Segment]) -> None:
        self.text = text
        self.root = str(segments[0])
        self.segments = tuple(segments[1:])
        module, colons, _ = self.root.partition("::")
        self.module = module if colons else None

    def __str__(self) -> str:
        return self.text

    def wrap_path(self, value: Value) -> Value:
        """Return a collection that has `value` where this key digs: the inverse of digging."""
        for segment in reversed(self.segments):
            value = [*[None] * segment, value] if isinstance(segment, int) else {segment: value}
        return value


@lru_cache(maxsize=50_000)
def parse_key(text: str) -> LookupKey:
    """Return the key that a text denotes; raise DataError when its syntax is wrong."""
    return LookupKey(text, split_path(text, "key: '" + text + "'"))


def split_path(text: str, subject: str) -> tuple[Segment, ...]:
    """
    Return the segments of a path such as `a.b.1."x.y"`; a number without quotes becomes an index.

    Raises:
        DataError: the syntax is wrong; the message names `subject`.
    """
    segments = _split(text)
    if segments is None:
        raise DataError(f"Syntax error in {subject}")
    return segments


@lru_cache(maxsize=20_000)
def _split(text: str) -> tuple[Segment, ...] | None:
    """Return the segments of a path; None when its syntax is wrong."""
    if text and "." not in text and '"' not in text and "'" not in text:
        return (text,)
    segments: list[Segment] = []
    offset = 0
    while True:
        match = _SEGMENT.match(text, offset)
        if match is None:
            return None
        quoted, unquoted = match[1] or match[2], (match[3] or "").strip()
        segments.append(quoted if quoted is not None else int(unquoted.lstrip(":")) if _INDEX.fullmatch(unquoted) else unquoted)
        offset = match.end()
        if offset == len(text):
            return tuple(segments)
        if text[offset] != ".":
            return None
        offset += 1


def dig_one(value: Value, segment: Segment, key: str) -> MaybeValue:
    """
    Return the element of a collection at one segment of a path; MISSING when it has none.

    Raises:
        DataError: the value is not a collection, or an array is dug by a name. The message names `key`.
    """
    if value is None:
        return MISSING
    if isinstance(value, list) and isinstance(segment, int):
        element: MaybeValue = value[segment] if 0 <= segment < len(value) else MISSING
        return element
    if isinstance(value, dict):
        entry: MaybeValue = value.get(key_of(segment), MISSING)
        return entry
    raise DataError(
        f"Data Provider type mismatch: Got {ruby_class(value)} when a hash-like object was expected to access value using "
        f"'{segment}' from key '{key}'"
    )
