"""
The connections of commands to a store or a PuppetDB: over TLS with this host's certificate, in clear text on this host, or at a Unix
socket.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from urllib.parse import quote_plus, urlsplit

from yarl import URL

from agent.servers.tls import light_imports
from httpd.tls.trust import TrustFiles, client_context
from shared.clock import utc_now
from shared.errors import BadData, ConfigError, PeerAnswered, PeerError, PeerNotTrusted, PeerUnreachable, TooLarge
from shared.process.log import escape_controls
from store.jsontext import Json, load_stored

with light_imports():
    import aiohttp

_ALIVE = "/status/v1/simple"
_UNIX = "unix:"
_CHUNK = 2**16
_HINT = "Does it run, and is this its URL? --url names another one."
_MAX_ERROR = 64 * 1024  # bytes of an error's text


@dataclass(frozen=True, slots=True)
class AccessLimits:
    """The limits of each request: seconds for a connection and between two pieces of an answer, bytes of an answer in memory."""

    connect: float = 30.0
    silence: float = 300.0
    answer: int = 256 * 2**20


@dataclass(frozen=True, slots=True)
class StoreServers:
    """
    Servers that hold the same data, asked in this order: `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH`.

    `files` are those of a client's certificate and of the CA, for TLS.
    """

    urls: Sequence[str]
    files: TrustFiles
    limits: AccessLimits = field(default_factory=AccessLimits)


def checked_url(text: str) -> str:
    """Return the URL of a server without a slash at its end; raise ConfigError for an invalid one."""
    url = text.strip().rstrip("/")
    if url.startswith(_UNIX + "/"):
        return url
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not (parts.path or parts.query or parts.username)
        )
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"'{escape_controls(text)}' is no URL of a server",
            hint="Write https://HOST:8081, http://localhost:8080 or unix:/PATH/OF/SOCKET.",
        )
    return url


def read_rows(body: bytes) -> list[Json]:
    """Return the rows in the answer to a query; raise BadData when it is not one."""
    try:
        rows = load_stored(body)
    except ValueError as err:
        raise BadData(f"The answer is not JSON: {err}") from err
    if not isinstance(rows, list):
        raise BadData("The answer is no list of rows")
    return rows


@dataclass(slots=True)
class StoreClient:
    """
    Asks the first of the servers that runs, and stays with it. To be used with `async with`.

    `server` is the URL of the one that is asked.
    """

    _servers: StoreServers
    server: str = ""
    _session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> StoreClient:
        """
        Choose the first server that runs, or else the last one.

        Raises:
            ConfigError, BadData: A file for TLS cannot be used.
        """
        *others, last = self._servers.urls
        for url in others:
            try:
                await self._connect(url)
                await self.get(_ALIVE)
            except PeerError:
                await self._close()
            else:
                return self
        await self._connect(last)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._close()

    async def _close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _connect(self, url: str) -> None:
        """Have requests go to a server."""
        limits = self._servers.limits
        self.server = url
        connector: aiohttp.BaseConnector
        if url.startswith(_UNIX):
            connector = aiohttp.UnixConnector(url.removeprefix(_UNIX))
        elif url.startswith("https:"):
            shows_certificate = self._servers.files.certificate.exists()
            context = await asyncio.to_thread(client_context, self._servers.files, utc_now(), with_certificate=shows_certificate)
            connector = aiohttp.TCPConnector(ssl=context)
        else:
            connector = aiohttp.TCPConnector()
        timeout = aiohttp.ClientTimeout(total=None, connect=limits.connect, sock_connect=limits.connect, sock_read=limits.silence)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> bytes:
        """Return the body of an answer; raise as `request`, and TooLarge."""
        query = "&".join(f"{name}={quote_plus(value)}" for name, value in (parameters or {}).items())
        async with self.request("GET", f"{path}?{query}" if query else path) as answer:
            return await self.read(answer)

    async def read(self, answer: aiohttp.ClientResponse) -> bytes:
        """Return the body of an answer; raise TooLarge when it is over the limit."""
        body = bytearray()
        async for piece in self.pieces(answer):
            body += piece
            if len(body) > self._servers.limits.answer:
                raise TooLarge(
                    f"The answer of {self.server} is larger than {self._servers.limits.answer} bytes",
                    hint="Ask for less of it, with `limit`.",
                )
        return bytes(body)

    async def pieces(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the body of an answer as it arrives; raise PeerUnreachable when it ends early."""
        try:
            async for piece in answer.content.iter_chunked(_CHUNK):
                yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            raise self._peer_error(err) from err

    @asynccontextmanager
    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """
        Send a request and lend its answer, whose status is 200.

        Raises:
            PeerAnswered: The server refuses; its text is the error's `body`. PeerUnreachable, PeerNotTrusted.
        """
        assert self._session is not None
        base = "http://store" if self.server.startswith(_UNIX) else self.server
        sent = {"Accept": "application/json" if target.startswith("/pdb") else "*/*", **(headers or {})}
        try:
            answer = await self._session.request(
                method, URL(f"{base}{target}", encoded=True), data=body, headers=sent, allow_redirects=False
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            raise self._peer_error(err) from err
        async with answer:
            if answer.status != 200:
                text = await self._error_text(answer)
                raise PeerAnswered(
                    f"{self.server} answered {answer.status}: {escape_controls(text, lines=True) or answer.reason}",
                    code=answer.status,
                    body=text,
                )
            yield answer

    async def _error_text(self, answer: aiohttp.ClientResponse) -> str:
        text = bytearray()
        async for piece in self.pieces(answer):
            text += piece
            if len(text) > _MAX_ERROR:
                break
        return text[:_MAX_ERROR].decode("utf-8", "replace").rstrip()

    def _peer_error(self, err: BaseException) -> PeerUnreachable | PeerNotTrusted:
        """Return an error with a remedy."""
        if isinstance(err, aiohttp.ClientConnectorCertificateError):
            cause = err.certificate_error
            text = getattr(cause, "verify_message", "") or str(cause)
            return PeerNotTrusted(
                f"certificate verify failed [{text}] for {self.server}",
                hint="Its certificate has to be issued by the CA of this site, for the name in the URL.",
            )
        if isinstance(err, TimeoutError):
            return PeerUnreachable(f"{self.server} did not answer in time")
        if isinstance(err, aiohttp.ClientConnectorError | FileNotFoundError | ConnectionRefusedError):
            problem = err.os_error if isinstance(err, aiohttp.ClientConnectorError) else err
            hint = "Only root and the store's own user may use its socket." if problem.errno == errno.EACCES else _HINT
            return PeerUnreachable(f"Could not connect to {self.server}: {problem.strerror or err}", hint=hint)
        if isinstance(err, ssl.SSLError) or isinstance(err.__cause__, ssl.SSLError) or isinstance(err, aiohttp.ClientOSError):
            return PeerUnreachable(
                f"{self.server} closed the connection: {err}",
                hint="It wants a certificate of this site's CA, and may have a list of those it admits.",
            )
        return PeerUnreachable(f"{self.server} did not answer as it should: {err}")
