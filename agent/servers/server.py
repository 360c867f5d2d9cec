"""A server as REST termini see it: its address, a pool of connections, and the dialect that it speaks."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.data import plainjson
from shared.errors import BadData, PeerAnswered
from shared.filesystem.checksums import Algorithm, algorithm
from shared.filesystem.files import make_directory, read_regular, write_atomic
from shared.indirector.paths import Outgoing
from shared.indirector.rest import Answer
from shared.wire.dialects import LEGACY, MODERN, Dialect

from .http import HttpClient, StreamedAnswer, read_answer
from .sites import PROBE, Site

log = logging.getLogger("puppet.http")

Version = tuple[int, ...]


def version_of(header: str | None) -> Version | None:
    """Return (5, 3, 4) for `5.3.4`; None for a text that is not a version."""
    match = re.match(r"(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?", header or "")
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


def dialect_of(version: Version | None) -> Dialect | None:
    """Return the dialect of a server of that version; None when the version is unknown."""
    if version is None:
        return None
    return LEGACY if version[0] < 4 else MODERN


@dataclass(slots=True)
class DialectCache:
    """
    The dialect of each server: fixed by the setting `scheme`, else learnt and remembered in a file.

    Attributes:
        versions: The versions that servers have named while this process ran.
    """

    fixed: Dialect | None = None
    path: Path | None = None
    known: dict[str, Dialect] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)

    @classmethod
    def load(cls, scheme: str, path: Path | None = None) -> DialectCache:
        """Return the cache for a value of the setting `scheme`: `a`, `b`, or `auto`, which reads and writes `path`. Blocks."""
        dialects = cls({"a": LEGACY, "b": MODERN}.get(scheme), path)
        if dialects.fixed is None and path is not None:
            try:
                data = plainjson.loads(read_regular(path))
            except (OSError, BadData):
                data = {}
            dialects_by_name = {dialect.name: dialect for dialect in (LEGACY, MODERN)}
            if isinstance(data, dict):
                dialects.known = {str(site): dialects_by_name[name] for site, name in data.items() if name in dialects_by_name}
        return dialects

    def get(self, site: Site) -> Dialect | None:
        return self.fixed or self.known.get(str(site))

    def learn(self, site: Site, headers: Mapping[str, str]) -> None:
        """Learn a server's version from an answer's headers; forget a remembered dialect that differs, so that it is asked again."""
        version = version_of(headers.get("x-puppet-version"))
        if version is None:
            return
        self.versions[str(site)] = version
        dialect, known_dialect = dialect_of(version), self.known.get(str(site))
        if self.fixed is None and known_dialect is not None and dialect is not known_dialect:
            log.info("%s is now version %s", site, headers.get("x-puppet-version"))
            del self.known[str(site)]

    async def remember(self, site: Site, dialect: Dialect) -> Dialect:
        """Remember the dialect of a server, also in the file; return it."""
        if self.fixed is None and self.known.get(str(site)) is not dialect:
            self.known[str(site)] = dialect
            if self.path is not None:
                await asyncio.to_thread(self._save, self.path)
        return dialect

    def _save(self, path: Path) -> None:
        make_directory(path.parent, mode=0o750)
        write_atomic(path, plainjson.dumps({site: dialect.name for site, dialect in self.known.items()}), mode=0o640)


class Server:
    """
    The Transport of `shared.indirector.rest` to one site.

    Args:
        environment: Returns the environment that a probe for the dialect names.
    """

    def __init__(self, site: Site, client: HttpClient, dialects: DialectCache, environment: Callable[[], str]) -> None:
        self.site = site
        self.client = client
        self.dialects = dialects
        self._environment = environment
        self._asking = asyncio.Lock()

    @property
    def version(self) -> Version | None:
        """The version that the server named last; None when it has named none."""
        return self.dialects.versions.get(str(self.site))

    async def dialect(self) -> Dialect:
        """
        Return the dialect of the server; query the server once when neither the setting nor the cache has it.

        A 3.x master takes `/status` for an environment and answers 404 with its version; later ones know the path. A server that does
        not name its version gets a request of 3.x.
        """
        async with self._asking:
            known_dialect = self.dialects.get(self.site)
            if known_dialect is not None:
                return known_dialect
            answer = await self.send(Outgoing("GET", PROBE), {"Accept": "text/plain, */*"})
            dialect = dialect_of(version_of(answer.headers.get("x-puppet-version")))
            if dialect is None and answer.status == 200:
                dialect = MODERN
            if dialect is None:
                answer = await self.send(Outgoing("GET", f"/{self._environment()}/certificate/ca"), {"Accept": "s"})
                dialect = dialect_of(version_of(answer.headers.get("x-puppet-version"))) or (LEGACY if answer.status == 200 else None)
            return await self.dialects.remember(self.site, dialect or MODERN)

    async def digest(self, configured: str | None) -> Algorithm:
        """
        Return the one digest that the server's filebucket accepts.

        It is the `configured` one of a site that has set digest_algorithm, else the default of the server's version: md5 before 7.
        """
        dialect = await self.dialect()
        if dialect is LEGACY:
            return algorithm(LEGACY.digest)
        if configured is not None:
            return algorithm(configured)
        if self.version is None:  # its dialect was remembered by an earlier process
            await self.send(Outgoing("GET", PROBE), {"Accept": "text/plain, */*"})
        return algorithm(dialect.digest if self.version is None or self.version >= (7,) else "md5")

    async def send(self, outgoing: Outgoing, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        opened = await self.client.request(self.site, outgoing.method, outgoing.target, headers, body)
        self.dialects.learn(self.site, opened.headers)
        answer = await read_answer(opened)
        _refuse_html(answer)
        return answer

    async def open(self, outgoing: Outgoing, headers: Mapping[str, str], body: AsyncIterator[bytes] | None = None) -> StreamedAnswer:
        opened = await self.client.request(self.site, outgoing.method, outgoing.target, headers, body, compressed=False)
        self.dialects.learn(self.site, opened.headers)
        return opened


def _refuse_html(answer: Answer) -> None:
    """Raise PeerAnswered for an HTML page with status 200: it comes from something that is not a Puppet server."""
    if answer.status == 200 and answer.headers.get("content-type", "").startswith("text/html"):
        raise PeerAnswered(
            "The server answered with an HTML page; it is not a Puppet master",
            code=answer.status,
            hint="Is there a proxy or another web server behind the settings 'server' and 'masterport'?",
        )
