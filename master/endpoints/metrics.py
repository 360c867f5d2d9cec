"""The metrics of a master's server, and a plain HTTP listener that a collector on this machine reads all metrics from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aiohttp import web_response

from httpd.connections.connection import HttpRequest
from httpd.connections.plain import PlainListener
from httpd.dispatch.admission import Admission
from httpd.limits import ServerLimits
from httpd.messages.responses import Response, send, text_response
from httpd.metrics import MIME
from httpd.server import HttpServer

from ..observability.metrics import Metrics

MAX_CONNECTIONS = 16  # connections at the same time; further ones are cut


def describe_server(metrics: Metrics, server: HttpServer, admission: Admission) -> None:
    """Add a server's connections, handshakes and requests under way to the metrics."""
    metrics.read("puppet_connections", "gauge", "Open connections.", lambda: [((), server.open_connections)])
    metrics.read(
        "puppet_handshakes_refused_total",
        "counter",
        "TLS handshakes that failed.",
        lambda: [((reason,), count) for reason, count in sorted(server.refused_handshakes().items())],
        "reason",
    )
    metrics.read("puppet_requests_active", "gauge", "Requests that are worked on.", lambda: [((), admission.active)])
    metrics.read("puppet_requests_waiting", "gauge", "Pending requests.", lambda: [((), admission.waiting)])


class MetricsListener:
    """A listener that answers `GET /metrics`, without TLS, to all clients that address it by one of the host's `names`."""

    def __init__(self, read: Callable[[], str], limits: ServerLimits, names: Iterable[str] = ()) -> None:
        self.read = read
        self._listener = PlainListener(self._answer, limits, MAX_CONNECTIONS, names)

    async def start(self, host: str, port: int) -> str:
        """Listen and return the place as text, with the port (0: any free one); raise ConfigError when that cannot be done."""
        hint = "The settings are metrics_bindaddress and metrics_port; with the port 0 there is no listener for collectors of metrics."
        return await self._listener.start((host, port), hint=hint)

    async def stop(self) -> None:
        await self._listener.stop(0)

    async def _answer(self, request: HttpRequest) -> web_response.StreamResponse:
        response, _ = await send(request, self._answer_to(request.method, request.path))
        return response

    def _answer_to(self, method: str, path: str) -> Response:
        if path != "/metrics":
            return text_response(404, "Not Found")
        if method not in ("GET", "HEAD"):
            return text_response(405, "Method Not Allowed")
        return Response(200, self.read().encode(), MIME)
