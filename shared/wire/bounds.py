"""The limits of the depth and size of a peer's plain data, so that accepted data can be stored, read back and compiled."""

from __future__ import annotations

from typing import Any

from ..data.plainyaml import MAX_DEPTH, MAX_NODES
from ..errors import BadData

_COLLECTIONS = (dict, list)
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_ROUNDS = 40  # of taking away innermost pairs, of which each round takes one level or two


def is_within_bounds(text: bytes) -> bool:
    """
    Return whether a JSON text holds data that is clearly within the bounds, with some levels to spare, without looking at the data.

    A bracket in a string may make it say no.
    """
    if len(text) > MAX_NODES:
        return False
    brackets = text.translate(None, _NO_BRACKETS)
    for _ in range(_ROUNDS):
        before = len(brackets)
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(brackets) == before:
            break
    return not brackets


def check_bounds(data: Any, what: str) -> None:
    """
    Raise BadData when `data` has more levels or nodes than a YAML document may have.

    Args:
        what: what the data is, for the message.
    """
    level, depth, nodes = [data], 0, 1
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise BadData(f"{what} nested more than {MAX_DEPTH} levels deep")
        maps = [collection for collection in level if isinstance(collection, dict)]
        lists = [collection for collection in level if isinstance(collection, list)]
        nodes += 2 * sum(map(len, maps)) + sum(map(len, lists))
        if nodes > MAX_NODES:  # before the next level is made of them
            raise BadData(f"{what} of more than {MAX_NODES} keys and values")
        level = [value for collection in maps for value in collection.values() if isinstance(value, _COLLECTIONS)]
        level += [value for collection in lists for value in collection if isinstance(value, _COLLECTIONS)]
