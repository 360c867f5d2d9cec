"""The paths to the leaves of a fact: values that are neither lists nor objects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import orjson

from ..commands.commands import Json, PayloadRejected

MAX_PATHS = 2**22
"""Characters of all paths to the leaves of a node's facts; each counts 100 more. A long key is part of every path below it."""

_TYPES = {str: "string", int: "integer", float: "float", bool: "boolean", type(None): "null"}


class Leaf(NamedTuple):
    """A path to a leaf and the leaf's type: a row of `fact_paths`."""

    name: str
    """The fact at the top level."""
    pointer: str
    """The path inside the fact's value, as SQLite writes it."""
    type: str
    path: str
    """The whole path as a JSON array."""
    depth: int


class PathRoom:
    """The limit of the paths of a node's facts; raises PayloadRejected when it is exceeded."""

    def __init__(self) -> None:
        self._left = MAX_PATHS

    def take(self, paths: int, length: int) -> None:
        """Count this many paths of a length against the limit."""
        self._left -= paths * (length + 100)
        if self._left < 0:
            raise PayloadRejected(f"the paths to the values of the facts have more than {MAX_PATHS} characters (each counts 100 more)")


@lru_cache(4096)
def _quoted(key: str) -> str:
    """Return a key as JSON. All nodes have the same ones."""
    return orjson.dumps(key).decode()


def leaves(name: str, value: Json, room: PathRoom | None = None) -> Iterator[Leaf]:
    """Yield the paths to all leaves of a fact, up to the limit. Empty lists and objects have none."""
    pending: list[tuple[str, str, int, Json]] = [("$", _quoted(name), 0, value)]
    while pending:
        pointer, path, depth, inner = pending.pop()
        if room is not None and isinstance(inner, dict | list):
            room.take(len(inner), len(path))
        if isinstance(inner, dict):
            for key, member in inner.items():
                quoted = _quoted(key)
                pending.append((f"{pointer}.{quoted}", f"{path},{quoted}", depth + 1, member))
        elif isinstance(inner, list):
            pending += ((f"{pointer}[{index}]", f"{path},{index}", depth + 1, element) for index, element in enumerate(inner))
        else:
            yield Leaf(name, pointer, _TYPES[type(inner)], f"[{path}]", depth)
