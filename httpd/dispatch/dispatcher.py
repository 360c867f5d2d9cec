"""The way of a request through a server: checks, identity, the application, the response, the logs."""

from __future__ import annotations

import itertools
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from aiohttp import web_response

from shared.client import Client
from shared.errors import NO_SPACE, Denied, OutOfSpace, PuppetError
from shared.names import quoted_for_log
from shared.process.log import ORIGIN, RequestOrigin

from ..application import HttpApplication
from ..connections.connection import HttpRequest
from ..limits import ServerLimits
from ..messages.responses import Response, one_line, send
from ..options import ServerOptions
from . import access_log

log = logging.getLogger("puppet.http")

MAX_REPORTED = 4000  # characters of an error's text in the log
_REFUSALS = (401, 403)


@dataclass(slots=True)
class _Exchange:
    """A request under way; `status` is 0 until a response is sent, `size` counts the bytes of its body."""

    request: HttpRequest
    started: float  # time.monotonic()
    status: int = 0
    size: int = 0


class _Refused(Exception):
    """A request that is refused before the application sees it."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Dispatcher:
    """
    Carries requests to an application and its responses back.

    Nothing that a peer sends ends in a traceback: the application puts foreseen errors into words, and unforeseen ones become a bare
    500 with a number that is logged with the traceback.

    Args:
        identify: Returns the client that sent a request, or raises Denied; None: all clients are strangers.
    """

    def __init__(self, application: HttpApplication, identify: Callable[[HttpRequest], Client] | None, options: ServerOptions) -> None:
        self._application = application
        self._identify = identify
        self._options = options
        self._numbers = itertools.count(secrets.randbits(48))  # of requests; those of two starts are not the same

    async def handle(self, request: HttpRequest) -> web_response.StreamResponse:
        """Answer one request; return the response in aiohttp's form, already written."""
        address = request.connection.client_address
        request.client = Client(address, address, authenticated=False)
        origin = ORIGIN.set(RequestOrigin(f"{next(self._numbers) % 2**48:012x}", address))
        exchange = _Exchange(request, time.monotonic())
        try:
            request.response_headers = self._application.headers(request)
            return await self._send(exchange, await self._response(request))
        finally:
            self._record(exchange)
            ORIGIN.reset(origin)

    async def _response(self, request: HttpRequest) -> Response:
        """Return the response, that of an error included; raise only what ends the connection."""
        try:
            check_message(request, self._options.limits)
            request.client = self._client(request)
            return await self._application.handle(request)
        except _Refused as refusal:
            return refusal.response
        except PuppetError as err:
            return self._error(request, err)
        except Exception as err:  # the request's outermost frame
            if isinstance(err, ConnectionError) and request.connection.has_ended:
                raise  # a lost connection to another peer is an incident
            return self._unforeseen(request, err)

    async def _send(self, exchange: _Exchange, response: Response) -> web_response.StreamResponse:
        try:
            return await self._write(exchange, response)
        except PuppetError as err:  # a stream that cannot even begin
            return await self._write(exchange, self._error(exchange.request, err))

    async def _write(self, exchange: _Exchange, response: Response) -> web_response.StreamResponse:
        exchange.status = response.status
        response = self._closing_if_due(exchange.request, response)
        written, exchange.size = await send(exchange.request, response)
        return written

    def _closing_if_due(self, request: HttpRequest, response: Response) -> Response:
        """Return the response; it ends the connection when a stop is under way or a body was left unread."""
        unread = request.body_exists and not request.content.is_eof()
        if self._application.state == "stopping" or (unread and response.chunks is None):
            return replace(response, close=True)
        return response

    def _error(self, request: HttpRequest, error: PuppetError) -> Response:
        """Return the response to a foreseen error; write it into the log as one record, with its hint."""
        response = self._application.error(request, error)
        client, hint = request.client, f" ({one_line(error.hint)})" if error.hint else ""
        level = self._application.log_level(request, error, response.status)
        who = f"{client.address} {client.name if client.authenticated else '-'}: " if client.address else ""  # a Unix socket has neither
        log.log(level, "%s%s%s", who, one_line(str(error))[:MAX_REPORTED], hint)
        return response

    def _unforeseen(self, request: HttpRequest, err: Exception) -> Response:
        """Return the response to an unexpected error; called while it is handled."""
        if isinstance(err, OSError) and err.errno in NO_SPACE:
            return self._error(
                request,
                OutOfSpace("The master's disk is full", hint=f"Free some space on the file system of {err.filename or 'its data'}."),
            )
        number = request_number()
        log.exception("Incident %s while answering %s", number, quoted_for_log(f"{request.method} {request.sent_path}", 200))
        return self._application.incident(request, number)

    def _client(self, request: HttpRequest) -> Client:
        """Return the client that asks; raise _Refused."""
        if self._identify is None:
            return request.client
        try:
            return self._identify(request)
        except Denied as err:
            peer = request.connection.peer
            log.warning("Refused %s(%s): %s", peer.client.name if peer is not None else "-", request.client.address, err)
            raise _Refused(Response(403, f"Forbidden request: {err}".encode("ascii", "replace"), "text/plain", close=True)) from err

    def _record(self, exchange: _Exchange) -> None:
        """Tell metrics, access log and audit trail of a request that has ended."""
        request, status, seconds = exchange.request, exchange.status, time.monotonic() - exchange.started
        self._options.on_answer(request.endpoint, request.method, status, seconds)
        client, peer = request.client, request.connection.peer
        access_log.log_request(
            address=client.address,
            name=client.name if client.authenticated else "",
            method=request.method,
            target=request.raw_path,
            status=status,
            size=exchange.size,
            seconds=seconds,
        )
        if status in _REFUSALS:
            self._options.on_refused(
                {
                    "action": "request",
                    "name": peer.client.name if peer is not None else "-",
                    "result": "refused",
                    "method": quoted_for_log(request.method, 20)[1:-1],
                    "path": quoted_for_log(request.sent_path, 500)[1:-1],
                    "status": status,
                }
            )


def request_number() -> str:
    """Return the number of the request that is being answered, which the log has as well."""
    origin = ORIGIN.get()
    return origin.request if origin is not None else ""


def check_message(request: HttpRequest, limits: ServerLimits) -> None:
    """
    Refuse requests that the parser accepts but the server does not: other HTTP versions, targets that are not paths, two Host headers,
    long headers, web pages.

    A browser with a client's certificate shows it for any page.

    Raises:
        _Refused: with the response.
    """
    headers = request.headers
    if request.unsupported_version:
        raise _refused(505, b"HTTP Version Not Supported")
    if request.method in ("CONNECT", "TRACE"):
        raise _refused(405, b"Method Not Allowed")
    hosts = headers.getall("Host", [])
    if len(hosts) > 1 or (not hosts and request.version >= (1, 1)) or not request.raw_path.startswith("/"):
        raise _refused(400, b"Bad Request")
    if sum(len(name) + len(value) for name, value in request.raw_headers) > limits.max_header_bytes:
        raise _refused(431, b"Request Header Fields Too Large")
    if "Origin" in headers:
        raise _refused(403, b"Requests of web pages are refused")
    expected = headers.get("Expect", "")
    if expected and expected.lower() != "100-continue":
        raise _refused(417, b"Expectation Failed")


def _refused(status: int, body: bytes) -> _Refused:
    return _Refused(Response(status, body, "text/plain", close=True))
