"""Fakes for tests of providers: sources in memory, and a run over a few resources."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.providers import ProviderRun, builtin_providers
from agent.providers.file.context import FileContext
from agent.servers.dipper import bucket_factory
from agent.servers.sources import LocalSources
from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile
from agent.transaction.context import ApplyContext
from agent.transaction.run import apply_catalog
from shared.errors import PeerUnreachable
from shared.file_serving.metadata import MetadataOptions
from shared.filesystem.checksums import Algorithm, Checksum
from shared.models.file_metadata import FileMetadata, MetadataChecksum
from shared.models.report import ResourceStatus
from shared.ral import Platform, Providers, Type
from shared.ral.catalog import RalCatalog
from shared.types import builtin_types


def metadata_of(path: str, content: bytes, *, algorithm: Algorithm = "sha256", **more: Any) -> FileMetadata:
    """What an honest server would say of a file."""
    total = MetadataChecksum(type=algorithm, value=str(Checksum.of(algorithm, content)))
    return FileMetadata(name=path, path=path, type="file", checksum=total, **more)


@dataclass
class MemorySources:
    """
    `puppet:` URLs → bytes; `file:` URLs are the machine's own.

    `told` overrides what is said about a URL (a lying server), `cut` breaks a content off after so many bytes; `asked`
    lists all questions.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    told: Mapping[str, FileMetadata] = field(default_factory=dict)
    trees: Mapping[str, list[FileMetadata]] = field(default_factory=dict)
    cut: int | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def metadata(self, source: str, wanted: MetadataOptions) -> FileMetadata | None:
        if source.startswith("file:"):
            return await LocalSources().metadata(source, wanted)
        self.asked.append(("metadata", source))
        if source in self.told:
            return self.told[source]
        content = self.files.get(source)
        return None if content is None else metadata_of(source, content, algorithm=wanted.checksum_type)

    async def search(self, source: str, wanted: MetadataOptions) -> list[FileMetadata] | None:
        if source.startswith("file:"):
            return await LocalSources().search(source, wanted)
        self.asked.append(("search", source))
        return self.trees.get(source)

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        if source.startswith("file:"):
            async for block in LocalSources().content(source, metadata):
                yield block
            return
        self.asked.append(("content", (metadata and metadata.content_uri) or source))
        content = self.files[source]
        yield content[: self.cut]
        if self.cut is not None:
            raise PeerUnreachable("the connection was lost")


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    statuses: Mapping[str, ResourceStatus]
    lines: Sequence[tuple[str, str, str]]  # (level, source, message)

    @property
    def messages(self) -> list[str]:
        return [message for _, _, message in self.lines]

    @property
    def events(self) -> list[tuple[str | None, str | None, str | None]]:
        """(property, status, message), of all resources."""
        return [(e.property, e.status, e.message) for status in self.statuses.values() for e in status.events]


async def apply(
    *resources: Type,
    sources: Any = None,
    bucket: Path | None = None,
    noop: bool = False,
    level: str = "info",
    **context: Any,
) -> Outcome:
    """Bring a few resources into their state, as an agent's run does."""
    log = RunLog(level=level)
    own = Path(tempfile.gettempdir()) / "no-such-bucket" if bucket is None else bucket
    files = FileContext(sources=sources or MemorySources(), buckets=bucket_factory(own), log=log, **{"show_diff": True, **context})
    together = RalCatalog(builtin_types(), name="test")
    for resource in resources:
        together.add(resource)
    providers = Providers(builtin_providers(ProviderRun(log, lambda: files)), Platform(features=frozenset({"posix", "root"})))
    done = await apply_catalog(together, ApplyContext(log=log, providers=providers, state=StateFile(None), noop=noop))
    if done.error is not None:
        raise done.error
    lines = [(line.level, line.source, line.message) for line in log.lines if not line.message.startswith("Appl")]
    return Outcome(done.statuses, lines)
