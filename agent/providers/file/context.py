"""The part of a run that providers of files work with: sources, filebuckets, and a few settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.filesystem.checksums import Algorithm
from shared.filesystem.textdiff import Differ
from shared.models.catalog import Catalog
from shared.settings import AgentSettings

from ...servers.dipper import RemoteBucket, bucket_factory
from ...servers.sources import FileSources
from ...state.runlog import RunLog
from .backup import Buckets
from .source_metadata import Inlined


@dataclass(frozen=True, slots=True)
class FileContext:
    """
    The services and settings of a run that providers of files use.

    Attributes:
        buckets: Returns the bucket of a filebucket resource; of None, the default one.
        algorithm: The setting digest_algorithm.
        show_diff: The setting of that name.
        validation_seconds: How long a validate_cmd may take.
        lenses: Directories of Augeas' lenses that modules brought.
    """

    sources: FileSources
    buckets: Buckets
    log: RunLog
    environment: str = "production"
    inlined: Inlined = field(default_factory=Inlined)
    algorithm: Algorithm = "sha256"
    show_diff: bool = False
    differ: Differ = field(default_factory=Differ)
    validation_seconds: float = 300.0
    lenses: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        settings: AgentSettings,
        catalog: Catalog,
        log: RunLog,
        *,
        sources: FileSources,
        environment: str,
        digest: Algorithm,
        remote_bucket: RemoteBucket | None = None,
        lenses: tuple[str, ...] = (),
    ) -> FileContext:
        """
        Return the context from the settings and a catalog.

        Args:
            digest: The digest by which filebuckets store contents, and by which contents are compared unless a resource sets another one.
            remote_bucket: Makes the bucket of a server; None: no server can be reached.
        """
        return cls(
            sources=sources,
            buckets=bucket_factory(settings.clientbucketdir, algorithm=digest, remote=remote_bucket, report=log.log),
            log=log,
            environment=environment,
            inlined=Inlined.of(catalog),
            algorithm=digest,
            show_diff=settings.show_diff,
            differ=Differ.of(settings),
            lenses=lenses,
        )
