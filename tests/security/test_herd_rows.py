"""Many agents at once: the rows of the fault table about load, with more honest peers than a limit has room for."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from master.testing import ThrowAwayCa
from shared.testing import Shelf
from tests.master_site import Shelves, Start

HERD = 150


async def test_R_18_handshakes_beyond_the_limit_wait_and_none_is_cut(start: Start, ca: ThrowAwayCa) -> None:
    async with start({"max_handshakes": 10}) as master:
        context = ca.context("agent1")
        clients = await asyncio.gather(*(master.client("agent1", context=context) for _ in range(HERD)))
        statuses = [(await client.ask("GET", "/status/v1/simple")).status for client in clients]
        assert statuses == [200] * HERD
        assert master.server.listener is not None
        assert master.server.listener.refused.total() == 0


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


async def test_R_18_while_catalogs_wait_to_be_compiled_other_requests_get_on(start: Start, shelves: Shelves) -> None:
    gate = asyncio.Event()

    class Compiling(Shelf[Any]):
        async def find(self, request: Any) -> Any:
            await gate.wait()
            return await super().find(request)

    shelves["catalog"] = Compiling(*shelves["catalog"].instances.values())
    async with start({"max_active_requests": 1, "max_queued_requests": 3}) as master:
        clients = [await master.client(name) for name in ("agent1", "agent2")]
        catalogs = [
            asyncio.create_task(client.ask("GET", f"/puppet/v3/catalog/{name}?environment=production"))
            for client, name in zip(clients, ("agent1", "agent2"), strict=True)
        ]
        await asyncio.sleep(0.05)
        other = await master.client("agent1")
        assert (await other.ask("GET", "/puppet/v3/node/agent1?environment=production")).status == 200
        assert (await other.ask("GET", "/production/node/agent1")).status == 200
        gate.set()
        assert [answer.status for answer in await asyncio.gather(*catalogs)] == [200, 200]
