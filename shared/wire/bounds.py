"""How deep and how large plain data may be that a peer sends, so that whatever was accepted can be stored, read back and compiled."""

from __future__ import annotations

from typing import Any

from ..data.plainyaml import MAX_DEPTH, MAX_NODES
from ..errors import BadData


def check_bounds(data: Any, what: str) -> None:
    """
    BadData when `data` has more levels or nodes than a YAML document may have.

    Args:
        what: what the data is, for the message.
    """
    level, depth, nodes = [data], 0, 1
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise BadData(f"{what} nested more than {MAX_DEPTH} levels deep")
        below: list[Any] = []
        for collection in level:
            if isinstance(collection, dict):
                nodes += 2 * len(collection)
                below += [value for value in collection.values() if isinstance(value, dict | list)]
            elif isinstance(collection, list):
                nodes += len(collection)
                below += [value for value in collection if isinstance(value, dict | list)]
            if nodes > MAX_NODES:
                raise BadData(f"{what} of more than {MAX_NODES} keys and values")
        level = below
