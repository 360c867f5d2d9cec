"""
One connection: aiohttp's parser and writer with deadlines, and no header that names them.

No other file uses aiohttp's private names; tests/httpd/test_private_names.py lists those that this one uses. The modules of
`aiohttp.web` are imported one by one, as all of it takes another megabyte.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from aiohttp import hdrs, web_request, web_response, web_server
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import HttpVersion10, HttpVersion11
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from shared.client import Client
from shared.names import quoted_for_log

from ..limits import ServerLimits
from ..peers import Peer, address_of

log = logging.getLogger("puppet.http")

Handler = Callable[["HttpRequest"], Awaitable[web_response.StreamResponse]]

_STRANGER = Client("", "", authenticated=False)
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class HttpRequest(web_request.BaseRequest):
    """
    A request with its target as it was sent.

    Attributes:
        unsupported_version: The HTTP version when it is not one that is spoken here, else ''.
        client: The client whose certificate was checked for this request; a stranger before that, and without one.
        endpoint: A short name for metrics and logs, once the application knows that it is one of its own.
        response_headers: The headers that go with every response to this request.
        sent_continue: Whether the interim answer that `Expect: 100-continue` waits for has been sent.
        untyped: Whether the response goes without the Content-Type that aiohttp would add.
    """

    unsupported_version: str = ""
    client: Client = _STRANGER
    endpoint: str = "unknown"
    response_headers: Mapping[str, str] = _NO_HEADERS
    sent_continue: bool = False
    untyped: bool = False

    @property
    def sent_path(self) -> str:
        """The path of the target, nothing decoded."""
        return self.raw_path.partition("?")[0]

    @property
    def sent_query(self) -> str:
        """The query of the target, nothing decoded; '' without one."""
        return self.raw_path.partition("?")[2]

    @property
    def connection(self) -> Connection:
        protocol = self._protocol
        assert isinstance(protocol, Connection)
        return protocol

    async def _prepare_hook(self, response: web_response.StreamResponse) -> None:
        response.headers.popall(hdrs.SERVER, None)
        if self.untyped:
            response.headers.popall(hdrs.CONTENT_TYPE, None)
        response.headers.update(self.response_headers)


class Connection(RequestHandler):
    """
    A peer's connection. Beside what aiohttp does, it has deadlines for the first byte and for a request's headers, a limit for a
    peer that does not read, and a short answer to bytes that are not HTTP.

    Attributes:
        peer: The other end by its certificate, read at the first request.
        idle_since: When the last answer ended, by the loop's clock.
    """

    def __init__(self, manager: ConnectionServer, limits: ServerLimits, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=limits.idle_timeout,
            access_log=None,  # type: ignore[arg-type]  # we write our own
            max_line_size=limits.max_header_line,
            max_headers=limits.max_header_count,
            max_field_size=limits.max_header_line,
            lingering_time=2.0,  # so that a refused sender reads the answer before the reset
            auto_decompress=False,
        )
        self.limits = limits
        self.peer: Peer | None = None
        self.idle_since = loop.time()
        self._incoming: StreamReader | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._deadline_part = ""

    @property
    def busy(self) -> bool:
        """True while a request is being answered or is pending."""
        answering = self._waiter is None and self._task_handler is not None and self.transport is not None
        return answering or bool(self._messages)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_deadline(self.limits.header_timeout, "request")

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)
        self._incoming = None  # it refers to us: the reference cycle would wait for the garbage collector, with all of TLS

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._stop_deadline()
            if self._messages:
                self._incoming = self._messages[-1][1]
            return
        if not data or (self._incoming is not None and not self._incoming.is_eof()):
            return
        if self._deadline_part != "headers":
            self._start_deadline(self.limits.header_timeout, "headers")

    def _start_deadline(self, seconds: float, part: str) -> None:
        self._stop_deadline()
        self._deadline_part = part
        self._deadline = self._loop.call_later(seconds, self._too_slow)

    def _stop_deadline(self) -> None:
        self._deadline_part = ""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self.busy:  # an earlier request of the pipeline is still being answered
            self._start_deadline(self.limits.header_timeout, self._deadline_part)
            return
        log.info("Closed the connection of %s: its %s did not come in time", self.address, self._deadline_part)
        self.force_close()

    @property
    def address(self) -> str:
        """The peer's address, '' when it has left."""
        name = self.peername
        return str(name[0]) if isinstance(name, tuple) else ""

    @cached_property
    def client_address(self) -> str:
        """The peer's address as it was at the first request; IPv4 also of one that connected over IPv6."""
        return address_of(self.peername)

    @property
    def has_ended(self) -> bool:
        """True when the connection has ended or is being closed."""
        return self.transport is None or self.transport.is_closing()

    def abort(self) -> None:
        """Cut the connection now; unsent data are lost."""
        if self.transport is not None:
            self.transport.abort()  # before it is closed: the TLS transport of Python 3.11.2 cannot be aborted once it was closed twice
        self.force_close()

    async def _drain_helper(self) -> None:
        try:
            async with asyncio.timeout(self.limits.write_timeout):
                await super()._drain_helper()
        except TimeoutError as err:
            log.info("Cut the connection of %s: it does not read its answer", self.address)
            self.abort()
            raise ClientConnectionResetError("The peer does not read") from err

    def send_continue(self) -> None:
        """Send the interim answer that `Expect: 100-continue` waits for."""
        if self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def handle_error(
        self, request: web_request.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web_response.StreamResponse:
        """Return the answer to bytes that are not HTTP; the parser's complaint goes to the log, shortened."""
        if isinstance(exc, ConnectionError) and self.has_ended:
            raise exc  # nobody to answer, nothing to report
        if status >= 500 and exc is not None:
            log.error("Error while answering %s", self.address, exc_info=exc)
        else:
            complaint = str(message or exc or "").partition("\n")[0]
            log.info("Refused a request of %s: %s", self.address, quoted_for_log(complaint, 100))
        if request.writer.output_size > 0:
            raise ConnectionError("The answer is already on its way")
        response = web_response.Response(status=status, text="Bad Request" if status == 400 else "Internal Server Error")
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        log.error(*args, **({"exc_info": True} | kw))


class ConnectionServer(web_server.Server):
    """Makes a Connection for each accepted socket and knows all of them."""

    def __init__(self, handler: Handler, limits: ServerLimits) -> None:
        super().__init__(self._answered, request_factory=self._request)  # type: ignore[arg-type]  # we make the requests it is handed
        self.limits = limits
        self.handler = handler
        self.working: set[asyncio.Task[Any]] = set()  # the requests being answered, also those whose client has left
        self.on_lost: Callable[[], None] = lambda: None

    async def _answered(self, request: HttpRequest) -> web_response.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self.working.add(task)
        try:
            return await self.handler(request)
        finally:
            self.working.discard(task)
            request.connection.idle_since = self._loop.time()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._loop.call_soon(self.on_lost)

    def __call__(self) -> Connection:
        return Connection(self, self.limits, self._loop)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> HttpRequest:
        unsupported = ""
        if message.version not in (HttpVersion10, HttpVersion11):
            unsupported = f"HTTP/{message.version[0]}.{message.version[1]}"
            message = message._replace(version=HttpVersion11, should_close=True)
        request = HttpRequest(message, payload, protocol, writer, task, self._loop)
        request.unsupported_version = unsupported
        return request

    @property
    def open_connections(self) -> list[Connection]:
        """The open connections."""
        return [connection for connection in self.connections if isinstance(connection, Connection)]

    def close_idle(self) -> None:
        """Close the connections that wait for a request; the others close after their answer."""
        for connection in self.open_connections:
            if connection.busy:
                connection.close()
            else:
                connection.force_close()

    async def drain(self, timeout: float) -> None:
        """Let requests in flight end within `timeout` seconds, cut the rest, and close all connections; nothing is accepted any more."""
        self.close_idle()
        end = self._loop.time() + timeout
        while self._loop.time() < end:
            if not self.working and not any(connection.busy for connection in self.open_connections):
                break
            await asyncio.sleep(0.02)
        unfinished = set(self.working)
        if unfinished:
            log.warning("Cut %d requests that did not finish within the drain limit", len(unfinished))
        for connection in self.open_connections:
            connection.abort()
        for request in unfinished:
            request.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=1.0)
        await self.shutdown(1.0)
