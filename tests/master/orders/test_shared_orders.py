"""Orders of masters that share a database: an order reaches an agent at whichever master it waits, and its report comes to any of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from master.orders.run import RunQuestion
from master.orders.shared import FOUND, LATE, SharedOrders, SharedRuns
from master.orders.waiting import START, WaitingAgents
from shared.models.report import Report
from shared.orders import RunLines, RunOrder
from shared.state.masters import SharedState
from tests.support.waiting import turns, until

pytestmark = pytest.mark.slow
ID = "0d1c2b3a"


class Master:
    """One of the masters; the clocks of all stand still."""

    def __init__(self, state: SharedState) -> None:
        self.now = 0.0
        self.agents = WaitingAgents(lambda: 100, clock=lambda: self.now)
        self.now = START
        self.shared = SharedOrders(state.database, self.agents, clock=lambda: self.now)
        state.notices.on("orders", self.shared.hear)

    async def wait(self, node: str, last: str = "") -> asyncio.Task[RunOrder | None]:
        """Have an agent wait here; return its request."""
        task = asyncio.create_task(self.agents.wait(node, last, 300, lambda: False))
        await turns(1)
        return task

    def order(self, nodes: list[str], **more: Any) -> AsyncGenerator[dict[str, Any]]:
        """Order runs; return what happens, but for the signs of life."""
        has_left = more.pop("has_left", lambda: False)
        runs = SharedRuns(self.shared, RunQuestion.of({"nodes": nodes, **more}, ID), has_left, clock=lambda: self.now)

        async def events() -> AsyncGenerator[dict[str, Any]]:
            async with aclosing(runs.events(nodes)) as events:  # type: ignore[type-var]
                async for event in events:
                    if "node" in event:
                        yield event

        return events()

    def report(self, node: str, job: str | None = ID, *, logs: Sequence[str] = ()) -> None:
        lines = [{"level": "notice", "message": message, "source": "Puppet"} for message in logs]
        self.agents.reported(Report.from_data({"host": node, "status": "unchanged", "job_id": job, "logs": lines}))


@asynccontextmanager
async def masters(url: str) -> AsyncIterator[tuple[Master, Master]]:
    states = [state for _ in range(2) if (state := SharedState.at(url)) is not None]
    first, second = (Master(state) for state in states)
    tasks = [asyncio.create_task(state.notices.keep_listening()) for state in states]
    tasks += [asyncio.create_task(master.shared.keep_sending()) for master in (first, second)]
    try:
        yield first, second
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for state in states:
            await state.database.close()


async def next_of(events: AsyncGenerator[dict[str, Any]]) -> tuple[str, str]:
    async with asyncio.timeout(30):
        event = await anext(events)
    return event["node"], event["state"]


async def test_an_order_reaches_an_agent_at_another_master_and_the_report_comes_to_the_first(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        waiting = await second.wait("web1")
        events = first.order(["web1"], noop=True)
        assert await next_of(events) == ("web1", "started")
        assert await waiting == RunOrder(ID, noop=True)
        first.report("web1", "another")
        first.report("web1")
        assert await next_of(events) == ("web1", "unchanged")
        assert [event async for event in events] == []


async def test_what_a_run_logs_comes_with_its_report_at_another_master(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        waiting = await second.wait("web1")
        events = first.order(["web1"], log=True)
        assert await next_of(events) == ("web1", "started")
        assert await waiting == RunOrder(ID, log=True)
        assert not second.agents.logged("web1", RunLines(ID, 0, (("notice", "Puppet", "a"),)))
        second.report("web1", logs=["a"])
        async with asyncio.timeout(30):
            assert (await anext(events))["lines"] == [["notice", "Puppet", "a"]]
        assert await next_of(events) == ("web1", "unchanged")


async def test_so_many_runs_take_place_at_all_masters_together(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        waiting = [await first.wait("web1"), await second.wait("web2")]
        events = first.order(["web1", "web2"], concurrency=1)
        began, _ = await next_of(events)
        assert [task.done() for task in waiting].count(True) <= 1
        other = {"web1": "web2", "web2": "web1"}[began]
        second.report(began)
        assert await next_of(events) == (began, "unchanged")
        assert await next_of(events) == (other, "started")
        await asyncio.gather(*waiting)
        await events.aclose()


async def test_an_agent_that_waits_nowhere_is_named_and_its_report_is_followed(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        events = first.order(["old1"], follow=1800)
        naming = asyncio.create_task(next_of(events))
        await until(lambda: second.shared._open)
        first.now += FOUND
        await first.shared.hear()
        assert await naming == ("old1", "absent")
        second.report("old1", None)
        assert await next_of(events) == ("old1", "unchanged")
        await events.aclose()


async def test_a_run_without_a_report_ends_when_its_agent_waits_again_at_any_master(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        await first.wait("web1")
        events = first.order(["web1"])
        await next_of(events)
        await until(lambda: ID in second.shared._open)
        again = await second.wait("web1", last=ID)
        second.now += LATE
        assert await next_of(events) == ("web1", "ended")
        assert not again.done()
        again.cancel()
        await events.aclose()


async def test_an_order_that_was_lost_is_sent_again_at_any_master(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        await first.wait("web1")
        async with aclosing(first.order(["web1"])) as events:
            await next_of(events)
            async with asyncio.timeout(30):
                assert await (await second.wait("web1", last="earlier")) == RunOrder(ID)


async def test_what_has_not_begun_is_not_ordered_once_nobody_follows(state_url: str) -> None:
    async with masters(state_url) as (first, second):
        waiting = {"web1": await second.wait("web1"), "web2": await second.wait("web2")}
        left = False
        events = first.order(["web1", "web2"], concurrency=1, has_left=lambda: left)
        began, _ = await next_of(events)
        left = True
        assert [event async for event in events] == []
        await until(lambda: not second.shared._open)
        second.report(began)
        await until(lambda: not second.shared._results)
        other = waiting[{"web1": "web2", "web2": "web1"}[began]]
        assert not other.done()
        other.cancel()
