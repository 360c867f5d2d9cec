"""
The master's application: one door for everything, behind it identity, authorization, the endpoints, and the way back.

    Connection (connection.py) → MasterApp.handle → identity → Native | ServerEndpoints | CaEndpoints | Handlers → Answer → answers.send
"""

from __future__ import annotations

import errno
import itertools
import logging
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from aiohttp import web

from certs.oids import OidNames
from shared.errors import Denied, NoEnvironment, OutOfSpace, PuppetError
from shared.indirector.core import Client
from shared.indirector.paths import is_scheme_b, parse
from shared.names import shown
from shared.process.log import ORIGIN, Origin

from ..authorization.auth_conf import AuthFile, Rules
from ..http import access_log, identity
from ..http.admission import Admission
from ..http.connection import HttpRequest
from ..http.identity import Peer, ProxyRules
from ..http.limits import HttpLimits
from ..http.responses import Response, send, text_response
from ..http.tls import ServerTls
from .handlers import OF_THE_CA, Handlers
from .puppetserver import ServerEndpoints, server_endpoint
from .schemes import LEGACY_SCHEME, MODERN_SCHEME, PLAIN_SCHEME, Scheme, is_internal, not_routed, one_line
from .service import RequestTarget, ServiceEndpoints, endpoint_name

log = logging.getLogger("puppet.http")

_REFUSALS = (401, 403)
MAX_REPORTED = 4000  # characters of an error's text in the log
_LANES = frozenset({"catalog", "report"})  # of their own: they wait for a few processes, and for the disk


class Ca(Protocol):
    """The endpoints below /puppet-ca/v1."""

    async def answer(self, request: HttpRequest, target: RequestTarget, client: Client, rules: Rules) -> Response: ...


