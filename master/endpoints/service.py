"""The service's endpoints: status, environments, metrics, the administrator's cache call. Source: protocol reference 3.14, 3.16."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from httpd.messages.responses import Response, text_response
from httpd.metrics import MIME
from shared.data import plainjson
from shared.errors import NotFound
from shared.indirector.paths import single
from shared.names import valid_environment

from ..authorization.defaults import EVERYBODY, rule
from ..authorization.rules import Below, Exactly
from ..observability.health import SERVICES, State, worst
from .routes import EndpointCall, EndpointRoute, MasterAppOptions

LEVELS = ("critical", "info", "debug")
_JSON = "application/json"


@dataclass(eq=False, repr=False)
class ServiceEndpoints:
    """
    The endpoints of the status service, of environments and of metrics. Statuses hold no host names or paths.

    Args:
        state: Returns running, starting or stopping, for the whole process.
    """

    master: MasterAppOptions
    state: Callable[[], State]
    version: str

    async def environments(self, call: EndpointCall) -> Response:
        return Response(200, plainjson.dumps(dict(await self.master.environments.listing())), _JSON)

    async def metrics(self, call: EndpointCall) -> Response:
        return Response(200, self.master.metrics().encode(), MIME)

    def _state(self, service: str) -> State:
        """Return the state of a service: the process's own state until it runs, then that of its conditions."""
        process = self.state()
        return process if process != "running" else self.master.health.state(service)

    async def simple(self, call: EndpointCall) -> Response:
        names = call.target.segments[3:]
        if names and names[0] not in SERVICES:
            return text_response(404, f"not found: {names[0]}", "text/plain; charset=utf-8")
        state = worst(map(self._state, names or SERVICES))
        return text_response(200 if state == "running" else 503, state, "text/plain; charset=utf-8")

    async def services(self, call: EndpointCall) -> Response:
        names, level = call.target.segments[3:], call.options.get("level", "info")
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
                "status": dict(self.master.health.details()) if service == "status-service" else {},
                "active_alerts": [{"severity": severity, "message": alert} for alert, severity in self.master.health.alerts(service)],
            }
            for service, state in states.items()
        }
        status = 200 if worst(states.values()) == "running" else 503
        return _json(status, shapes[names[0]] if names else shapes)

    async def expire(self, call: EndpointCall) -> Response:
        name = single("environment", call.options.get("environment"))
        if name is not None and not await self.master.environments.exists(valid_environment(name)):
            raise NotFound(f"Could not find environment '{name}'")
        await self.master.environments.expire(name)
        return Response(204)


def _json(status: int, data: object) -> Response:
    return Response(status, json.dumps(data).encode("ascii"), "application/json;charset=utf-8")


_route = partial(EndpointRoute, part=ServiceEndpoints, lane=None)
_environments = partial(_route, respond=ServiceEndpoints.environments)
_simple = partial(_route, respond=ServiceEndpoints.simple, name="status")
_services = partial(_route, respond=ServiceEndpoints.services, name="status")
_ENVIRONMENTS, _OLDER = (rule(path, Exactly(path), "find", EVERYBODY) for path in ("/puppet/v3/environments", "/v2.0/environments"))
_SIMPLE = rule("/status/v1/simple", Below("/status/v1/simple"), "find", EVERYBODY, authenticated=False)
_SERVICES = rule("/status/v1/services", Below("/status/v1/services"), "find", EVERYBODY, authenticated=False)

ROUTES = (
    _environments("/puppet/v3/environments", {"GET": ""}, _JSON, "The environments and their settings.", rule=_ENVIRONMENTS),
    _environments("/v2.0/environments", {"GET": ""}, _JSON, "The same, for Puppet 3.5 to 3.8.", rule=_OLDER),
    _simple("/status/v1/simple", {"GET": ""}, "text/plain", "Whether the master runs.", rule=_SIMPLE),
    _simple("/status/v1/simple/{service}", {"GET": ""}, "text/plain", "Whether one of its services runs.", rule=_SIMPLE),
    _services("/status/v1/services", {"GET": ""}, _JSON, "The services.", ("level",), rule=_SERVICES),
    _services("/status/v1/services/{service}", {"GET": ""}, _JSON, "One of them.", ("level",), rule=_SERVICES),
    _route("/status/v1/{path*}", {}, name="status", is_guarded=False),
    _route("/metrics", {"GET": ""}, "text/plain", "What the master counts, for Prometheus.", respond=ServiceEndpoints.metrics),
    _route(
        "/puppet-admin-api/v1/environment-cache", {"DELETE": ""}, "", "Read code again.", ("environment",), respond=ServiceEndpoints.expire
    ),
)
