"""The metrics of a master's server, and a plain HTTP listener that a collector on this machine reads all metrics from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from httpd.admission import Admission
from httpd.connection import Connection, ConnectionServer, HttpRequest
from httpd.limits import ServerLimits
from httpd.responses import Response, send, text_response
from httpd.server import HttpServer
from shared.errors import ConfigError

from ..observability.metrics import MIME, Metrics

MAX_CONNECTIONS = 16  # connections at the same time; further ones are cut


def describe_server(metrics: Metrics, server: HttpServer, admission: Admission) -> None:
    """Add a server's connections, handshakes and waiting requests to the metrics."""
    metrics.read("puppet_connections", "gauge", "Open connections.", lambda: [((), server.open_connections)])
    metrics.read(
        "puppet_handshakes_refused_total",
        "counter",
        "TLS handshakes that failed.",
        lambda: [((reason,), count) for reason, count in sorted(server.refused_handshakes().items())],
        "reason",
    )
    metrics.read("puppet_requests_waiting", "gauge", "Requests that wait for others to end.", lambda: [((), admission.waiting)])


class _FewConnections(ConnectionServer):
    """A small number of connections at a time: whoever is on this machine may open them."""

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > MAX_CONNECTIONS and isinstance(handler, Connection):
            handler.abort()


class MetricsListener:
    """A listener that answers `GET /metrics`, without TLS and to everybody who reaches it."""

    def __init__(self, read: Callable[[], str], limits: ServerLimits) -> None:
        self.read = read
        self._connections = _FewConnections(self._answer, limits)
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; raise ConfigError when that cannot be done."""
        try:
            self._server = await asyncio.get_running_loop().create_server(self._connections, host, port)
        except OSError as err:
            raise ConfigError(
                f"Could not listen for collectors of metrics on {host} port {port}: {err.strerror or err}",
                hint="The settings are metrics_bindaddress and metrics_port; with the port 0 there is no such listener.",
            ) from err

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._connections.shutdown(1.0)

    async def _answer(self, request: HttpRequest) -> web.StreamResponse:
        response, _ = await send(request, self._answer_to(request.method, request.path))
        return response

    def _answer_to(self, method: str, path: str) -> Response:
        if path != "/metrics":
            return text_response(404, "Not Found")
        if method not in ("GET", "HEAD"):
            return text_response(405, "Method Not Allowed")
        return Response(200, self.read().encode(), MIME)
