"""
Large maps as the JSON of a peer's message: unpacked only by code that reads the values.

A program that passes facts on needs no object for each of their million values; making and writing them would stop its threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ..data import plainjson


class _TakenApart(Mapping[str, Any]):
    """A map whose values are made when somebody asks for the first."""

    @cached_property
    def _values(self) -> dict[str, Any]:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class PackedValues(_TakenApart):
    """
    A map that is JSON in `packed`, without the keys in `hidden`.

    It is not a dict, so that code which would write it without its values fails.
    """

    def __init__(self, packed: bytes, hidden: frozenset[str] = frozenset()) -> None:
        self.packed = packed
        self.hidden = hidden

    @cached_property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = plainjson.loads_trusted(self.packed)
        return {key: value for key, value in values.items() if key not in self.hidden} if self.hidden else values

    def without(self, names: frozenset[str]) -> PackedValues:
        """Return the same map without these keys as well."""
        return PackedValues(self.packed, self.hidden | names)


class LayeredValues(_TakenApart):
    """The keys of `above`, and those of `below` that are not in it."""

    def __init__(self, above: Mapping[str, Any], below: PackedValues) -> None:
        self.above = above
        self.below = below

    @cached_property
    def _values(self) -> dict[str, Any]:
        return {**self.below, **self.above}
