"""
The cache of catalogs that need not be compiled again, because nothing that their compilation read has changed.

A catalog depends on the environment's own files, which `LoadedEnvironments` watches; on what it read of its node (`NodeDependencies`);
and on the files that are read anew each time: data, templates. It is answered from memory when all of that is unchanged, with the lines
that its compilation logged. A catalog that depends on something else
(programs, random numbers, the time, functions of modules that do not say `pure`) is compiled every time.
"""

from __future__ import annotations

import uuid as uuids
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..compiler.evaluation.dependencies import NodeDependencies
from ..compiler.host import NodeInput
from ..compiler.log import LogEntry
from ..files.code_files import are_unchanged

Seen = Mapping[str, tuple[int, ...] | None]
_LEVEL = 1
_ENTRY = 2_000  # octets that an entry takes beside its catalog, roughly; and for each file
_FILE = 200


@dataclass(frozen=True, slots=True)
class CachedCatalog:
    """
    A catalog, and what it depends on.

    Attributes:
        environment: The loaded environment; another object is another environment.
        code_id: The version of the code that it was compiled from.
        body: The catalog's JSON, compressed.
        uuid: The catalog's UUID, as it stands in the JSON.
        logs: What was logged while it was compiled.
    """

    environment: object
    code_id: str | None
    reads: NodeDependencies
    values: str
    files: Seen
    body: bytes
    uuid: str
    logs: Sequence[LogEntry]

    def is_valid_for(self, environment: object, node: NodeInput, code_id: str | None) -> bool:
        """Return whether a compilation would give this catalog again."""
        return (
            self.environment is environment
            and self.code_id == code_id
            and self.reads.values(node) == self.values
            and are_unchanged(self.files)
        )

    @property
    def size(self) -> int:
        """About how many octets the entry takes."""
        return _ENTRY + len(self.body) + len(self.values) + _FILE * len(self.files)


class CatalogCache:
    """
    The last catalog of each node, and its last with exported resources; the least recently used are dropped first.

    Attributes:
        limit: Octets for all; 0: no catalog is stored.
        hits: How many catalogs were answered from the cache.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.hits = 0
        self._catalogs: OrderedDict[tuple[str, str, bool], CachedCatalog] = OrderedDict()

    def get(
        self, environment: object, node: NodeInput, code_id: str | None, *, exported: bool = False
    ) -> tuple[bytes, Sequence[LogEntry]] | None:
        """Return the catalog's JSON under a new UUID and what its compilation logged; None when it has to be compiled."""
        key = node.environment, node.certname, exported
        cached = self._catalogs.get(key)
        if cached is None or not cached.is_valid_for(environment, node, code_id):
            return None
        self._catalogs.move_to_end(key)
        self.hits += 1
        return zlib.decompress(cached.body).replace(cached.uuid.encode(), str(uuids.uuid4()).encode(), 1), cached.logs

    def put(
        self,
        environment: object,
        node: NodeInput,
        code_id: str | None,
        *,
        reads: NodeDependencies,
        files: Seen,
        body: bytes,
        uuid: str,
        logs: Sequence[LogEntry],
        exported: bool = False,
    ) -> None:
        """Keep a catalog that was just compiled; or forget the node's last one, when this one may be another the next time."""
        key = node.environment, node.certname, exported
        self._drop(key)
        if reads.uncacheable_reason or self.limit <= 0:
            return
        cached = CachedCatalog(environment, code_id, reads, reads.values(node), files, zlib.compress(body, _LEVEL), uuid, list(logs))
        if cached.size > self.limit:
            return
        self._catalogs[key] = cached
        self.size += cached.size
        while self.size > self.limit:
            self._drop(next(iter(self._catalogs)))

    def forget(self) -> None:
        self._catalogs.clear()
        self.size = 0

    def _drop(self, key: tuple[str, str, bool]) -> None:
        cached = self._catalogs.pop(key, None)
        if cached is not None:
            self.size -= cached.size
