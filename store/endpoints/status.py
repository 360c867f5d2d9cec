"""The endpoints for version and status: /pdb/meta/v1 and /status/v1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from httpd.application import ServerState
from httpd.connections.connection import HttpRequest
from httpd.messages.responses import Response
from shared.errors import BadRequest

from ..timestamps import format_timestamp
from .answers import dashboard_redirect, json_response, text_response
from .negotiation import require_get, require_json_accepted, url_parameters

PUPPETDB_VERSION = "7.12.1"
"""The version of PuppetDB whose interface this is; clients choose by it what they ask."""

OWN_SERVICE = "puppetdb-status"
_STATUS_VERSION = "1.1.1"
_DETAILED = ("info", "debug")


def meta_response(request: HttpRequest, segments: Sequence[str], now: int) -> Response:
    """Return the response to a request below /pdb/meta; `now` is the time in microseconds."""
    match segments:
        case ["v1", "version"]:
            answer = json_response({"version": PUPPETDB_VERSION})
        case ["v1", "version", "latest"]:
            answer = text_response(404, "Could not find version")
        case ["v1", "server-time"]:
            answer = json_response({"server_time": format_timestamp(now)})
        case _:
            return dashboard_redirect()
    require_get(request)
    require_json_accepted(request)
    if parameters := url_parameters(request):
        raise BadRequest(f"Unsupported query parameter '{next(iter(parameters))}'")
    return answer


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """The state of a store: its server's state, the number of pending commands, and whether the database can be reached."""

    server: ServerState
    queue_depth: int = 0
    database_is_up: bool = False

    @property
    def state(self) -> str:
        """The state as clients know it."""
        return "error" if self.server == "running" and not self.database_is_up else self.server


def status_response(request: HttpRequest, segments: Sequence[str], condition: StoreCondition) -> Response | None:
    """Return the response to a request below /status; None when there is no such endpoint."""
    status = 200 if condition.state == "running" else 503
    match segments:
        case ["v1", "simple"]:
            require_get(request)
            return text_response(status, condition.state)
        case ["v1", "services"]:
            require_get(request)
            return json_response(_services(condition, _level(request)), status)
        case ["v1", "services", name]:
            require_get(request)
            services = _services(condition, _level(request))
            if name not in services:
                return text_response(404, f"not found: {name}")
            return json_response({**services[name], "service_name": name}, status if name == OWN_SERVICE else 200)
    return None


def _services(condition: StoreCondition, level: str) -> dict[str, dict[str, Any]]:
    is_up = condition.database_is_up
    status = {
        "maintenance_mode?": condition.server == "starting",
        "queue_depth": condition.queue_depth,
        "read_db_up?": is_up,
        "write_db_up?": is_up,
        "write_dbs_up?": is_up,
        "write_db": {"default": {"up?": is_up}},
    }
    return {
        OWN_SERVICE: _service(PUPPETDB_VERSION, level, condition.state, status),
        "status-service": _service(_STATUS_VERSION, level, "running", {}),
    }


def _level(request: HttpRequest) -> str:
    level = url_parameters(request).get("level", "info")
    if level not in ("critical", *_DETAILED):
        raise BadRequest(f"Invalid level: {level!r}; it is critical, info or debug")
    return level


def _service(version: str, level: str, state: str, status: dict[str, Any]) -> dict[str, Any]:
    return {
        "service_version": version,
        "service_status_version": 1,
        "detail_level": level,
        "state": state,
        "status": status if level in _DETAILED else {},
        "active_alerts": [],
    }
