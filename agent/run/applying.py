"""What a catalog needs to be applied here: file sources and buckets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from shared.errors import NotFound, PeerAnswered
from shared.filesystem.checksums import Algorithm, algorithm
from shared.filesystem.textdiff import Differ
from shared.indirector.core import Binding
from shared.indirector.paths import Outgoing
from shared.indirector.rest import Rest
from shared.models.catalog import Catalog
from shared.models.file_bucket_file import FILE_BUCKET_FILE
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..servers.dipper import Dipper, RemoteDipper, buckets
from ..servers.sources import Bindings, Sources
from ..state.runlog import RunLog

if TYPE_CHECKING:
    from ..providers.file.posix import FileContext
    from .wiring import Wiring


class Applying:
    """Where one run's files come from and go to."""

    def __init__(self, wiring: Wiring, catalog: Catalog, log: RunLog, dialect: Dialect) -> None:
        self.wiring = wiring
        self.catalog = catalog
        self.log = log
        self.dialect = dialect

    def files(self) -> FileContext:
        """What the type `file` needs of the run."""
        from ..providers.file.posix import FileContext
        from ..providers.file.sourcing import Inlined

        settings = self.wiring.settings
        return FileContext(
            sources=self.sources(),
            buckets=buckets(
                settings.clientbucketdir,
                algorithm=self._digest(),
                remote=self._remote_bucket,
                report=lambda level, message: self.log.log(level, message),
            ),
            log=self.log,
            environment=self.wiring.environment,
            inlined=Inlined.of(self.catalog),
            algorithm=self._digest(),
            show_diff=settings.show_diff,
            differ=Differ.of(settings),
            lenses=(str(settings.plugindest / "augeas/lenses"),),
        )

    def sources(self) -> Sources:
        """Where files come from: this agent's server unless a URL names another."""
        from ..servers.websources import web_sources

        return Sources(
            self.wiring.indirector["file_metadata"],
            self.wiring.indirector["file_content"],
            environment=self.wiring.environment,
            elsewhere=self._elsewhere,
            static=self._static if self.dialect is MODERN else None,
            code_id=self.catalog.code_id or "",
            web=web_sources(self.wiring.settings),
        )

    def _elsewhere(self, host: str, port: int | None) -> Bindings:
        server = self.wiring.server_at(host, port)
        return Binding(FILE_METADATA, Rest(FILE_METADATA, server)), Binding(FILE_CONTENT, Rest(FILE_CONTENT, server))

    async def _static(self, path: str, code_id: str) -> AsyncIterator[bytes]:
        query = urlencode({"environment": self.wiring.environment, "code_id": code_id})
        target = f"/puppet/v3/static_file_content/{quote(path)}?{query}"
        opened = await self.wiring.file_server.open(Outgoing("GET", target), {"Accept": "application/octet-stream"})
        if opened.status != 200:
            text = (await opened.read()).decode("utf-8", "replace").strip()
            if opened.status == 404:
                raise NotFound(f"The master does not have {path} at code_id {code_id}: {text}")
            raise PeerAnswered(f"Error {opened.status} on SERVER: {text}", code=opened.status, body=text)
        async for chunk in opened.chunks():
            yield chunk

    def _remote_bucket(self, host: str | None, port: int | None) -> Dipper:
        server = self.wiring.server_at(host or self.wiring.settings.server, port)
        binding = Binding(FILE_BUCKET_FILE, Rest(FILE_BUCKET_FILE, server))
        configured = self.wiring.settings.given("digest_algorithm")
        return RemoteDipper(binding, algorithm=lambda: server.digest(configured), environment=self.wiring.environment)

    def _digest(self) -> Algorithm:
        """By what contents are stored: 3.x masters know md5 alone."""
        return algorithm("md5" if self.dialect is LEGACY else self.wiring.settings.digest_algorithm)
