"""The rows about web pages: a browser lets any page send requests to servers of its machine and network, without asking them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from httpd.connections.plain import PlainListener
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tasks import HTTP_TASKS
from master.endpoints.metrics import MetricsListener
from shared.process.supervision import Supervisor
from tests.store.endpoints.conftest import FakeStore
from tests.support.raw_master import CaFolder, RawClient, running
from tests.support.store_openapi import StoreEndpoint, endpoints

EVIL = "http://evil.example"
NAMES = ("store.example.com", "DNS:puppetdb")
ROUTES = [*endpoints(), StoreEndpoint("/pdb/cmd/v1/batch", "POST", "", accepts=("application/octet-stream",))]
FORMS = ("", "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
DELETE = b'{"command": "delete", "version": 1, "payload": {"certname": "web1"}}'


@asynccontextmanager
async def at_an_address(store: FakeStore) -> AsyncIterator[int]:
    """A store's port without TLS."""
    listener = PlainListener(Dispatcher(store.application(), None, ServerOptions()).handle, ServerLimits(), 8, NAMES)
    port = int((await listener.start(("127.0.0.1", 0))).rpartition(" ")[2])
    try:
        yield port
    finally:
        await listener.stop(0)


async def status(port: int, method: str, target: str, body: bytes = b"", **headers: str) -> int:
    client = RawClient(*await asyncio.open_connection("127.0.0.1", port))
    try:
        return (await client.ask(method, target, body, **headers)).status
    finally:
        await client.close()


def effects(store: FakeStore) -> int:
    return len(store.queries.questions) + len(store.intake.submissions) + len(store.administration.done)


@pytest.mark.slow
async def test_PDB_12_no_web_page_uses_any_route_of_a_port_without_tls(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore()
    async with at_an_address(store) as port:
        for route in ROUTES:
            for method in {route.method, "POST"}:
                good = {"Host": f"127.0.0.1:{port}", "Content_Type": "application/json"}
                pages = (
                    ({"Origin": EVIL}, 403),
                    ({"Origin": "null"}, 403),
                    ({"Sec_Fetch_Site": "cross-site"}, 403),
                    ({"Host": f"evil.example:{port}"}, 421),
                    ({"Host": "localhost.evil.example"}, 421),
                )
                for page, expected in pages:
                    assert await status(port, method, route.path, DELETE, **(good | page)) == expected, (method, route.path, page)
    assert effects(store) == 0
    assert "Refused a request of 127.0.0.1: This server is not known as 'evil.example' without TLS" in caplog.text


@pytest.mark.slow
async def test_PDB_12_what_a_form_can_send_changes_nothing_on_a_port_without_tls() -> None:
    store = FakeStore()
    async with at_an_address(store) as port:
        for route in ROUTES:
            if not route.accepts:
                continue
            for form in FORMS:
                taken = form.partition(";")[0] in route.accepts  # a form with a file: browsers name their page with it
                answer = await status(port, "POST", route.path, DELETE, Host="localhost", Content_Type=form)
                assert (answer == 415) != taken, (route.path, form)
    assert effects(store) == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "10.0.0.7", "localhost", "store", "STORE.example.com", "puppetdb", socket.gethostname()]
)
async def test_a_port_without_tls_is_used_by_addresses_and_configured_names(host: str) -> None:
    store = FakeStore()
    async with at_an_address(store) as port:
        assert await status(port, "GET", "/pdb/query/v4/nodes", Host=f"{host}:{port}") == 200
        assert await status(port, "GET", "/metrics", Host=host) == 200
        json = "application/json; charset=utf-8"
        assert await status(port, "POST", "/pdb/admin/v1/cmd", DELETE, Host=host, Content_Type=json) == 200
    assert store.administration.done == ["web1"]


async def test_PDB_12_no_web_page_reads_the_metrics_of_a_master(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    listener = MetricsListener(lambda: "doors_total 1\n", ServerLimits(), NAMES)
    port = int((await listener.start("127.0.0.1", 0)).rpartition(" ")[2])
    try:
        assert await status(port, "GET", "/metrics", Host="evil.example") == 421
        assert await status(port, "GET", "/metrics", Host="store", Origin=EVIL) == 403
        assert await status(port, "GET", "/metrics", Host=f"store.example.com:{port}") == 200
    finally:
        await listener.stop()


async def test_PDB_12_a_browser_with_a_certificate_is_no_way_in_for_a_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    ca = CaFolder(tmp_path_factory.mktemp("ca"))
    ca.issue("puppet")
    store = FakeStore()
    async with running(HttpServer(store.application(), ServerOptions(ca.trust("puppet")), Supervisor(HTTP_TASKS)), ca) as server:
        browser = await server.client("master1")
        assert (await browser.ask("POST", "/pdb/admin/v1/cmd", DELETE, Origin=EVIL)).status == 403
    assert effects(store) == 0
