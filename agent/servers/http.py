"""The agent's HTTP client: pools of verified connections, deadlines, limits, redirects, retries."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn
from urllib.parse import urljoin, urlsplit

from shared.errors import BadData, PeerAnswered, PeerError, PeerNotTrusted, PeerUnreachable, TooLarge
from shared.indirector.rest import Answer
from shared.names import quoted_for_log
from shared.settings import AgentSettings

from .bodies import LimitedBody, retry_after
from .pace import Bounds, Pace
from .sites import PROBE, READY_PROBES, Exchange, ExchangeObserver, HttpLimits, Proxy, Site, headers_of
from .tls import Verifier, light_imports, refusal_of, unverified_context

with light_imports():
    import aiohttp

log = logging.getLogger("puppet.http")

# A load balancer needs one; more hops are a loop or a misconfiguration.
MAX_REDIRECTS: Final = 3
_UNVERIFIED: Final = ("/certificate/ca", PROBE, *READY_PROBES)  # the requests that may go to an unverified server
# 303 turns any request into a GET, which a report or a CSR must never become.
_FOLLOWED: Final = frozenset({301, 302, 307, 308})
_ENCODINGS: Final = "gzip;q=1.0,deflate;q=0.6,identity;q=0.3"
# With TLS 1.3 a refusal of our certificate arrives only after the handshake has succeeded for us.
ALERT_SECONDS: Final = 3.0
ERROR_BODY: Final = 64 * 1024  # bytes of an error's text


class _Response(aiohttp.ClientResponse):
    """A response that knows the number of the connection over which it came."""

    connection_number = 0

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        self.connection_number = getattr(connection.protocol, "number", 0)
        return await super().start(connection)


class _Connector(aiohttp.TCPConnector):
    """A connector that numbers its connections and has each new one checked before anything is sent over it."""

    def __init__(self, checked: Callable[[bytes, str], None] | None, **options: Any) -> None:
        super().__init__(**options)
        self.opened = 0
        self.used: set[int] = set()
        self._check = checked

    async def connect(self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout) -> Any:
        connection = await super().connect(req, traces, timeout)
        protocol: Any = connection.protocol
        if protocol is not None and not hasattr(protocol, "number"):
            self.opened += 1
            protocol.number = self.opened
            protocol.close = protocol.abort  # who closes waits for no end of TLS from the server
            if self._check is not None:
                try:
                    tls = connection.transport.get_extra_info("ssl_object") if connection.transport else None
                    der = tls.getpeercert(binary_form=True) if tls else None
                    if der is None:
                        raise PeerNotTrusted(f"{req.url.host} showed no certificate")
                    # Here, before a request is written: a revoked server must not get a single byte of it.
                    self._check(der, req.url.host or "")
                except BaseException:
                    connection.close()
                    raise
        return connection


class StreamedAnswer:
    """An answer whose body has not been read yet."""

    def __init__(self, response: aiohttp.ClientResponse, client: HttpClient) -> None:
        self._response = response
        self._client = client
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raise PeerUnreachable when it ends early."""
        encoding = self.headers.get("content-encoding", "identity")
        # File contents are requested uncompressed, since their checksum and the size limits are of the plain bytes.
        if encoding != "identity":
            self._response.close()
            raise BadData(f"The server compressed a body ({quoted_for_log(encoding)}) although that was not asked for")
        try:
            async for chunk in self._watched_chunks(self._client.limits.bounds):
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            self._client.raise_peer_error(err, self._response.url.host or "")
        finally:
            # A connection with an unread rest cannot be used for another request.
            self._response.close() if not self._response.content.at_eof() else self._response.release()

    def _watched_chunks(self, bounds: Bounds) -> AsyncIterator[bytes]:
        """Yield the pieces of the body, still compressed, as long as they stay within the bounds."""
        return Pace(bounds, f"The answer of {self._response.url.host} for {quoted_for_log(self._response.url.path, 200)}").watch(
            self._response.content.iter_any()
        )

    async def read(self) -> bytes:
        """Return the complete body, decompressed; raise TooLarge when it exceeds the limit."""
        limit = self._client.limits.body if self.status < 300 else ERROR_BODY
        try:
            return await self._read(limit)
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            self._client.raise_peer_error(err, self._response.url.host or "")

    async def _read(self, limit: int) -> bytes:
        limited = LimitedBody(self.headers.get("content-encoding", "identity"), limit)
        try:
            async for chunk in self._watched_chunks(replace(self._client.limits.bounds, size=limit + ERROR_BODY)):
                limited.feed(chunk)
            body = limited.end()
        except TooLarge:
            if self.status >= 300:
                return bytes(limited.content[:limit])  # the beginning of an error's text is enough
            raise
        finally:
            if self._response.content.at_eof():
                self._response.release()
            else:
                self._response.close()
        return body


