"""The HTTP kernel serves any application."""

from __future__ import annotations

import pytest

from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.messages import bodies
from httpd.messages.responses import Response, text_response
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tasks import HTTP_TASKS
from shared.errors import NotFound
from shared.process.supervision import Supervisor
from tests.support.raw_master import CaFolder, running


class Echo(HttpApplication):
    """Tells clients their names, and gives back what they send."""

    async def handle(self, request: HttpRequest) -> Response:
        match request.method, request.sent_path:
            case "GET", "/name":
                return text_response(200, request.client.name)
            case "PUT", "/echo":
                return Response(200, await bodies.read_body(request, 100), "text/plain")
            case "GET", "/broken":
                raise ZeroDivisionError
        raise NotFound(f"There is no {request.sent_path}")


async def test_another_application_is_served(ca: CaFolder, caplog: pytest.LogCaptureFixture) -> None:
    answers: list[tuple[str, int]] = []
    options = ServerOptions(ca.trust("puppet"), on_answer=lambda endpoint, method, status, seconds: answers.append((method, status)))
    async with running(HttpServer(Echo(), options, Supervisor(HTTP_TASKS)), ca) as server:
        client = await server.client("agent1")
        assert (await client.ask("GET", "/name")).text == "agent1"
        assert (await client.ask("PUT", "/echo", b"hello")).body == b"hello"
        missing = await client.ask("GET", "/thing")
        assert (missing.status, missing.text) == (404, "There is no /thing")
        assert (await client.ask("PUT", "/echo", b"x" * 101)).status == 413
        client = await server.client("agent1")
        broken = await client.ask("GET", "/broken")
        assert broken.status == 500 and broken.text.startswith("Internal Server Error (incident ")
        assert "ZeroDivisionError" in caplog.text
    assert answers == [("GET", 200), ("PUT", 200), ("GET", 404), ("PUT", 413), ("GET", 500)]
