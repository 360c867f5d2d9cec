"""A server of the smallest application over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.messages.responses import Response, text_response
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tasks import HTTP_TASKS
from shared.errors import MethodNotAllowed
from shared.process.supervision import Supervisor
from tests.support.raw_master import CaFolder, RunningMaster, running


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A handshake ends in a transport of the loop, of which there are two kinds."""
    both = item.path.name == "test_handshakes.py"
    return {"asyncio": asyncio.new_event_loop} | ({"uvloop": uvloop.new_event_loop} if both else {})


class StatusApplication(HttpApplication):
    """Answers `running` to every GET."""

    async def handle(self, request: HttpRequest) -> Response:
        if request.method != "GET":
            raise MethodNotAllowed("Only GET")
        return text_response(200, "running")


@pytest.fixture
def serve(ca: CaFolder) -> Callable[..., AbstractAsyncContextManager[RunningMaster]]:
    """Starts a server of the application, with options as in ServerOptions."""

    def start(**options: Any) -> AbstractAsyncContextManager[RunningMaster]:
        chosen = ServerOptions(ca.trust("puppet"), handshake_hint="Its own log says more", **options)
        return running(HttpServer(StatusApplication(), chosen, Supervisor(HTTP_TASKS)), ca)

    return start


@pytest.fixture
def ca(tmp_path: Path) -> CaFolder:
    made = CaFolder(tmp_path / "ca")
    made.issue("puppet")
    return made
