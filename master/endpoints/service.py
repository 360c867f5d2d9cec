"""The service's endpoints: status, environments, metrics, the administrator's cache call. Source: protocol reference 3.14, 3.16."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from httpd.messages.responses import Response, text_response
from httpd.metrics import MIME
from shared.client import Client
from shared.data import plainjson
from shared.errors import BadName, MethodNotAllowed, NotFound
from shared.indirector.paths import decode_path, parameters, single
from shared.names import quoted_for_log, valid_environment

from ..authorization.auth_conf import Rules
from ..authorization.rules import AccessDecision, AccessRequest, decide
from ..observability.health import SERVICES, Health, State, worst
from .handlers import EnvironmentLookup
from .schemes import forbidden_path

log = logging.getLogger("puppet.http")

LEVELS = ("critical", "info", "debug")
_MODERN = {"/v2.0/environments": "/puppet/v3/environments"}  # for rules that know scheme B only
_VERBS = {"GET": "find", "HEAD": "find", "PUT": "save", "POST": "save", "DELETE": "destroy"}


def endpoint_name(segments: Sequence[str]) -> str:
    """Return the short name of the endpoint that a path belongs to; unknown for others."""
    match tuple(segments):
        case ("status", "v1", *_):
            return "status"
        case ("v2.0", "environments") | ("puppet", "v3", "environments"):
            return "environments"
        case ("puppet-admin-api", "v1", "environment-cache"):
            return "environment-cache"
        case ("metrics",):
            return "metrics"
    return "unknown"


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """A request's target: its `segments`, decoded once, and its decoded `path`."""

    method: str
    raw_path: str
    raw_query: str
    path: str
    segments: tuple[str, ...]

    @classmethod
    def of(cls, method: str, raw_path: str, raw_query: str) -> RequestTarget:
        """Split a target; raise BadName for broken escapes, and for a segment with a separator or a control character."""
        segments = tuple(decode_path(part) for part in raw_path.split("/")[1:])
        if segments[:3] == ("puppet-ca", "v1", "ocsp") and len(segments) > 3:  # base64, where a slash is a letter
            return cls(method, raw_path, raw_query, "/" + "/".join(segments[:3]), (*segments[:3], "/".join(segments[3:])))
        if any("/" in part or any(ord(c) < 32 or ord(c) == 127 for c in part) for part in segments):
            raise BadName("The path is not valid")
        return cls(method, raw_path, raw_query, "/" + "/".join(segments), segments)

    @property
    def verb(self) -> str:
        """The verb in rules of 3.8's form."""
        return _VERBS.get(self.method, "save")


def decision_for(target: RequestTarget, client: Client, rules: Rules, *paths: str, verb: str = "") -> AccessDecision:
    """Return what the rules decide; `paths` go before the URL's own, `verb` replaces the method's."""
    url = _MODERN.get(target.path, target.path)
    request = AccessRequest(
        (*paths, target.path), verb or target.verb, None, client, url, target.method.lower(), parameters(target.raw_query)
    )
    return decide(rules.modern, request)


def denial_for(target: RequestTarget, client: Client, rules: Rules, *paths: str, verb: str = "") -> Response | None:
    """Return the denial, or None when the rules allow access; see `decision_for`."""
    decision = decision_for(target, client, rules, *paths, verb=verb)
    if decision.allowed:
        return None
    rule = decision.rule.name if decision.rule else "none"
    path = quoted_for_log(target.path)
    log.warning("Denied: %s(%s) access to %s [%s]; the rule that decided: %s", client.name, client.address, path, target.method, rule)
    return forbidden_path(target.path, target.method)


def require_method(target: RequestTarget, *methods: str) -> None:
    """Raise MethodNotAllowed unless the request's method is one of `methods`; HEAD is allowed where GET is."""
    if target.method not in methods and not (target.method == "HEAD" and "GET" in methods):
        raise MethodNotAllowed(f"Only {', '.join(methods)} is allowed here")


@dataclass(eq=False, repr=False)
class ServiceEndpoints:
    """
    The endpoints of the status service, of environments and of metrics. Statuses hold no host names or paths.

    Args:
        state: Returns running, starting or stopping, for the whole process.
        metrics: Returns the text for collectors of metrics; only a rule of the site's auth.conf lets them in. None: there is none.
        health: The conditions that the states of services follow from.
    """

    environments: EnvironmentLookup
    state: Callable[[], State]
    version: str
    metrics: Callable[[], str] | None = None
    health: Health = field(default_factory=Health)

    async def respond(self, target: RequestTarget, client: Client, rules: Rules) -> Response | None:
        """Return the response, or None when there is no such endpoint; raise MethodNotAllowed when there is one for other methods."""
        match target.segments:
            case ("status", "v1", "simple", *rest) if len(rest) <= 1:
                require_method(target, "GET")
                return denial_for(target, client, rules) or self._simple(rest)
            case ("status", "v1", "services", *rest) if len(rest) <= 1:
                require_method(target, "GET")
                return denial_for(target, client, rules) or self._services(rest, parameters(target.raw_query))
            case ("v2.0", "environments") | ("puppet", "v3", "environments"):
                require_method(target, "GET")
                denied = denial_for(target, client, rules)
                return denied or Response(200, plainjson.dumps(dict(await self.environments.listing())), "application/json")
            case ("puppet-admin-api", "v1", "environment-cache"):
                require_method(target, "DELETE")
                return denial_for(target, client, rules) or await self._expire(parameters(target.raw_query))
            case ("metrics",) if self.metrics is not None:
                require_method(target, "GET")
                return denial_for(target, client, rules) or Response(200, self.metrics().encode(), MIME)
        return None

    def _state(self, service: str) -> State:
        """Return the state of a service: the process's own until it runs, then what its conditions say."""
        process = self.state()
        return process if process != "running" else self.health.state(service)

    def _simple(self, names: Sequence[str]) -> Response:
        if names and names[0] not in SERVICES:
            return text_response(404, f"not found: {names[0]}", "text/plain; charset=utf-8")
        state = worst(map(self._state, names or SERVICES))
        return text_response(200 if state == "running" else 503, state, "text/plain; charset=utf-8")

    def _services(self, names: Sequence[str], options: Mapping[str, Any]) -> Response:
        level = options.get("level", "info")
        if level not in LEVELS:
            return _json(400, {"kind": "request-data-invalid", "msg": f"Invalid level, it must be one of {', '.join(LEVELS)}"})
        if names and names[0] not in SERVICES:
            return _json(404, {"kind": "service-not-found", "msg": "No status information found for this service"})
        states = {service: self._state(service) for service in names or SERVICES}
        shapes = {
            service: {
                "service_version": self.version,
                "service_status_version": 1,
                "detail_level": level,
                "state": state,
                "status": {},
                "active_alerts": [{"severity": severity, "message": alert} for alert, severity in self.health.alerts(service)],
            }
            for service, state in states.items()
        }
        status = 200 if worst(states.values()) == "running" else 503
        return _json(status, shapes[names[0]] if names else shapes)

    async def _expire(self, options: Mapping[str, Any]) -> Response:
        name = single("environment", options.get("environment"))
        if name is not None and not await self.environments.exists(valid_environment(name)):
            raise NotFound(f"Could not find environment '{name}'")
        await self.environments.expire(name)
        return Response(204)


def _json(status: int, data: object) -> Response:
    return Response(status, json.dumps(data).encode("ascii"), "application/json;charset=utf-8")
