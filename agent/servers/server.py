"""A server as the indirector's REST termini see it: a site, a pool of connections, and the dialect it speaks."""

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
from shared.filesystem.files import make_directory, write_atomic
from shared.indirector.paths import Outgoing
from shared.indirector.rest import Answer
from shared.wire.dialects import LEGACY, MODERN, Dialect

from .http import HttpClient, StreamedAnswer, read_answer
from .sites import PROBE, Site

log = logging.getLogger("puppet.http")

Version = tuple[int, ...]


def version_of(header: str | None) -> Version | None:
    """(5, 3, 4) of `5.3.4`; None for anything else."""
    match = re.match(r"(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?", header or "")
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


def dialect_of(version: Version | None) -> Dialect | None:
    """What a server of that version speaks; None when it did not say."""
    if version is None:
        return None
    return LEGACY if version[0] < 4 else MODERN


@dataclass(slots=True)
class DialectCache:
    """
    Which dialect each server speaks: fixed by the setting, else found out and remembered in a file.

    `versions` are those the servers named in this process.
    """

    fixed: Dialect | None = None
    path: Path | None = None
    known: dict[str, Dialect] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)

    @classmethod
    def load(cls, scheme: str, path: Path | None = None) -> DialectCache:
        """`a`, `b`, or `auto`, which reads and keeps `path`. Blocks."""
        dialects = cls({"a": LEGACY, "b": MODERN}.get(scheme), path)
        if dialects.fixed is None and path is not None:
            try:
                data = plainjson.loads(path.read_bytes())
            except (OSError, BadData):
                data = {}
            dialects_by_name = {dialect.name: dialect for dialect in (LEGACY, MODERN)}
            if isinstance(data, dict):
                dialects.known = {str(site): dialects_by_name[name] for site, name in data.items() if name in dialects_by_name}
        return dialects

    def get(self, site: Site) -> Dialect | None:
        return self.fixed or self.known.get(str(site))

    def learn(self, site: Site, headers: Mapping[str, str]) -> None:
        """Take note of what an answer says; a server that speaks otherwise than remembered is asked anew the next time."""
        version = version_of(headers.get("x-puppet-version"))
        if version is None:
            return
        self.versions[str(site)] = version
        dialect, known_dialect = dialect_of(version), self.known.get(str(site))
        if self.fixed is None and known_dialect is not None and dialect is not known_dialect:
            log.info("%s now says that it is version %s", site, headers.get("x-puppet-version"))
            del self.known[str(site)]

    async def remember(self, site: Site, dialect: Dialect) -> Dialect:
        """Remember what a server speaks."""
        if self.fixed is None and self.known.get(str(site)) is not dialect:
            self.known[str(site)] = dialect
            if self.path is not None:
                await asyncio.to_thread(self._save, self.path)
        return dialect

    def _save(self, path: Path) -> None:
        make_directory(path.parent, mode=0o750)
        write_atomic(path, plainjson.dumps({site: dialect.name for site, dialect in self.known.items()}), mode=0o640)


class Server:
    """The Transport of `shared.indirector.rest` to one site; `environment` gives the one that a probe names."""

    def __init__(self, site: Site, client: HttpClient, dialects: DialectCache, environment: Callable[[], str]) -> None:
        self.site = site
        self.client = client
        self.dialects = dialects
        self._environment = environment
        self._asking = asyncio.Lock()

    @property
    def version(self) -> Version | None:
        """What the server last said about its version."""
        return self.dialects.versions.get(str(self.site))

    async def dialect(self) -> Dialect:
        """
        What the server speaks; asked once when neither the setting nor memory says it.

        A 3.x master takes `/status` for an environment and answers 404 with its version; later ones know the path. One that
        says nothing about itself is asked in the words of 3.x.
        """
        async with self._asking:
            known = self.dialects.get(self.site)
            if known is not None:
                return known
            answer = await self.send(Outgoing("GET", PROBE), {"Accept": "text/plain, */*"})
            dialect = dialect_of(version_of(answer.headers.get("x-puppet-version")))
            if dialect is None and answer.status == 200:
                dialect = MODERN
            if dialect is None:
                answer = await self.send(Outgoing("GET", f"/{self._environment()}/certificate/ca"), {"Accept": "s"})
                dialect = dialect_of(version_of(answer.headers.get("x-puppet-version"))) or (LEGACY if answer.status == 200 else None)
            return await self.dialects.remember(self.site, dialect or MODERN)

    async def digest(self, configured: str | None) -> Algorithm:
        """The one digest that its bucket takes: that of a site which has `configured` one, else the usual of its age, md5 before 7."""
        dialect = await self.dialect()
        if dialect is LEGACY:
            return algorithm(LEGACY.digest)
        if configured is not None:
            return algorithm(configured)
        if self.version is None:  # what it speaks was remembered from another time
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
    """A page for people under status 200 comes from something that is not a Puppet server."""
    if answer.status == 200 and answer.headers.get("content-type", "").startswith("text/html"):
        raise PeerAnswered(
            "The server answered with an HTML page; it is not a Puppet master",
            code=answer.status,
            hint="Is there a proxy or another web server behind the settings 'server' and 'masterport'?",
        )
