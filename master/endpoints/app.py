"""
The master's application: which endpoint or indirection a request goes to, and how its errors are put into words.

    Dispatcher (http) → MasterApp.handle → Handlers | EndpointRoute.respond → Response
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext

from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.dispatch.admission import Admission
from httpd.dispatch.dispatcher import request_number
from httpd.messages.responses import Response
from shared import __version__
from shared.errors import NoEnvironment, PuppetError
from shared.indirector.paths import is_scheme_b, parse

from ..authorization.auth_conf import AuthFile, Rules
from .handlers import OF_THE_CA, Handlers
from .routes import EndpointCall, MasterAppOptions, RouteTable, default_rules, denial_for, find_routes, require_method
from .schemes import LEGACY_SCHEME, MODERN_SCHEME, Scheme, is_internal, not_routed
from .service import ServiceEndpoints

LISTEN_HINT = "Another program may use the port already; the settings are bindaddress and masterport."
HANDSHAKE_HINT = (
    "; often its setting 'server' is no name of our certificate ('puppet cert print' shows them), or its ca.pem is that of another CA"
)
_LANES = frozenset({"catalog", "report"})  # of their own: they wait for a few processes, and for the disk


class MasterApp(HttpApplication):
    """Puppet's HTTP interface: the indirections of both URL schemes, and the endpoints that have routes."""

    def __init__(self, options: MasterAppOptions) -> None:
        limits = options.limits
        self.auth = AuthFile(options.auth_conf, default_rules(options.certname), names=options.oid_names, filetimeout=options.filetimeout)
        self.admission = Admission(
            limits.max_active_requests,
            limits.max_queued_requests,
            limits.max_client_requests,
            limits.max_retry_delay,
            options.retry_delay,
        )
        self.certname = options.certname
        self.handlers = Handlers(options.indirector, options.environments, limits, options.parser)
        service = ServiceEndpoints(options, lambda: self.state, __version__)
        self._parts = {type(part): part for part in (options, service, *options.parts)}
        self.routes = RouteTable(route for route in find_routes() if route.part in self._parts)

    async def start(self) -> None:
        await self.auth.start()

    async def reload(self) -> None:
        await self.auth.reload()

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        path = request.sent_path
        # /v2.0 is of Puppet 3.5 to 3.8, in whose time its errors were JSON already.
        dialect = LEGACY_SCHEME.dialect if path.startswith("/v2.0/") else self._scheme(path).dialect
        headers = {"X-Puppet-Version": dialect.version}
        if self.certname and request.method == "POST" and path.startswith("/puppet/v3/catalog/"):
            headers["X-Puppet-Compiler-Name"] = self.certname
        return headers

    def error(self, request: HttpRequest, error: PuppetError) -> Response:
        scheme = self._scheme(request.sent_path)
        if is_internal(error) and not request.client.authenticated:
            return scheme.incident(request_number())
        return scheme.error(error)

    def incident(self, request: HttpRequest, number: str) -> Response:
        return self._scheme(request.sent_path).incident(number)

    def log_level(self, request: HttpRequest, error: PuppetError, status: int) -> int:
        if status < 500 and isinstance(error, NoEnvironment) and request.endpoint == "catalog":
            return logging.WARNING  # once a run, and not for each of its requests that end so
        return super().log_level(request, error, status)

    async def handle(self, request: HttpRequest) -> Response:
        rules = await self.auth.rules()
        path = request.sent_path
        route = self.routes.of(path)
        if route is None and (self._scheme(path) is LEGACY_SCHEME or path.startswith("/puppet/v3/")):
            return await self._indirected_response(request, rules)
        call = EndpointCall(request, rules)
        if route is None or not route.as_sent:
            route = self.routes.of(call.target.path)
            if route is None or route.as_sent:
                return not_routed(call.target.path, request.headers.get("Accept", ""))
        request.endpoint = route.endpoint
        async with nullcontext() if route.lane is None else self.admission.slot(request.client.name, route.lane):
            if route.is_guarded:
                require_method(call.target, *route.methods)
                if denied := denial_for(call.target, call):
                    return denied
            response = await route.respond(self._parts[route.part], call) if route.respond else None
        return response or not_routed(call.target.path, request.headers.get("Accept", ""))

    async def _indirected_response(self, request: HttpRequest, rules: Rules) -> Response:
        client = request.client
        call = parse(request.method, request.sent_path, request.sent_query)
        if call.indirection in self.handlers.indirector:
            request.endpoint = call.indirection
        if call.indirection in OF_THE_CA:
            # Strangers reach these. They take no slot, which a slow sender would hold; the CA's own queue is bounded.
            return await self.handlers.respond(request, call, client, rules)
        async with self.admission.slot(client.name, call.indirection if call.indirection in _LANES else ""):
            return await self.handlers.respond(request, call, client, rules)

    def _scheme(self, path: str) -> Scheme:
        """Return the scheme that a path, as it was sent, belongs to."""
        if route := self.routes.of(path):
            return route.scheme
        return MODERN_SCHEME if is_scheme_b(path) else LEGACY_SCHEME
