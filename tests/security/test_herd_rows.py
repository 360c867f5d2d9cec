"""Many agents at once: the rows of the fault table about load, with more honest peers than a limit has room for."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from shared.settings import Conf, MasterSettings, load
from shared.testing import Shelf
from tests.support.master_site import Shelves, Start
from tests.support.raw_master import RawAnswer, RawClient, ThrowAwayCa
from tests.support.waiting import until

HERD = 150


@pytest.mark.slow
async def test_R_18_handshakes_beyond_the_limit_wait_and_none_is_cut(start: Start, ca: ThrowAwayCa) -> None:
    async with start({"max_handshakes": 10}) as master:
        context = ca.context("agent1")
        clients = await asyncio.gather(*(master.client("agent1", context=context) for _ in range(HERD)))
        statuses = [(await client.ask("GET", "/status/v1/simple")).status for client in clients]
        assert statuses == [200] * HERD
        assert master.server.listener is not None
        assert master.server.listener.refused.total() == 0


@pytest.mark.slow
async def test_R_18_handshakes_wait_while_the_loop_is_held_up_and_none_is_cut(start: Start, ca: ThrowAwayCa) -> None:
    """Its own slowness is nothing that a master lays to its peers."""
    async with start({"max_handshakes": 10}) as master:
        context = ca.context("agent1")
        herd = asyncio.gather(*(master.client("agent1", context=context, timeout=30) for _ in range(HERD // 3)))
        for _ in range(8):
            await asyncio.sleep(0)
            time.sleep(0.4)  # noqa: ASYNC251  # what is shown: nothing else runs
        await herd
        assert master.server.listener is not None
        assert master.server.listener.refused.total() == 0


@pytest.mark.parametrize("slow", ["catalog", "report"])
async def test_R_18_while_catalogs_or_reports_wait_other_requests_get_on(start: Start, shelves: Shelves, slow: str) -> None:
    gate = asyncio.Event()

    class Slow(Shelf[Any]):
        async def find(self, request: Any) -> Any:
            await gate.wait()
            return await super().find(request)

        async def save(self, request: Any) -> Any:
            await gate.wait()
            return await super().save(request)

    shelves[slow] = Slow(*shelves[slow].instances.values(), result=["store"])

    async def asked(client: RawClient, name: str) -> RawAnswer:
        target = f"/puppet/v3/{slow}/{name}?environment=production"
        if slow == "catalog":
            return await client.ask("GET", target)
        return await client.ask("PUT", target, json.dumps({"host": name}).encode(), Content_Type="application/json")

    async with start({"max_active_requests": 1, "max_queued_requests": 3}) as master:
        names = ("agent1", "agent2")
        waiting = [asyncio.create_task(asked(await master.client(name), name)) for name in names]
        admission = master.server.application.admission
        await until(lambda: (admission.active, admission.waiting) == (1, 1))
        other = await master.client("agent1")
        assert (await other.ask("GET", "/puppet/v3/node/agent1?environment=production")).status == 200
        assert (await other.ask("GET", "/production/node/agent1")).status == 200
        gate.set()
        assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]


def test_R_18_a_herd_of_reports_fits_into_the_queue_of_those_that_are_written() -> None:
    settings = load(MasterSettings, section="master", flags={"certname": "m.test"}, conf=Conf())
    assert settings.report_queue > settings.max_active_requests
