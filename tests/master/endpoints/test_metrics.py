"""Who may read the metrics, and where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from httpd.limits import ServerLimits
from master.endpoints.metrics import MAX_CONNECTIONS, MetricsListener
from shared.errors import ConfigError
from tests.support.raw_master import RawClient, RunningMaster

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]


@asynccontextmanager
async def listening(**limits: float) -> AsyncIterator[int]:
    listener = MetricsListener(lambda: "doors_total 1\n", ServerLimits(**limits), ["puppet"])
    place = await listener.start("127.0.0.1", 0)
    try:
        yield int(place.rpartition(" ")[2])
    finally:
        await listener.stop()


async def plain(port: int) -> RawClient:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    return RawClient(reader, writer)


async def test_the_listener_of_its_own_answers_without_tls() -> None:
    async with listening() as port:
        client = await plain(port)
        answer = await client.ask("GET", "/metrics")
        assert (answer.status, answer.body) == (200, b"doors_total 1\n")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert (await client.ask("GET", "/puppet/v3/environments")).status == 404
        assert (await client.ask("DELETE", "/metrics")).status == 405
        await client.close()


async def test_who_says_nothing_is_cut() -> None:
    async with listening(header_timeout=0.1) as port:
        client = await plain(port)
        assert await client.ended()
        await client.close()


async def test_who_comes_when_all_connections_are_taken_is_cut() -> None:
    async with listening(header_timeout=3600) as port:
        clients = [await plain(port) for _ in range(MAX_CONNECTIONS)]
        late = await plain(port)
        assert await late.ended()
        assert (await clients[0].ask("GET", "/metrics")).status == 200
        for client in (*clients, late):
            await client.close()


async def test_an_address_that_cannot_be_had_is_named() -> None:
    async with listening() as port:
        with pytest.raises(ConfigError, match=f"127.0.0.1 port {port}"):
            await MetricsListener(str, ServerLimits()).start("127.0.0.1", port)


async def test_on_the_port_of_agents_only_a_rule_lets_anyone_in(serve: Serve, tmp_path: Path) -> None:
    async with serve() as master:
        agent = await master.client("agent1")
        assert (await agent.ask("GET", "/metrics")).status == 403
    rules = tmp_path / "auth.conf"
    rules.write_text("path /metrics\nmethod find\nallow agent1\n")
    async with serve(auth_conf=rules) as master:
        agent, other = await master.client("agent1"), await master.client("agent2")
        assert (await agent.ask("GET", "/production/node/agent1?")).status == 200
        assert (await other.ask("GET", "/metrics")).status == 403  # so that the server has taken its connection over, too
        text = (await agent.ask("GET", "/metrics")).body.decode()
        assert 'puppet_requests_total{indirection="node",method="GET",status="200"} 1' in text
        assert "puppet_connections 2" in text
