"""
The cache of catalogs that need not be compiled again, because their inputs are unchanged.

A catalog depends on the environment's own files, which `LoadedEnvironments` watches, and of another version of them on those that it
used (`CodeDependencies`); on what it read of its node (`NodeDependencies`);
on the files that are read anew each time: data, templates; on the results of programs and of Ruby that may read something else, which are
called again (`RepeatedCalls`); and on a PuppetDB's answers to what it asked, which is asked again (`StoreQuestions`). It is answered from
memory when all of that is unchanged, with the lines that its compilation logged. A catalog that depends on something else (random numbers,
the time, Python functions of modules that do not say `pure`) is compiled every time.
"""

from __future__ import annotations

import uuid as uuids
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from environments.files.code_files import SeenFiles
from environments.loaded import LoadedEnvironment
from environments.repeated_calls import RepeatableCall
from environments.store_questions import AskedQuestion
from language.errors.locations import FINAL
from language.evaluation.dependencies import NodeDependencies, UncacheableReason
from language.host import NodeInput
from language.log import LogEntry
from shared.data import plainjson
from shared.wire.packed_catalogs import PackedCatalog

from ..dependencies.compiled_from import CodeDependencies
from ..observability.catalog_origins import MEMORY, NEW
from .compiled_catalog import CompiledCatalog

_ENTRY = 2_000  # octets that an entry takes beside its catalog, roughly; and for each file and question
_FILE = 200
_QUESTION = 1_000


@dataclass(frozen=True, slots=True)
class CachedCatalog:
    """
    A catalog and its inputs.

    Attributes:
        environment: The loaded environment; another object is another environment, or another version of its code.
        code: The part of it that the catalog depends on; None: all of it.
        version: The configuration version as it stands in the JSON. It and the code id only name what the catalog was made of: those of the
            next request replace them.
        compiled: The catalog, and what a PuppetDB gets of it, with the UUID as it is.
        questions: What it asked a PuppetDB.
        calls: The calls whose results it depends on.
        uuid: The catalog's UUID, as it stands in the JSON.
        logs: What was logged while it was compiled.
    """

    environment: LoadedEnvironment
    version: int | str
    reads: NodeDependencies
    code: CodeDependencies | None
    values: str
    files: SeenFiles
    questions: Sequence[AskedQuestion]
    calls: Sequence[RepeatableCall]
    compiled: CompiledCatalog
    uuid: str
    logs: Sequence[LogEntry]

    def change_for(
        self, environment: LoadedEnvironment, node: NodeInput, are_answers_unchanged: Callable[[Sequence[AskedQuestion]], bool]
    ) -> str:
        """
        Return the reason, one of ORIGINS, why a compilation may give another catalog; MEMORY when there is none.

        Its calls and queries are repeated only when all other inputs are unchanged.
        """
        # Cheapest first: most changes are a new environment or new facts.
        if self.environment is not environment and (self.code is None or not self.code.are_equal_in(environment)):
            return "code"
        if self.reads.values(node) != self.values:
            return "node"
        if not self.files.are_unchanged(environment.live.root, environment.live.pin):
            return "files"
        if not environment.host.calls.are_unchanged(node.certname, self.calls):
            return "answers"
        # Last, because the PuppetDB has to be asked.
        return MEMORY if are_answers_unchanged(self.questions) else "answers"

    def named_anew(self, text: bytes, uuid: str, versions: tuple[int | str, int | str], code_id: str | None) -> bytes:
        """
        Return the catalog's JSON, or its beginning up to the resources, with another UUID, version and code id.

        Args:
            versions: The old version in it, and the new one.
        """
        # An agent sees each catalog as a new one; two reports must not have the same catalog_uuid.
        text = text.replace(self.uuid.encode(), uuid.encode(), 1)
        return text.replace(_members(versions[0], self.compiled.code_id), _members(versions[1], code_id), 1)

    @property
    def size(self) -> int:
        """About how many octets the entry takes."""
        return (
            _ENTRY
            + len(self.compiled.text.head)
            + len(self.compiled.text.rest)
            + len(self.compiled.stored)
            + len(self.values)
            + _FILE * len(self.files)
            + _QUESTION * len(self.questions)
            + sum(call.size for call in self.calls)
            + (self.code.size if self.code is not None else 0)
        )


def _members(version: int | str, code_id: str | None) -> bytes:
    """Return two members in JSON. Within a text their quotes would be escaped, so they are found nowhere else before the resources."""
    return b'"version":' + plainjson.dumps(version) + b',"code_id":' + plainjson.dumps(code_id)


class CatalogCache:
    """
    The last catalog of each node by its recipients: agents, callers who also want exported resources, and a PuppetDB in addition to them.

    The least recently used are dropped first.

    Attributes:
        limit: Octets for all; 0: no catalog is stored.
        hits: How many catalogs were answered from the cache.
        origin: Where the last catalog came from, one of ORIGINS.
        reasons: Why the last catalog, which has just been compiled, is not in the cache; none when it is.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.hits = 0
        self.origin = NEW
        self.reasons: Sequence[UncacheableReason] = ()
        self._catalogs: OrderedDict[tuple[str, str, bool, bool], CachedCatalog] = OrderedDict()

    def get(
        self,
        environment: LoadedEnvironment,
        node: NodeInput,
        code_id: str | None,
        *,
        are_answers_unchanged: Callable[[Sequence[AskedQuestion]], bool],
        exported: bool = False,
        is_stored: bool = False,
    ) -> tuple[CompiledCatalog, Sequence[LogEntry]] | None:
        """Return the catalog with a new UUID and a code id, and the log of its compilation; None when it has to be compiled."""
        key = node.environment, node.certname, exported, is_stored
        self.reasons = ()
        cached = self._catalogs.get(key)
        self.origin = NEW if cached is None else cached.change_for(environment, node, are_answers_unchanged)
        if cached is None or self.origin != MEMORY:
            return None
        if cached.environment is not environment:  # of this version, too
            cached = self._catalogs[key] = replace(cached, environment=environment)
        self._catalogs.move_to_end(key)
        self.hits += 1
        uuid = str(uuids.uuid4())
        version = environment.version
        text = cached.compiled.text.map_head(lambda head: cached.named_anew(head, uuid, (cached.version, version), code_id))
        stored = cached.compiled.stored
        if stored:
            stored = (
                PackedCatalog.unpack(stored)
                .map_rest(lambda rest: cached.named_anew(rest, uuid, (str(cached.version), str(version)), code_id))
                .pack()
            )
        return replace(cached.compiled, text=text, stored=stored, code_id=code_id), cached.logs

    def put(self, cached: CachedCatalog, node: NodeInput, *, exported: bool = False) -> None:
        """Keep a catalog that was just compiled; or forget the node's last one, when this one may be another the next time."""
        key = node.environment, node.certname, exported, bool(cached.compiled.stored)
        self._drop(key)
        if cached.reads.uncacheable_reasons or self.limit <= 0:
            self.reasons = cached.reads.uncacheable_reasons
            return
        if cached.size > self.limit:
            self.reasons = [UncacheableReason(f"the catalog takes more than catalog_memo ({self.limit} octets)", FINAL)]
            return
        self._catalogs[key] = cached
        self.size += cached.size
        while self.size > self.limit:
            # The one that was not used for the longest time: get() moves each to the end.
            self._drop(next(iter(self._catalogs)))

    def forget(self) -> None:
        self._catalogs.clear()
        self.size = 0

    def _drop(self, key: tuple[str, str, bool, bool]) -> None:
        cached = self._catalogs.pop(key, None)
        if cached is not None:
            self.size -= cached.size