class MasterApp:
    """
    Answers every request. Nothing a peer sends ends in a traceback: foreseen errors are put into the scheme's words, the
    unforeseen become a bare 500 with a number that stands beside the traceback in the log.

    Args:
        compiler: our certname, which agents of 8 are told with their catalog.
        draining: whether a stop is under way, so that connections end with their answers.
        now: the time by which certificates are valid, UTC.
        on_answer: told of each request: indirection or endpoint, method, status (0: none was sent), seconds.
        on_refused: told of each request that its sender may not make, as an entry for the audit trail.
    """

    def __init__(
        self,
        *,
        handlers: Handlers,
        native: ServiceEndpoints,
        server: ServerEndpoints | None,
        ca: Ca | None,
        auth: AuthFile,
        tls: ServerTls,
        limits: HttpLimits,
        admission: Admission,
        proxy: ProxyRules | None = None,
        oid_names: OidNames | None = None,
        compiler: str = "",
        draining: Callable[[], bool] = lambda: False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_answer: Callable[[str, str, int, float], None] = lambda about, method, status, seconds: None,
        on_refused: Callable[[dict[str, object]], None] = lambda entry: None,
    ) -> None:
        self.handlers = handlers
        self.native = native
        self.server = server
        self.ca = ca
        self.auth = auth
        self.tls = tls
        self.limits = limits
        self.admission = admission
        self.proxy = proxy or ProxyRules()
        self.oid_names = oid_names or OidNames()
        self.compiler = compiler
        self.draining = draining
        self.now = now
        self.on_answer = on_answer
        self.on_refused = on_refused
        self._numbers = itertools.count(secrets.randbits(48))  # of requests; those of two starts are not the same

    async def handle(self, request: HttpRequest) -> web.StreamResponse:
        """aiohttp's handler: one request to one response, already written."""
        started = time.monotonic()
        address = identity.address_of(request.connection.peername)
        origin = ORIGIN.set(Origin(f"{next(self._numbers) % 2**48:012x}", address))
        raw_path, _, raw_query = request.raw_path.partition("?")
        own = self.server is not None and server_endpoint(raw_path) != ""
        scheme: Scheme = PLAIN_SCHEME if own else MODERN_SCHEME if is_scheme_b(raw_path) else LEGACY_SCHEME
        # /v2.0 is of Puppet 3.5 to 3.8, in whose time its errors were JSON already.
        request.version_header = LEGACY_SCHEME.dialect.version if raw_path.startswith("/v2.0/") else scheme.dialect.version
        if request.method == "POST" and raw_path.startswith("/puppet/v3/catalog/"):
            request.compiler = self.compiler
        name, status, size = "", 0, 0
        try:
            try:
                check_message(request, self.limits)
                client = self._client(request, address)
                name = client.name if client.authenticated else ""
                answer = await self._answer(request, client, raw_path, raw_query, scheme)
            except _Refused as refusal:
                answer = refusal.answer
            except PuppetError as err:
                answer = scheme.incident(_request_number()) if not name and is_internal(err) else scheme.error(err)
                log_error(err, answer.status, address, name, request.about)
            except Exception as err:  # the request's outermost frame
                if isinstance(err, ConnectionError) and request.connection.gone:
                    raise  # a lost connection to somebody else is an incident
                if isinstance(err, OSError) and err.errno in (errno.ENOSPC, errno.EDQUOT):
                    full = OutOfSpace("The master's disk is full", hint=f"Make room for {err.filename or 'what it stores'}.")
                    answer = scheme.error(full)
                    log_error(full, answer.status, address, name, request.about)
                else:
                    answer = self._incident(scheme, request)
            status = answer.status
            try:
                response, size = await send(request, self._ending(request, answer), compress_from=self.limits.compress_from)
            except PuppetError as err:  # a stream that cannot even begin
                answer = scheme.error(err)
                status = answer.status
                log_error(err, status, address, name, request.about)
                response, size = await send(request, self._ending(request, answer), compress_from=self.limits.compress_from)
            return response
        finally:
            seconds = time.monotonic() - started
            self.on_answer(request.about, request.method, status, seconds)
            access_log.log_request(
                address=address, name=name, method=request.method, target=request.raw_path, status=status, size=size, seconds=seconds
            )
            if status in _REFUSALS:
                self.on_refused(
                    {
                        "action": "request",
                        "name": request.connection.peer.client.name if request.connection.peer else "-",
                        "result": "refused",
                        "method": shown(request.method, 20)[1:-1],
                        "path": shown(raw_path, 500)[1:-1],
                        "status": status,
                    }
                )
            ORIGIN.reset(origin)

    def _incident(self, scheme: Scheme, request: HttpRequest) -> Response:
        number = _request_number()
        log.exception("Incident %s while answering %s", number, shown(request.method + " " + request.raw_path.partition("?")[0], 200))
        return scheme.incident(number)

    def _ending(self, request: HttpRequest, answer: Response) -> Response:
        """The answer, ending the connection when a stop is under way or a body was left unread."""
        unread = not request.content.is_eof() if request.body_exists else False
        if answer.close or not (self.draining() or (unread and answer.chunks is None)):
            return answer
        return Response(answer.status, answer.body, answer.content_type, answer.headers, answer.chunks, answer.size, close=True)

    def _client(self, request: HttpRequest, address: str) -> Client:
        """Who asks, checked against the revocations and the clock of this moment."""
        connection = request.connection
        if connection.peer is None:
            connection.peer = identity.peer_of(_certificate_of(connection.transport), address, self.oid_names)
        peer: Peer = connection.peer
        try:
            client = identity.still_valid(peer, self.tls.revocations, self.now())
            claimed = identity.identity_headers(request.headers)
            if not claimed:
                return client
            if not self.proxy.trusts(address):
                log.warning("Ignored %s of %s(%s): it is not a configured proxy", shown(claimed[0]), client.name, address)
                return client
            passed = identity.peer_behind_proxy(
                list(request.headers.items()), self.proxy, self.tls.trust, address, self.oid_names, self.now()
            )
            return identity.still_valid(passed, self.tls.revocations, self.now())
        except Denied as err:
            log.warning("Refused %s(%s): %s", peer.client.name, address, err)
            raise _Refused(Response(403, f"Forbidden request: {err}".encode("ascii", "replace"), "text/plain", close=True)) from err

    async def _answer(self, request: HttpRequest, client: Client, raw_path: str, raw_query: str, scheme: Scheme) -> Response:
        rules = await self.auth.rules()
        if scheme is PLAIN_SCHEME and self.server is not None:
            request.about = server_endpoint(raw_path)
            target = RequestTarget.of(request.method, raw_path, raw_query)
            async with self.admission.slot(client.name, request.about if request.about in _LANES else ""):
                return await self.server.answer(request, target, client, rules)
        if scheme is LEGACY_SCHEME or (raw_path.startswith("/puppet/v3/") and raw_path != "/puppet/v3/environments"):
            call = parse(request.method, raw_path, raw_query)
            if call.indirection in self.handlers.indirector:
                request.about = call.indirection
            if call.indirection in OF_THE_CA:
                # Strangers reach these. They take no slot, which a slow sender would hold; the CA's own queue is bounded.
                return await self.handlers.answer(request, call, client, rules)
            async with self.admission.slot(client.name, call.indirection if call.indirection in _LANES else ""):
                return await self.handlers.answer(request, call, client, rules)
        target = RequestTarget.of(request.method, raw_path, raw_query)
        if target.segments[0] == "puppet-ca":
            if self.ca is None or target.segments[1:2] != ("v1",):
                return text_response(404, "Not Found")
            return await self.ca.answer(request, target, client, rules)
        request.about = endpoint_name(target.segments)
        answer = await self.native.answer(target, client, rules)
        return answer or not_routed(target.path, request.headers.get("Accept", ""))


