"""Connections to the servers of a PuppetDB over TLS, with the master's own certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from httpd.tls.trust import TrustFiles, client_context
from shared.clock import utc_now
from shared.filesystem.identity import stamp_of

if TYPE_CHECKING:
    import aiohttp


class TlsSessions:
    """
    Sessions that trust the site's CA alone, and check its revocations.

    Args:
        with_certificate: Show the master's own certificate.
        keep_alive: Keep connections open between requests; only for a program with one event loop, which calls `close`.
        connections: How many there may be at the same time.
    """

    def __init__(self, files: TrustFiles, *, with_certificate: bool, keep_alive: bool, connections: int) -> None:
        self.files = files
        self.with_certificate = with_certificate
        self.keep_alive = keep_alive
        self.connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._stamps: object = None
        self._lent: dict[aiohttp.ClientSession, int] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Lend a session for one request; ConfigError when there can be none."""
        if not self.keep_alive:
            async with await self._open() as session:
                yield session
            return
        session = await self._current()
        self._lent[session] = self._lent.get(session, 0) + 1
        try:
            yield session
        finally:
            self._lent[session] -= 1
            if not self._lent[session]:
                del self._lent[session]
                if session is not self._session:
                    await session.close()

    async def close(self) -> None:
        """End all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _current(self) -> aiohttp.ClientSession:
        """Return the session of the files as they are now; an older one is closed when its last request has ended."""
        async with self._opening:
            stamps = await asyncio.to_thread(lambda: [stamp_of(path) for path in self.files.all])
            if self._session is None or stamps != self._stamps:
                outdated, self._session = self._session, await self._open()
                self._stamps = stamps
                if outdated is not None and outdated not in self._lent:
                    await outdated.close()
            return self._session

    async def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        context = await asyncio.to_thread(client_context, self.files, utc_now(), with_certificate=self.with_certificate)
        connector = aiohttp.TCPConnector(ssl=context, limit=self.connections)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)


class UnixSessions:
    """
    Sessions with a store on this host, at a Unix socket.

    Args:
        keep_alive: Keep connections open between requests; only for a program with one event loop, which calls `close`.
        connections: How many there may be at the same time.
        ready: Returns when the store listens; ConnectionError when it does not.
    """

    def __init__(self, path: Path, *, keep_alive: bool, connections: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        self.path = path
        self.keep_alive = keep_alive
        self.connections = connections
        self.ready = ready
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[aiohttp.ClientSession]:
        if self.ready is not None:
            await self.ready()
        if not self.keep_alive:
            async with self._open() as session:
                yield session
            return
        if self._session is None:
            self._session = self._open()
        yield self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        connector = aiohttp.UnixConnector(str(self.path), limit=self.connections)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)


Sessions: TypeAlias = TlsSessions | UnixSessions
"""Where a client gets its connections from."""