@dataclass(frozen=True, slots=True)
class Connecting:
    """How connections are opened: `source` is the address that they come from, `ciphers` those of TLS 1.2; '' is the system's choice."""

    proxy: Proxy = field(default_factory=Proxy)
    source: str = ""
    ciphers: str = ""


class HttpClient:
    """
    A pool of connections that share one trust store.

    With `verifier` None no peer is verified, no certificate is shown and no connection is used twice; then the client only sends requests
    for the CA's certificate and for a server's status.
    """

    def __init__(
        self,
        verifier: Verifier | None,
        *,
        limits: HttpLimits | None = None,
        connecting: Connecting | None = None,
        headers: Mapping[str, str] | None = None,
        observer: ExchangeObserver | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.verifier = verifier
        self.limits = limits or HttpLimits()
        self.connecting = connecting or Connecting()
        self._headers = dict(headers or {"User-Agent": "Puppet"})
        self._observer = observer
        self._sleep = sleep
        self._jitter = jitter
        self._session: aiohttp.ClientSession | None = None
        self._connector: _Connector | None = None
        self._opening = asyncio.Lock()

    @classmethod
    def of(cls, settings: AgentSettings, verifier: Verifier | None, observer: ExchangeObserver | None = None) -> HttpClient:
        """Return a pool of connections with the limits and the proxy of the settings."""
        return cls(
            verifier,
            limits=HttpLimits.of(settings),
            connecting=Connecting(Proxy.of(settings), settings.sourceaddress, settings.ciphers),
            headers=headers_of(settings),
            observer=observer,
        )

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. The client may be used again, with the certificates that are on disk by then."""
        if self._session is not None:
            session, self._session, self._connector = self._session, None, None
            await session.close()

    async def _session_and_connector(self) -> tuple[aiohttp.ClientSession, _Connector]:
        async with self._opening:
            if self._session is None or self._connector is None:
                await self._open()
            assert self._session is not None
            assert self._connector is not None
            return self._session, self._connector

    async def _open(self) -> None:
        # Reading the CA bundle and CRLs blocks, for large lists noticeably.
        context, checked = await asyncio.to_thread(self._tls)
        pooled: dict[str, Any] = (
            {"keepalive_timeout": self.limits.keepalive} if self.verifier and self.limits.keepalive else {"force_close": True}
        )
        start = (self.connecting.source, 0) if self.connecting.source else None
        self._connector = _Connector(checked, ssl=context, limit=self.limits.connections, local_addr=start, **pooled)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            response_class=_Response,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect, sock_read=self.limits.read),
            headers=self._headers,
            # We decompress ourselves, with a limit: aiohttp would unpack a bomb into memory.
            auto_decompress=False,
            # Proxies come from puppet.conf only, not from variables of whoever started the agent.
            trust_env=False,
            # A server must not recognize agents by anything but their certificates.
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _tls(self) -> tuple[ssl.SSLContext, Callable[[bytes, str], None] | None]:
        context = unverified_context() if self.verifier is None else self.verifier.context()
        if self.connecting.ciphers:
            context.set_ciphers(self.connecting.ciphers)
        if self.verifier is None:
            return context, None
        verifier, trust = self.verifier, self.verifier.trust()
        return context, lambda der, host: verifier.check(der, host, trust)

    async def request(
        self,
        site: Site,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterator[bytes] | None = None,
        *,
        compressed: bool = True,
    ) -> StreamedAnswer:
        """
        Send a request and return its answer; wait as long as the server requires, and follow redirects within the same origin.

        Raises:
            PeerUnreachable: the server does not answer.
            PeerNotTrusted: the server's certificate is not trusted, or ours is refused.
            PeerAnswered: the server redirects to another origin, or too often.
        """
        if self.verifier is None and not (method == "GET" and target.partition("?")[0].endswith(_UNVERIFIED)):
            raise PeerNotTrusted(f"Refusing to send {method} {target} to {site}: the server's identity is not verified")
        waits = redirects = 0
        while True:
            answer = await self._request_once(site, method, target, headers, body, compressed)
            wait = self._retry_delay(answer) if waits < self.limits.retries and not isinstance(body, AsyncIterator) else None
            if wait is not None:
                await answer.read()
                waits += 1
                log.info("%s answered %d; sleeping for %d seconds before trying again", site, answer.status, wait)
                await self._sleep(wait)
                continue
            location = answer.headers.get("location")
            if answer.status in (301, 302, 303, 307, 308) and location:
                await answer.read()
                redirects += 1
                target = self._redirect_target(
                    site, method, target, location, answer.status, redirects, replayable=not isinstance(body, AsyncIterator)
                )
                continue
            return answer

    def _retry_delay(self, answer: StreamedAnswer) -> float | None:
        text = answer.headers.get("retry-after")
        if answer.status not in (429, 503) or text is None:
            return None
        seconds = retry_after(text, time.time())
        if seconds is None:
            return None
        # A master must not be able to put an agent to sleep for days.
        wait = min(max(seconds, 1.0), self.limits.longest_wait)
        # Spread, since a busy master tells many agents the same number.
        return wait + self._jitter() * max(1.0, wait / 10)

    def _redirect_target(self, site: Site, method: str, target: str, location: str, status: int, hops: int, *, replayable: bool) -> str:
        """Return the target of a redirect; raise PeerAnswered when it may not be followed."""
        new = urlsplit(urljoin(f"https://{site}{target}", location))
        try:
            # Only the same origin: the client certificate and the facts are for the server that was verified.
            same = (new.scheme, new.hostname, new.port or 443) == ("https", site.host.lower(), site.port)
        except ValueError:
            same = False
        reason = ""
        if not same or new.username:
            reason = "it leads to another server, which must not receive this request's data"
        elif hops > MAX_REDIRECTS:
            reason = f"there were more than {MAX_REDIRECTS}"
        elif (status not in _FOLLOWED and method not in ("GET", "HEAD")) or not replayable:
            reason = "the request cannot be repeated"
        if reason:
            raise PeerAnswered(
                f"{site} redirects to {quoted_for_log(location)}; not followed: {reason}",
                code=status,
                hint="Have 'server' name the host that answers the agents.",
            )
        return f"{new.path or '/'}{'?' + new.query if new.query else ''}"

    async def _request_once(
        self, site: Site, method: str, target: str, headers: Mapping[str, str], body: bytes | AsyncIterator[bytes] | None, compressed: bool
    ) -> StreamedAnswer:
        session, connector = await self._session_and_connector()
        proxied = self.connecting.proxy.serves(site.host)
        options = self.connecting.proxy.options(site.host)
        request_headers = {"Accept-Encoding": _ENCODINGS if compressed else "identity", **headers}
        began = time.monotonic()
        # The second attempt is only for a kept-alive connection that the server closed in the meantime.
        for attempt in (1, 2):
            before = connector.opened
            try:
                response = await session.request(
                    method, site.url(target), data=body, headers=request_headers, allow_redirects=False, **options
                )
                break
            except PeerError:
                raise
            except aiohttp.ClientConnectorCertificateError as err:
                raise await self._distrust(site, err) from err
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as err:
                # The server had closed an idle connection before it answered anything; all our requests may be repeated.
                if attempt == 1 and connector.opened == before and isinstance(body, bytes | None):
                    continue
                if connector.opened > before and not proxied:
                    # OpenSSL reports a refusal after the handshake only as a lost connection.
                    await self._raise_if_refused(site)
                self.raise_peer_error(err, str(site))
            except (aiohttp.ClientError, TimeoutError, OSError) as err:
                self.raise_peer_error(err, str(site))
        number = response.connection_number if isinstance(response, _Response) else 0
        path, took = target.partition("?")[0], time.monotonic() - began  # a query may carry all facts
        log.debug("%s %s at %s answered %d after %.3f seconds (connection %d)", method, path, site, response.status, took, number)
        if self._observer is not None:
            reused = number in connector.used
            seconds = time.monotonic() - began
            self._observer(Exchange(method, target, response.status, number, reused, site, self.verifier is not None, seconds))
        connector.used.add(number)
        return StreamedAnswer(response, self)

    def raise_peer_error(self, err: BaseException, where: str) -> NoReturn:
        """Raise an error with a remedy in place of a library's error."""
        refused = refusal_of(err)
        if refused:
            raise PeerNotTrusted(f"{where} refused the TLS connection: {refused[0]}", hint=refused[1]) from err
        if isinstance(err, TimeoutError):
            raise PeerUnreachable(
                f"{where} did not answer in time", hint="See http_connect_timeout and http_read_timeout; is the master overloaded?"
            ) from err
        if isinstance(err, aiohttp.ClientConnectorDNSError):
            raise PeerUnreachable(
                f"Could not find the address of {where}: {err.os_error.strerror or err.os_error}",
                hint="Is the setting 'server' right, and does this host's resolver know that name?",
            ) from err
        if isinstance(err, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
            raise PeerUnreachable(
                f"Could not reach {where} through the proxy {self.connecting.proxy.host}:{self.connecting.proxy.port}: {err}",
                hint="See http_proxy_host, http_proxy_port and no_proxy.",
            ) from err
        if isinstance(err, aiohttp.ClientConnectorError):
            number = err.os_error.errno
            reason = os.strerror(number) if number is not None and number in errno.errorcode else err.os_error.strerror or str(err.os_error)
            raise PeerUnreachable(f"Could not connect to {where}: {reason}", hint="Is a master listening there?") from err
        if isinstance(err, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError | aiohttp.ClientPayloadError | OSError):
            raise PeerUnreachable(f"The connection to {where} was lost: {err}") from err
        raise PeerUnreachable(f"{where} did not answer as an HTTP server: {err}") from err

    async def _raise_if_refused(self, site: Site) -> None:
        """
        Raise PeerNotTrusted when `site` does not accept our certificate.

        In TLS 1.3 a server refuses a certificate only after our side of the handshake is done, and we see only a lost connection. On a
        second connection over which nothing is sent, OpenSSL reports the alert; servers on asyncio close it without an alert.
        """
        if self.verifier is None or self.verifier.certificate is None:
            return
        closed = False
        try:
            closed = await asyncio.to_thread(closes_at_once, self.verifier.context(), site.host, site.port)
        except (OSError, BadData) as err:
            refused = refusal_of(err)
            if refused:
                raise PeerNotTrusted(f"{site} refused the TLS connection: {refused[0]}", hint=refused[1]) from err
        if closed:
            raise PeerNotTrusted(
                f"{site} closed the connection as soon as it had seen our certificate",
                hint="It may have been revoked, or the master may not know its CA: see the master's log.",
            )

    async def _distrust(self, site: Site, err: aiohttp.ClientConnectorCertificateError) -> PeerNotTrusted:
        """Return the fault of the server's certificate. It is read once more, because OpenSSL's error does not have its name."""
        cause = err.certificate_error
        text = getattr(cause, "verify_message", "") or str(cause)
        fallback = PeerNotTrusted(f"certificate verify failed [{text}] for {site}")
        if self.verifier is None or self.connecting.proxy.serves(site.host):
            return fallback
        try:
            async with asyncio.timeout(min(self.limits.connect, 20)):
                # Unverified, and nothing is sent: only the certificate is read, to name what is wrong with it.
                _, writer = await asyncio.open_connection(site.host, site.port, ssl=unverified_context(), server_hostname=site.host)
                tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
                der = tls.getpeercert(binary_form=True)
                writer.close()
            trust = await asyncio.to_thread(self.verifier.trust)
            if der:
                self.verifier.check(der, site.host, trust)
        except PeerNotTrusted as problem:
            hint = problem.hint or "Is this the right server, and does certs/ca.pem hold its CA?"
            return PeerNotTrusted(f"certificate verify failed [{problem.message}] for {site}", hint=hint)
        except (OSError, TimeoutError, BadData):
            pass  # the first error stands
        return fallback


def closes_at_once(context: ssl.SSLContext, host: str, port: int) -> bool:
    """Return whether a server closes a connection over which nothing is sent; raise ssl.SSLError for its alert. Blocks for seconds."""
    with socket.create_connection((host, port), timeout=ALERT_SECONDS) as plain, context.wrap_socket(plain, server_hostname=host) as tls:
        try:
            return not tls.recv(1)
        except TimeoutError:
            return False


async def read_answer(answer: StreamedAnswer) -> Answer:
    """Return the answer with its body in memory."""
    return Answer(answer.status, answer.headers, await answer.read())
