"""The store's application: the endpoint of a request, its access rules, and the texts of errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.dispatch.admission import Admission
from httpd.messages.responses import Response, error_headers, one_line
from shared.client import Client
from shared.errors import PuppetError, Unavailable

from ..commands.commands import DatabaseUnavailable
from .admin import AdminEndpoint
from .answers import TEXT_TYPE, compact_response, dashboard_redirect, text_response
from .commands import CommandEndpoint
from .jolokia import MetricsEndpoint
from .negotiation import path_segments, require_get
from .queries.endpoint import QueryEndpoint
from .queries.paths import ENTITIES
from .sealed import SealedEndpoint
from .status import StoreCondition, meta_response, status_response

log = logging.getLogger("puppet.store")

DOWN = "PuppetDB is currently down. Try again later."
_NOT_LISTED = (
    "Permission denied: The client certificate name {} doesnt appear in the certificate allowlist. "
    "Is your master's (or other PuppetDB client's) certname listed in PuppetDB's certificate-allowlist file?"
)
_NO_LIST = (
    "Permission denied: The client certificate name {} may ask, but without a certificate allowlist only this host's own may change "
    "anything. Name those that may in a file, and the file in the setting store_allowlist."
)
_CHANGING = ("cmd", "admin")
_LANES = {"cmd": "commands", "query": "queries", "admin": "admin"}  # those that wait for others of their kind only
_PAGE = """<!DOCTYPE html>
<html lang="en"><title>Bunraku's store</title>
<p>This is a store for facts, catalogs and reports with PuppetDB's API.
<ul>
<li><a href="/pdb/query/v4/nodes">/pdb/query/v4/nodes</a>
<li><a href="/status/v1/services">/status/v1/services</a>
<li><a href="/metrics/v2/list">/metrics/v2/list</a>, <a href="/metrics">/metrics</a>
</ul>
"""


@dataclass(frozen=True, slots=True)
class StoreEndpoints:
    """
    The endpoints that work once the database is open.

    Attributes:
        queue_depth: Returns how many commands wait.
        database_is_up: Returns whether the database can be reached now.
    """

    queries: QueryEndpoint
    admin: AdminEndpoint
    metrics: MetricsEndpoint
    sealed: SealedEndpoint
    queue_depth: Callable[[], int]
    database_is_up: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class AccessRules:
    """
    The access rules for the store over TLS, in addition to a certificate of our CA; other clients are trusted because they reach a local
    socket or port.

    Attributes:
        own: The certname of this host.
        allowlist: The certnames that may do everything. None: all may query, and `own` may do everything.
    """

    own: str
    allowlist: frozenset[str] | None = None

    def denial(self, client: Client, endpoint: str) -> str:
        """Return why an endpoint below /pdb (`query`, `cmd` and so on) is denied to a client over TLS; '' when it is not."""
        if not client.authenticated:
            return "Permission denied: there is no client certificate"
        if self.allowlist is not None and client.name not in self.allowlist:
            return _NOT_LISTED.format(client.name)
        if self.allowlist is None and endpoint in _CHANGING and client.name != self.own:
            return _NO_LIST.format(client.name)
        return ""


class StoreApplication(HttpApplication):
    """
    PuppetDB's HTTP interface. Commands are accepted once `commands` is set; until `endpoints` are set, other requests get 503 with
    Retry-After.

    Args:
        access: The rules in force, which may be replaced.
        now: Returns the time in microseconds since the epoch.
    """

    def __init__(self, admission: Admission, access: AccessRules, now: Callable[[], int]) -> None:
        self.commands: CommandEndpoint | None = None
        self.endpoints: StoreEndpoints | None = None
        self._admission = admission
        self.access = access
        self._now = now

    def error(self, request: HttpRequest, error: PuppetError) -> Response:
        """Return an error in the form that the endpoint's clients expect: JSON for commands, text for the others."""
        return Response(error.status, error.message.encode("utf-8", "replace"), TEXT_TYPE, error_headers(error))

    async def handle(self, request: HttpRequest) -> Response:
        segments = path_segments(request)
        request.endpoint = _endpoint_name(segments)
        match segments:
            case ("",):
                return dashboard_redirect()
            case ("pdb", *rest):
                return await self._pdb(request, rest)
            case ("sealed",) if not request.client.address:  # of the master itself, at the Unix socket
                return await self._work("queries", request, lambda endpoints: endpoints.sealed.respond(request))
            case ("status" | "metrics" as name, *rest):
                response = await self._service(request, name, rest)
                if response is not None:
                    return response
        return compact_response({"message": "Not Found", "url": request.sent_path, "status": "404"}, 404)

    async def _pdb(self, request: HttpRequest, segments: Sequence[str]) -> Response:
        if request.secure and (denial := self.access.denial(request.client, segments[0] if segments else "")):
            log.warning("Denied %s(%s): %s", request.client.name, request.client.address, one_line(request.sent_path)[:200])
            return text_response(403, denial)
        if segments[:2] == ["dashboard", "index.html"]:
            require_get(request)
            return Response(200, _PAGE.encode(), "text/html;charset=utf-8")
        lane = _LANES.get(segments[0], "") if segments else ""
        if self.commands is not None and segments[:2] == ["cmd", "v1"]:
            async with self._admission.slot(request.client.name, lane):
                if segments == ["cmd", "v1"]:
                    return await self.commands.respond(request)
                if segments == ["cmd", "v1", "batch"] and not request.secure:  # of the master itself; PuppetDB has no such thing
                    return await self.commands.respond_to_batch(request)
        if not lane and self.endpoints is not None:
            return self._plain(request, segments)
        return await self._work(lane, request, lambda endpoints: _respond(endpoints, request, segments))

    async def _work(self, lane: str, request: HttpRequest, respond: Callable[[StoreEndpoints], Awaitable[Response]]) -> Response:
        """Return the response of one of the endpoints that need the database."""
        endpoints = self.endpoints
        if endpoints is None:
            return text_response(503, DOWN)
        async with self._admission.slot(request.client.name, lane):
            try:
                return await respond(endpoints)
            except DatabaseUnavailable as err:
                raise Unavailable("The database cannot be reached", hint=str(err)) from err

    def _plain(self, request: HttpRequest, segments: Sequence[str]) -> Response:
        match segments:
            case ["meta", *rest]:
                return meta_response(request, rest, self._now())
            case ["ext", *_]:
                return text_response(404, "Not Found")
        return dashboard_redirect()

    async def _service(self, request: HttpRequest, name: str, segments: Sequence[str]) -> Response | None:
        """Return the response of the endpoints of status and metrics, which no list of names protects."""
        if name == "metrics" and request.secure and not request.client.authenticated:
            return text_response(403, f"Forbidden request: {one_line(request.sent_path)} (method :{request.method.lower()})")
        if name == "status":
            return status_response(request, segments, await self._condition())
        if self.endpoints is None:
            return text_response(503, DOWN)
        return await self.endpoints.metrics.respond(request, segments)

    async def _condition(self) -> StoreCondition:
        endpoints = self.endpoints
        if endpoints is None:
            return StoreCondition("starting" if self.state == "running" else self.state)
        return StoreCondition(self.state, endpoints.queue_depth(), await endpoints.database_is_up())


async def _respond(endpoints: StoreEndpoints, request: HttpRequest, segments: Sequence[str]) -> Response:
    match segments:
        case ["query", *rest]:
            return await endpoints.queries.respond(request, rest)
        case ["admin", *rest]:
            return await endpoints.admin.respond(request, rest) or dashboard_redirect()
    return dashboard_redirect()


def _endpoint_name(segments: Sequence[str]) -> str:
    """Return the name of an endpoint for metrics; there is a limited number of them."""
    match segments:
        case ("pdb", "query", "v4", *rest):
            return "/pdb/query/v4" + (f"/{rest[0]}" if rest and rest[0] in ENTITIES else "")
        case ("pdb", "cmd" | "meta" | "admin" as part, *_):
            return f"/pdb/{part}/v1"
        case ("status" | "metrics" as part, *_):
            return f"/{part}"
    return "unknown"
