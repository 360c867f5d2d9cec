"""
The endpoints by request: each module of this folder declares its endpoints as ROUTES, and no other list of them exists.

Paths, methods and short names for logs and metrics, default rules, the names that no indirection may have, and the OpenAPI document
all come from the routes.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from certs.oids import OidNames
from environments.directories import Environments
from httpd.connections.connection import HttpRequest
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadName, MethodNotAllowed
from shared.indirector.core import Indirector, Option
from shared.indirector.paths import decode_path, parameters, plurality
from shared.names import quoted_for_log

from ..authorization.auth_conf import Rules
from ..authorization.defaults import ANYTHING_ELSE, LEGACY_RULES, MODERN_RULES, THIS_MASTER
from ..authorization.rules import AccessDecision, AccessRequest, Rule, decide
from ..observability.health import Health
from ..pools.body_parser import BodyParser
from .limits import MasterLimits
from .schemes import MODERN_SCHEME, Scheme, forbidden_path

log = logging.getLogger("puppet.http")

Body = Literal["", "json", "pem", "ocsp"]

_MODERN = {"/v2.0/environments": "/puppet/v3/environments"}  # for rules that know scheme B only
_VERBS = {"GET": "find", "HEAD": "find", "PUT": "save", "POST": "save", "DELETE": "destroy"}


@dataclass(frozen=True, slots=True)
class MasterAppOptions:
    """
    The parts of a master's application, from which its endpoints answer.

    Attributes:
        metrics: Returns the text for collectors of metrics.
        parser: Parses bodies; by default without processes of its own.
        parts: What the endpoints of some modules belong to, such as the CA; without it there are no such endpoints.
        auth_conf: The file of rules; None: only the default rules hold.
        filetimeout: Seconds between two looks at that file.
        certname: Our name, which agents of 8 get with their catalog.
        health: The conditions that the states of services follow from; without any the state of the server alone counts.
        retry_delay: Returns the seconds of Retry-After, from 1 to the given number; by default at random.
    """

    indirector: Indirector
    environments: Environments
    metrics: Callable[[], str]
    limits: MasterLimits = field(default_factory=MasterLimits)
    parser: BodyParser = field(default_factory=BodyParser)
    parts: Sequence[object] = ()
    auth_conf: Path | None = None
    filetimeout: float = 15.0
    oid_names: OidNames = field(default_factory=OidNames)
    certname: str = ""
    health: Health = field(default_factory=Health)
    retry_delay: Callable[[int], int] = lambda most: 1 + secrets.randbelow(max(most, 1))


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """A request's target: its `segments`, decoded once, and its decoded `path`."""

    method: str
    raw_query: str
    path: str
    segments: tuple[str, ...]

    @classmethod
    def of(cls, method: str, raw_path: str, raw_query: str) -> RequestTarget:
        """Split a target; raise BadName for broken escapes, and for a segment with a separator or a control character."""
        segments = tuple(decode_path(part) for part in raw_path.split("/")[1:])
        if segments[:3] == ("puppet-ca", "v1", "ocsp") and len(segments) > 3:  # base64, where a slash is a letter
            return cls(method, raw_query, "/" + "/".join(segments[:3]), (*segments[:3], "/".join(segments[3:])))
        if any("/" in part or any(ord(c) < 32 or ord(c) == 127 for c in part) for part in segments):
            raise BadName("The path is not valid")
        return cls(method, raw_query, "/" + "/".join(segments), segments)

    @property
    def verb(self) -> str:
        """The verb in rules of 3.8's form."""
        return _VERBS.get(self.method, "save")


@dataclass(frozen=True, eq=False, repr=False)
class EndpointCall:
    """A request to an endpoint, and the rules in force."""

    request: HttpRequest
    rules: Rules

    @cached_property
    def target(self) -> RequestTarget:
        """The decoded target; raises BadName, see `RequestTarget.of`."""
        return RequestTarget.of(self.request.method, self.request.sent_path, self.request.sent_query)

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The parameters of the query; raises BadName, BadRequest."""
        return parameters(self.target.raw_query)


def decision_for(target: RequestTarget, call: EndpointCall, *paths: str, verb: str = "") -> AccessDecision:
    """Return the decision of the rules about a target; `paths` override the URL's own, `verb` replaces the method's."""
    url = _MODERN.get(target.path, target.path)
    request = AccessRequest(
        (*paths, target.path), verb or target.verb, None, call.request.client, url, target.method.lower(), parameters(target.raw_query)
    )
    return decide(call.rules.modern, request)


def denial_for(target: RequestTarget, call: EndpointCall, *paths: str, verb: str = "") -> Response | None:
    """Return the denial, or None when the rules allow access; see `decision_for`."""
    decision = decision_for(target, call, *paths, verb=verb)
    if decision.allowed:
        return None
    rule = decision.rule.name if decision.rule else "none"
    client, path = call.request.client, quoted_for_log(target.path)
    log.warning("Denied: %s(%s) access to %s [%s]; the rule that decided: %s", client.name, client.address, path, target.method, rule)
    return forbidden_path(target.path, target.method)


def require_method(target: RequestTarget, *methods: str) -> None:
    """Raise MethodNotAllowed unless the request's method is one of `methods`; HEAD is allowed where GET is."""
    if target.method not in methods and not (target.method == "HEAD" and "GET" in methods):
        raise MethodNotAllowed(f"Only {', '.join(methods)} is allowed here")


