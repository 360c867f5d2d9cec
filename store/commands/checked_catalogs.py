"""The cache of checked catalogs, so that a node's unchanged catalog is neither checked nor hashed again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar, overload

from ..jsontext import dump_json
from .commands import Json

T = TypeVar("T")

MOST = 20_000  # catalogs, of 200 bytes each


class CheckedCatalog(NamedTuple):
    """The cached data of a catalog: its `catalog_hash`, and the bytes of its resources and edges as JSON."""

    hash: str
    size: int


class CheckedCatalogs:
    """The identities of the catalogs that were checked last, by digests of their resources and edges as they were sent."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._catalogs: OrderedDict[bytes, CheckedCatalog] = OrderedDict()

    def digest(self, certname: str, resources: Json, edges: Json) -> bytes:
        """Return a digest that only equal contents have. It replaces a check, so the hash must be collision-resistant."""
        return hashlib.sha256(dump_json([certname, resources, edges])).digest()

    def digest_of_text(self, certname: str, content: bytes) -> bytes:
        """Return the same for a content as the text that was sent."""
        digest = hashlib.sha256(dump_json(certname))
        digest.update(content)
        return digest.digest()

    def find(self, digest: bytes) -> CheckedCatalog | None:
        """Return the cached data of a checked content; None for an unknown one."""
        known = self._catalogs.get(digest)
        if known is not None:
            self._catalogs.move_to_end(digest)
        return known

    def add(self, digest: bytes, catalog_hash: str, size: int = 0) -> None:
        """Remember a content that was checked; the one that was not sent for longest is forgotten."""
        self._catalogs[digest] = CheckedCatalog(catalog_hash, size)
        if len(self._catalogs) > self._most:
            self._catalogs.popitem(last=False)


class DeferredSequence(Sequence[T]):
    """A sequence that is made when somebody looks into it."""

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self._make = make

    @cached_property
    def _items(self) -> Sequence[T]:
        return self._make()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]
