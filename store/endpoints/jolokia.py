"""The interface of metrics that PuppetDB has from Jolokia, as far as clients read it: /metrics/v2, and /metrics for Prometheus."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Sequence
from typing import Any

from httpd.connections.connection import HttpRequest
from httpd.messages.responses import Response
from httpd.metrics import MIME
from shared.errors import MethodNotAllowed

from .answers import compact_response
from .metrics import StoreMetrics

_NOT_FOUND = "javax.management.InstanceNotFoundException"
_NO_ATTRIBUTE = "javax.management.AttributeNotFoundException"


class MetricsEndpoint:
    """
    Answers requests for metrics; nothing can be changed.

    Args:
        now: Returns seconds since the epoch.
    """

    def __init__(self, metrics: StoreMetrics, now: Callable[[], float] = time.time) -> None:
        self._metrics = metrics
        self._now = now

    async def respond(self, request: HttpRequest, segments: Sequence[str]) -> Response | None:
        """Return the response to a request below /metrics; None when there is no such endpoint."""
        if segments and segments[0] != "v2":
            return None
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("Metrics can only be read")
        match list(segments):
            case []:
                return Response(200, (await self._metrics.exposition()).encode(), MIME)
            case ["v2"] | ["v2", ""] | ["v2", "version"]:
                info = {"agent": "1.7.1", "protocol": "7.2", "config": {}, "info": {}}
                return compact_response(self._success({"type": "version"}, info))
            case ["v2", "list", *path]:
                return compact_response(self._success({"type": "list"}, _descend(_listing(await self._metrics.beans()), path)))
            case ["v2", "search", pattern]:
                names = sorted(name for name in await self._metrics.beans() if fnmatch.fnmatchcase(name, pattern))
                return compact_response(self._success({"mbean": pattern, "type": "search"}, names))
            case ["v2", "read", *name]:
                return compact_response(await self._read("/".join(name)))
        return None

    async def _read(self, name: str) -> dict[str, Any]:
        """Return the answer to a read of a metric, or of one of its attributes after a slash."""
        beans = await self._metrics.beans()
        request = {"mbean": name, "type": "read"}
        if name in beans:
            return self._success(request, beans[name])
        bean, _, attribute = name.rpartition("/")
        if bean not in beans:
            return {"request": request, "error_type": _NOT_FOUND, "error": f"{_NOT_FOUND} : {name}", "status": 404}
        request = {"mbean": bean, "attribute": attribute, "type": "read"}
        if attribute not in beans[bean]:
            text = f"{_NO_ATTRIBUTE} : No such attribute: {attribute}"
            return {"request": request, "error_type": _NO_ATTRIBUTE, "error": text, "status": 404}
        return self._success(request, beans[bean][attribute])

    def _success(self, request: dict[str, Any], value: Any) -> dict[str, Any]:
        return {"request": request, "value": value, "timestamp": int(self._now()), "status": 200}


def _listing(beans: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the description of the metrics: by domain and name, with the names of their attributes."""
    domains: dict[str, Any] = {}
    for name, attributes in sorted(beans.items()):
        domain, _, properties = name.partition(":")
        described = {key: {"rw": False, "type": _type_name(value), "desc": key} for key, value in attributes.items()}
        domains.setdefault(domain, {})[properties] = {"attr": described, "desc": "A metric of the store"}
    return domains


def _type_name(value: Any) -> str:
    return "java.lang.String" if isinstance(value, str) else "double" if isinstance(value, float) else "long"


def _descend(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name, {}) if isinstance(value, dict) else {}
    return value