def json_response(data: object, status: int = 200) -> Response:
    """Return plain data as the response of an endpoint."""
    return Response(status, plainjson.dumps(data), "application/json;charset=utf-8")


@dataclass(frozen=True, slots=True)
class EndpointRoute:
    """
    An endpoint that is not an indirection.

    Attributes:
        path: With parameters in braces, each a segment; `{name*}` at the end is any number of segments.
        methods: The kind of body that each method takes.
        answer: The type of the answer.
        summary: A sentence for the OpenAPI document, which does not name an endpoint without one.
        query: The names of parameters in the query.
        respond: Returns the response to a call of the part, or None when there is nothing; raises PuppetError. None: there is nothing.
        part: The class of the one among `MasterAppOptions.parts` that the endpoint belongs to, or the options themselves.
        rule: Who may by default; None: nobody, until a rule of the site's says so.
        name: The short name in logs and metrics; by default the last word of the path.
        lane: See `Admission`; None: the request takes no slot.
        scheme: Puts errors into words.
        is_guarded: Whether method and rules are checked before `respond` is called, which does so itself otherwise.
        as_sent: Whether only a path that is spelled so belongs to it, and none that is so when it is decoded.
    """

    path: str
    methods: Mapping[str, Body]
    answer: str = ""
    summary: str = ""
    query: Sequence[str] = ()
    _: KW_ONLY
    respond: Callable[[Any, EndpointCall], Awaitable[Response | None]] | None = None
    part: type = MasterAppOptions
    rule: Rule | None = None
    name: str = ""
    lane: str | None = ""
    scheme: Scheme = MODERN_SCHEME
    is_guarded: bool = True
    as_sent: bool = False

    @property
    def segments(self) -> list[str]:
        return self.path.split("/")[1:]

    @property
    def endpoint(self) -> str:
        """The short name in logs and metrics."""
        return self.name or next(part for part in reversed(self.segments) if not part.startswith("{"))


class RouteTable:
    """Routes by path: a word goes before a parameter, and that before the rest of a path."""

    def __init__(self, routes: Iterable[EndpointRoute]) -> None:
        self._routes = sorted(routes, key=lambda route: [part.startswith("{") + part.endswith("*}") for part in route.segments])
        self._pattern = re.compile("|".join(f"({''.join(map(_pattern_of, route.segments))})" for route in self._routes), re.DOTALL)

    def of(self, path: str) -> EndpointRoute | None:
        """Return the route of a path."""
        found = self._pattern.fullmatch(path)
        return self._routes[found.lastindex - 1] if found is not None and found.lastindex else None


def _pattern_of(part: str) -> str:
    if not part.startswith("{"):
        return "/" + re.escape(part)
    return "(?:/.*)?" if part.endswith("*}") else "/[^/]+"


@cache
def find_routes() -> tuple[EndpointRoute, ...]:
    """Return all routes: those of the modules of this folder, which are imported."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    return tuple(route for name in names for route in getattr(import_module(f".{name}", __package__), "ROUTES", ()))


def default_rules(certname: str = "") -> Rules:
    """Return the default rules of the master with this certname, those of the endpoints among them."""
    own = replace(THIS_MASTER, text=certname)
    rules = dict.fromkeys(route.rule for route in find_routes() if route.rule)
    named = [replace(rule, entries=tuple(own if entry is THIS_MASTER else entry for entry in rule.entries)) for rule in rules]
    return Rules(LEGACY_RULES, (*MODERN_RULES, *named, ANYTHING_ELSE))


def reserved_names() -> frozenset[str]:
    """Return the names that no indirection may have: its URL, or that of a search, would be an endpoint's."""
    return frozenset(plurality(route.segments[2])[0] for route in find_routes() if route.path.startswith("/puppet/v3/"))
