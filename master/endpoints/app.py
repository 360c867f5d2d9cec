"""
The master's application: which endpoints a request goes to, and how its errors are put into words.

    Dispatcher (http) → MasterApp.handle → ServerEndpoints | Handlers | CaEndpoints | StoreProxy | ServiceEndpoints → Response
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from certs.oids import OidNames
from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.dispatch.admission import Admission
from httpd.dispatch.dispatcher import request_number
from httpd.messages.responses import Response, text_response
from shared import __version__
from shared.client import Client
from shared.errors import NoEnvironment, PuppetError
from shared.indirector.core import Indirector
from shared.indirector.paths import is_scheme_b, parse

from ..authorization.auth_conf import AuthFile, Rules
from ..observability.health import Health
from ..pools.parse_pool import ParsePool
from .deploy import NAME as HOOK_NAME
from .deploy import PATH as HOOK_PATH
from .deploy import DeployHook
from .handlers import OF_THE_CA, EnvironmentLookup, Handlers
from .limits import MasterLimits
from .preview import NAME as PREVIEW_NAME
from .preview import PATH as PREVIEW_PATH
from .preview import PreviewEndpoint
from .puppetserver import ServerEndpoints, server_endpoint
from .schemes import LEGACY_SCHEME, MODERN_SCHEME, PLAIN_SCHEME, Scheme, is_internal, not_routed
from .service import RequestTarget, ServiceEndpoints, endpoint_name
from .store import PREFIX as STORE_PREFIX
from .store import StoreProxy

LISTEN_HINT = "Another program may use the port already; the settings are bindaddress and masterport."
HANDSHAKE_HINT = (
    "; often its setting 'server' is no name of our certificate ('puppet cert print' shows them), or its ca.pem is that of another CA"
)
_LANES = frozenset({"catalog", "report"})  # of their own: they wait for a few processes, and for the disk


class Ca(Protocol):
    """The endpoints below /puppet-ca/v1."""

    async def respond(self, request: HttpRequest, target: RequestTarget, client: Client, rules: Rules) -> Response: ...


def random_delay(most: int) -> int:
    """Return a random number of seconds from 1 to `most`."""
    return 1 + secrets.randbelow(max(most, 1))


@dataclass(frozen=True, slots=True)
class MasterAppOptions:
    """
    The options of a master's application.

    Attributes:
        parsers: Read large bodies, and YAML, in processes of their own; None: all are read in this process.
        server: The endpoints that puppetserver has of its own; None: there are none.
        ca: The CA's endpoints; None: this master is no CA.
        previews: Makes previews of changed code; None: this master makes none.
        hook: Takes the calls of the control repository's web hook; None: there is none.
        store: Passes requests on to this master's store; None: there is none.
        auth_conf: The file of rules; None: only the default rules hold.
        filetimeout: Seconds between two looks at that file.
        certname: Our name, which agents of 8 are told with their catalog.
        metrics: Returns the text for collectors of metrics; None: there is no such endpoint.
        health: The conditions that the states of services follow from; without any the state of the server alone counts.
        retry_delay: Returns the seconds of Retry-After, given the most.
    """

    indirector: Indirector
    environments: EnvironmentLookup
    limits: MasterLimits = field(default_factory=MasterLimits)
    parsers: ParsePool | None = None
    server: ServerEndpoints | None = None
    ca: Ca | None = None
    previews: PreviewEndpoint | None = None
    hook: DeployHook | None = None
    store: StoreProxy | None = None
    auth_conf: Path | None = None
    filetimeout: float = 15.0
    oid_names: OidNames = field(default_factory=OidNames)
    certname: str = ""
    metrics: Callable[[], str] | None = None
    health: Health = field(default_factory=Health)
    retry_delay: Callable[[int], int] = random_delay


class MasterApp(HttpApplication):
    """Puppet's HTTP interface: the indirections of both URL schemes, puppetserver's, the CA's and the service's endpoints."""

    def __init__(self, options: MasterAppOptions) -> None:
        limits, environments = options.limits, options.environments
        self.auth = AuthFile(options.auth_conf, names=options.oid_names, filetimeout=options.filetimeout)
        self.admission = Admission(
            limits.max_active_requests,
            limits.max_queued_requests,
            limits.max_client_requests,
            limits.max_retry_delay,
            options.retry_delay,
        )
        self.certname = options.certname
        self.handlers = Handlers(options.indirector, environments, limits, options.parsers)
        self.service = ServiceEndpoints(environments, lambda: self.state, __version__, options.metrics, options.health)
        self.server = options.server
        self.ca = options.ca
        self.previews = options.previews
        self.hook = options.hook
        self.store = options.store

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
        if self.store is not None and path.startswith(STORE_PREFIX):
            request.endpoint = "store"
            async with self.admission.slot(request.client.name, "store"):
                return await self.store.respond(request, request.client, rules)
        scheme = self._scheme(path)
        if scheme is PLAIN_SCHEME:
            return await self._server_response(request, rules)
        if scheme is LEGACY_SCHEME or (path.startswith("/puppet/v3/") and path != "/puppet/v3/environments"):
            return await self._indirected_response(request, rules)
        target = RequestTarget.of(request.method, path, request.sent_query)
        if target.segments[0] == "puppet-ca":
            if self.ca is None or target.segments[1:2] != ("v1",):
                return text_response(404, "Not Found")
            return await self.ca.respond(request, target, request.client, rules)
        if self.hook is not None and target.segments == HOOK_PATH:
            request.endpoint = HOOK_NAME
            return await self.hook.respond(request, target)  # who knows its secret; no rule is asked
        if self.previews is not None and target.segments == PREVIEW_PATH:
            request.endpoint = PREVIEW_NAME  # no slot, which it would hold for long: few run at the same time
            return await self.previews.respond(request, target, request.client, rules)
        request.endpoint = endpoint_name(target.segments)
        response = await self.service.respond(target, request.client, rules)
        return response or not_routed(target.path, request.headers.get("Accept", ""))

    async def _server_response(self, request: HttpRequest, rules: Rules) -> Response:
        assert self.server is not None
        request.endpoint = server_endpoint(request.sent_path)
        target = RequestTarget.of(request.method, request.sent_path, request.sent_query)
        async with self.admission.slot(request.client.name, request.endpoint if request.endpoint in _LANES else ""):
            return await self.server.respond(request, target, request.client, rules)

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
        if self.server is not None and server_endpoint(path):
            return PLAIN_SCHEME
        return MODERN_SCHEME if is_scheme_b(path) else LEGACY_SCHEME