def _request_number() -> str:
    """Return the number of the request that is being answered, which the log has as well."""
    origin = ORIGIN.get()
    return origin.request if origin is not None else ""


class _Refused(Exception):
    """An answer that is decided before the scheme has a say."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status)
        self.answer = answer


def _certificate_of(transport: object) -> bytes | None:
    """The DER of the peer's verified certificate; None without TLS or certificate."""
    get = getattr(transport, "get_extra_info", None)
    tls = get("ssl_object") if get is not None else None
    found: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return found


def log_error(error: PuppetError, status: int, address: str, name: str, about: str) -> None:
    """Write a foreseen error into the log, as one record with its hint. `about`: the indirection that was asked."""
    hint = f" ({one_line(error.hint)})" if error.hint else ""
    missing = isinstance(error, NoEnvironment) and about == "catalog"  # not each of a run's questions that end so
    level = logging.ERROR if status >= 500 else logging.WARNING if missing else logging.INFO
    log.log(level, "%s %s: %s%s", address, name or "-", one_line(str(error))[:MAX_REPORTED], hint)


def check_message(request: HttpRequest, limits: HttpLimits) -> None:
    """
    What the parser lets through and we do not: other HTTP versions, targets that are no path, two Host headers, long headers.

    Raises:
        _Refused: with the answer.
    """
    headers = request.headers
    if request.unsupported_version:
        raise _Refused(Response(505, b"HTTP Version Not Supported", "text/plain", close=True))
    if request.method in ("CONNECT", "TRACE"):
        raise _Refused(Response(405, b"Method Not Allowed", "text/plain", close=True))
    hosts = headers.getall("Host", [])
    if len(hosts) > 1 or (not hosts and request.version >= (1, 1)) or not request.raw_path.startswith("/"):
        raise _Refused(Response(400, b"Bad Request", "text/plain", close=True))
    if sum(len(name) + len(value) for name, value in request.raw_headers) > limits.max_header_bytes:
        raise _Refused(Response(431, b"Request Header Fields Too Large", "text/plain", close=True))
    expected = headers.get("Expect", "")
    if expected and expected.lower() != "100-continue":
        raise _Refused(Response(417, b"Expectation Failed", "text/plain", close=True))
