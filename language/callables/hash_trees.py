"""Hashes that `Hash.new(value, 'tree')` makes of paths."""

from __future__ import annotations

from typing import Any

from shared.errors import EvaluationError

from ..values.core import Value, key_of
from ..values.labels import implicit_kind


def hash_from_paths(pairs: list[tuple[list[Any], Value]], all_hashes: bool) -> Value:
    """Return nested hashes for `[path, value]` pairs, and arrays where values are arrays (hashes with `all_hashes`)."""

    def plain(value: Value) -> Value:
        if all_hashes and isinstance(value, list):
            return {index: plain(item) for index, item in enumerate(value)}
        return dict(value) if isinstance(value, dict) else list(value) if isinstance(value, list) else value

    root: dict[Any, Value] = {}
    for path, value in pairs:
        if not path:
            if isinstance(value, list):
                root.update(enumerate(value))
            elif isinstance(value, dict):
                root.update(value)
            else:
                raise EvaluationError(f"no implicit conversion of {implicit_kind(value)} into Hash")
            continue
        place: Any = root
        for key in path[:-1]:
            place = place[key] if isinstance(place, list) else place.setdefault(key_of(key), {})
        last = path[-1]
        if isinstance(place, list):
            place.extend([None] * (last + 1 - len(place)))
            place[last] = plain(value)
        else:
            place[key_of(last)] = plain(value)
    return root
