"""How an agent waits for an order of its master: what it asks, and what it does when there is none to ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.process.daemon import WaitResult
from agent.process.orders import LONGEST_PAUSE, SPREAD, UNKNOWN, wait_for_order
from shared.orders import RunOrder
from tests.support.fake_server import Reply
from tests.support.scripted_master import Scripted

ORDER = {"id": "0d1c", "noop": True, "tags": ["a"], "environment": "test"}
GIVEN = Reply(200, json.dumps(ORDER).encode())


async def waited(tmp_path: Path, replies: list[Reply], last: str = "") -> tuple[WaitResult, list[float], Scripted]:
    """Wait at a master with these answers, the last of them again and again; return the result and the pauses."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    site = Scripted(tmp_path, {"/puppet/v1/orders": lambda ask: replies.pop(0)})
    async with site.master.running():
        return await wait_for_order(site.settings(), last, sleep=sleep, chance=lambda: 1.0), pauses, site


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
