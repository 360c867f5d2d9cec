"""How an agent waits for an order of its master: what it asks, and what it does when there is none to ask."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.process.daemon import WaitResult
from agent.process.orders import LONGEST_PAUSE, SPREAD, UNKNOWN, MasterConnection, wait_for_order
from agent.servers.sites import Site
from shared.errors import PeerNotTrusted
from shared.orders import RunOrder
from tests.support.fake_server import Reply
from tests.support.scripted_master import Scripted

ORDER = {"id": "0d1c", "noop": True, "tags": ["a"], "environment": "test"}
SERVER = 2  # the serial of the server's certificate, the first that its CA signs
GIVEN = Reply(200, json.dumps(ORDER).encode())


async def waited(tmp_path: Path, replies: list[Reply], last: str = "", **settings: Any) -> tuple[WaitResult, list[float], Scripted]:
    """Wait at a master with these answers, the last of them again and again; return the result and the pauses."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)

    site = Scripted(tmp_path, {"/puppet/v1/orders": lambda ask: replies.pop(0)})
    async with site.master.running():
        result = await asyncio.to_thread(wait_for_order, site.settings(**settings), last, sleep=sleep, chance=lambda: 1.0)
        return result, pauses, site


async def test_an_order_arrives_over_the_connection_that_waited_before(tmp_path: Path) -> None:
    result, pauses, site = await waited(tmp_path, [Reply(204), GIVEN], last="1a")
    assert (result, pauses) == (WaitResult(RunOrder("0d1c", noop=True, tags=("a",), environment="test")), [])
    assert WaitResult.decoded(result.encoded()) == result
    assert [(ask.target, ask.connection) for ask in site.master.asked] == [("/puppet/v1/orders?seconds=300&last=1a", 1)] * 2


async def test_agents_come_back_spread_to_a_master_that_they_have_lost(tmp_path: Path) -> None:
    lost = Reply(200, b"{}", cut=0, headers={"Content-Length": "100"})
    _, pauses, _ = await waited(tmp_path, [*[lost] * 5, Reply(204), Reply(500), GIVEN])
    assert pauses == [SPREAD, 2 * SPREAD, 4 * SPREAD, 8 * SPREAD, LONGEST_PAUSE, SPREAD]


@pytest.mark.parametrize("reply", [Reply(404), Reply(403), Reply(400), Reply(200, b'{"id": "1", "code": "x"}')])
async def test_a_master_that_takes_no_agents_that_wait_is_asked_again_late(tmp_path: Path, reply: Reply) -> None:
    assert (await waited(tmp_path, [reply]))[0] == WaitResult(pause=1.5 * UNKNOWN)


async def test_a_master_that_stops_says_when_to_come_back(tmp_path: Path) -> None:
    away = Reply(503, headers={"Retry-After": "42"})
    assert (await waited(tmp_path, [away, Reply(503, headers={"Retry-After": "9999"}), GIVEN]))[1] == [43.0, 301.0]


async def test_a_master_of_server_list_is_chosen_as_for_a_run(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/puppet/v1/orders": GIVEN, "/status/v1/simple": Reply(200, b"running")})
    async with site.master.running():
        settings = site.settings(server="nowhere.invalid", server_list=f"localhost:1,localhost:{site.master.port}")
        assert (await asyncio.to_thread(wait_for_order, settings, "")).order == RunOrder.of(ORDER)


async def test_nothing_is_sent_to_a_master_whose_certificate_is_revoked(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/puppet/v1/orders": GIVEN})
    site.ca.revoked.append(SERVER)
    async with site.master.running():
        site.settings().hostcrl.write_bytes(site.ca.crl_pem())
        with pytest.raises(PeerNotTrusted, match="revoked"):
            await asyncio.to_thread(MasterConnection(site.settings(), Site("localhost", site.master.port)).request, "GET", "/")
    assert site.master.asked == []
