"""Listeners without TLS, at an address and at a Unix socket."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.connections.plain import LONGEST_SOCKET_PATH, PlainListener
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.messages.responses import Response, text_response
from httpd.options import ServerOptions
from shared.errors import ConfigError
from tests.support.raw_master import RawClient


class Telling(HttpApplication):
    """Tells clients who they are; `/slow` waits until the test says so."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Event()

    async def handle(self, request: HttpRequest) -> Response:
        if request.sent_path == "/slow":
            self.asked.set()
            await self.may_answer.wait()
        return text_response(200, f"{request.client.authenticated} {request.client.name or '-'} {request.secure}")


@asynccontextmanager
async def listening(place: Path | tuple[str, int], application: HttpApplication, most: int = 4) -> AsyncIterator[tuple[PlainListener, str]]:
    listener = PlainListener(Dispatcher(application, None, ServerOptions()).handle, ServerLimits(), most)
    shown = await listener.start(place)
    try:
        yield listener, shown
    finally:
        await listener.stop(0)


async def at_socket(path: Path) -> RawClient:
    return RawClient(*await asyncio.open_unix_connection(str(path)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


async def test_a_client_at_an_address_is_a_stranger_whatever_its_headers_claim() -> None:
    async with listening(("127.0.0.1", 0), Telling()) as (_, shown):
        client = RawClient(*await asyncio.open_connection("127.0.0.1", int(shown.rpartition(" ")[2])))
        answer = await client.ask("GET", "/", Host="127.0.0.1", X_Client_Verify="SUCCESS", X_Client_DN="CN=admin")
        assert answer.text == "False 127.0.0.1 False"
        await client.close()


async def test_a_unix_socket_is_for_its_own_user_only_and_goes_with_its_listener(path: Path) -> None:
    async with listening(path, Telling()) as (_, shown):
        assert shown == str(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        client = await at_socket(path)
        assert (await client.ask("GET", "/")).text == "False - False"
        await client.close()
    assert not path.exists()


async def test_an_abandoned_socket_is_replaced_but_never_one_in_use_nor_a_file(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    async with listening(path, Telling()):
        client = await at_socket(path)
        assert (await client.ask("GET", "/")).status == 200
        with pytest.raises(ConfigError, match="in use"):
            async with listening(path, Telling()):
                pass
        assert path.exists()
        assert (await client.ask("GET", "/")).status == 200
        await client.close()
    path.write_text("somebody's")
    with pytest.raises(ConfigError, match="no socket"):
        async with listening(path, Telling()):
            pass
    assert path.read_text() == "somebody's"


async def test_a_path_that_no_socket_can_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"at most {LONGEST_SOCKET_PATH} bytes"):
        async with listening(tmp_path / ("x" * LONGEST_SOCKET_PATH), Telling()):
            pass


async def test_a_stop_waits_for_requests_under_way_and_cuts_those_that_take_too_long(path: Path) -> None:
    for seconds, answer_in_time in ((5.0, True), (0.0, False)):
        application = Telling()
        async with listening(path, application) as (listener, _):
            client = await at_socket(path)
            await client.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await application.asked.wait()
            async with asyncio.TaskGroup() as group:
                group.create_task(listener.stop(seconds))
                await asyncio.sleep(0)
                if answer_in_time:
                    application.may_answer.set()
                    assert (await client.answer()).status == 200
                else:
                    with pytest.raises((EOFError, ConnectionError)):
                        await client.answer()
            await client.close()


async def test_connections_beyond_the_bound_are_cut(path: Path) -> None:
    async with listening(path, Telling(), most=1):
        first = await at_socket(path)
        assert (await first.ask("GET", "/")).status == 200
        second = await at_socket(path)
        assert await second.ended()
        assert (await first.ask("GET", "/")).status == 200
        for client in (first, second):
            await client.close()
