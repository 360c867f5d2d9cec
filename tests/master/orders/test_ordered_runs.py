"""The table of agents that wait, and the runs that are ordered of them. Time is a number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from master.orders.run import OrderedRuns, RunQuestion
from master.orders.waiting import RETURN, START, WaitingAgents
from shared.errors import BadData, BadRequest, Conflict, Unavailable
from shared.models.report import Metric, Report
from shared.orders import MAX_LINE, MAX_LINES, RunLines, RunOrder
from tests.support.waiting import advance, turns, until

ID = "0d1c2b3a"
LONG = 3600.0


class Site:
    """A master's agents; its clock stands still until `now` is set."""

    def __init__(self, most: int = 100) -> None:
        self.now = 2 * START
        self.agents = WaitingAgents(lambda: most, clock=lambda: self.now - 2 * START)
        self.now = 4 * START  # no longer just started
        self.gone: set[str] = set()

    async def wait(self, node: str, last: str = "") -> asyncio.Task[RunOrder | None]:
        """Have an agent wait; return its request."""
        task = asyncio.create_task(self.agents.wait(node, last, LONG, lambda: node in self.gone))
        await turns(1)
        return task

    def order(self, names: list[str], **more: Any) -> AsyncGenerator[dict[str, Any]]:
        """Order runs; return what happens, but for the signs of life."""
        has_left = more.pop("has_left", lambda: False)
        runs = OrderedRuns(self.agents, RunQuestion.of({"nodes": names, **more}, ID), has_left, clock=lambda: self.now)

        async def events() -> AsyncGenerator[dict[str, Any]]:
            async with aclosing(runs.events(names)) as events:  # type: ignore[type-var]
                async for event in events:
                    if "node" in event:
                        yield event

        return events()

    def report(self, node: str, job: str | None = ID, *, failed: int = 0, changed: int = 0, logs: Sequence[str] = ()) -> None:
        numbers = {"total": 5, "failed": failed, "changed": changed, "out_of_sync": changed + failed}
        metrics = {
            "resources": Metric.of("resources", numbers),
            "changes": Metric.of("changes", {"total": changed}),
            "time": Metric.of("time", {"total": 1.5}),
        }
        status = "failed" if failed else "changed" if changed else "unchanged"
        lines = [{"level": "err", "message": "no space", "source": "File[/x]"}] if failed else []
        lines += [{"level": "notice", "message": message, "source": "Puppet"} for message in logs]
        data = {"host": node, "status": status, "job_id": job, "logs": lines}
        self.agents.reported(Report.from_data(data).model_copy(update={"metrics": metrics}))


async def rest(events: AsyncGenerator[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["node"], event["state"]) async for event in events]


async def test_an_agent_that_waits_gets_the_order_and_its_report_is_the_result() -> None:
    site = Site()
    waiting = await site.wait("web1")
    events = site.order(["web1"], noop=True, tags=["Some"], environment="test")
    assert (await anext(events))["state"] == "started"
    assert await waiting == RunOrder(ID, noop=True, tags=("some",), environment="test")
    site.report("web1", "another")
    site.report("web1", failed=1, changed=2)
    (result,) = [event async for event in events]
    assert (result["state"], result["changed"], result["resources"]["changed"]) == ("failed", True, 2)
    assert (result["errors"], result["seconds"]) == (["File[/x]: no space"], 1.5)


def lines_from(first: int, *messages: str, order: str = ID) -> RunLines:
    return RunLines(order, first, tuple(("notice", "Puppet", message) for message in messages))


async def test_what_a_run_logs_is_told_once_while_it_lasts_and_the_rest_with_its_report() -> None:
    site = Site()
    waiting = await site.wait("web1")
    events = site.order(["web1"], log=True)
    assert (await anext(events))["state"] == "started"
    assert await waiting == RunOrder(ID, log=True)
    assert site.agents.logged("web1", lines_from(0, "a", "b"))
    assert site.agents.logged("web1", lines_from(1, "b", "c"))  # the answer to the first was lost
    assert not site.agents.logged("web1", lines_from(0, "a", order="another"))
    assert not site.agents.logged("web2", lines_from(0, "a"))
    told = [await anext(events), await anext(events)]
    assert [[message for _, _, message in event["lines"]] for event in told] == [["a", "b"], ["c"]]
    site.report("web1", logs=["a", "b", "c", "d"])
    assert [message for _, _, message in (await anext(events))["lines"]] == ["d"]
    assert await rest(events) == [("web1", "unchanged")]
    assert not site.agents.logged("web1", lines_from(3, "d"))


async def test_what_a_run_logs_is_not_told_where_nobody_asked_for_it() -> None:
    site = Site()
    await site.wait("web1")
    events = site.order(["web1"])
    await anext(events)
    site.report("web1", logs=["a"])
    assert await rest(events) == [("web1", "unchanged")]


@pytest.mark.parametrize(
    "data",
    [
        [], {}, {"order": ID, "first": 0}, {"order": "../x", "first": 0, "lines": []}, {"order": ID, "first": -1, "lines": []},
        {"order": ID, "first": 0, "lines": [["notice", "Puppet"]]}, {"order": ID, "first": 0, "lines": [["a", "b", 3]]},
        {"order": ID, "first": 0, "lines": [["a", "b", "c"]] * (MAX_LINES + 1)}, {"order": ID, "first": 0, "lines": [["a"] * 6, []]},
    ],
)  # fmt: skip
def test_what_is_no_part_of_a_log_is_refused(data: object) -> None:
    with pytest.raises(BadData):
        RunLines.of(data)


def test_lines_of_a_run_are_as_long_as_they_may_be() -> None:
    sent = RunLines.of({"order": ID, "first": 3, "lines": [["notice", "Puppet", "x" * (MAX_LINE + 1)]]})
    assert (sent.first, len(sent.lines[0][2])) == (3, MAX_LINE)


async def test_so_many_runs_take_place_at_the_same_time() -> None:
    site = Site()
    waiting = [await site.wait(f"web{number}") for number in range(3)]
    events = site.order(["web0", "web1", "web2"], concurrency=2)
    assert [(await anext(events))["node"] for _ in range(2)] == ["web0", "web1"]
    await asyncio.gather(*waiting[:2])
    assert not waiting[2].done()
    site.report("web1")
    assert [(event["node"], event["state"]) for event in [await anext(events), await anext(events)]] == [
        ("web1", "unchanged"),
        ("web2", "started"),
    ]
    await events.aclose()


async def test_what_has_not_begun_is_not_ordered_once_nobody_follows() -> None:
    site = Site()
    waiting = [await site.wait(name) for name in ("web0", "web1")]
    left = False
    events = site.order(["web0", "web1"], concurrency=1, has_left=lambda: left)
    await anext(events)
    left = True
    site.report("web0")
    assert await rest(events) == [("web0", "unchanged")]
    assert not waiting[1].done()
    waiting[1].cancel()


async def test_an_agent_that_does_not_wait_comes_by_itself_and_its_report_is_followed() -> None:
    site = Site()
    assert await rest(site.order(["web1"])) == [("web1", "absent")]
    events = site.order(["web1"], follow=1800)
    assert (await anext(events))["state"] == "absent"
    site.report("web1", None, changed=1)
    assert await rest(events) == [("web1", "changed")]


async def test_an_agent_that_is_followed_gets_the_order_when_it_waits() -> None:
    site = Site()
    events = site.order(["web1"], follow=1800)
    assert (await anext(events))["state"] == "absent"
    waiting = await site.wait("web1")
    assert (await anext(events))["state"] == "started"
    assert await waiting is not None
    await events.aclose()


async def test_an_agent_that_waited_a_moment_ago_is_expected_back() -> None:
    site = Site()
    waiting = await site.wait("web1")
    site.gone.add("web1")
    events = site.order(["web1", "web2"])
    assert ((event := await anext(events))["node"], event["state"]) == ("web2", "absent")
    assert await waiting is None
    site.gone.clear()
    waiting = await site.wait("web1")
    assert ((await anext(events))["state"], await waiting) == ("started", RunOrder(ID))
    await events.aclose()


async def test_an_agent_that_does_not_come_back_comes_by_itself() -> None:
    site = Site()
    waiting = await site.wait("web1")
    site.gone.add("web1")
    following = asyncio.create_task(rest(site.order(["web1"])))
    assert await waiting is None
    site.now += RETURN
    advance(10)
    assert await following == [("web1", "absent")]


async def test_all_agents_are_expected_at_a_master_that_has_just_started() -> None:
    site = Site()
    site.now = 2 * START + 1
    following = asyncio.create_task(rest(site.order(["web1"])))
    await turns(3)
    assert not following.done()
    site.now += START
    advance(10)
    assert await following == [("web1", "absent")]


async def test_a_run_that_takes_too_long_is_given_up() -> None:
    site = Site()
    await site.wait("web1")
    following = asyncio.create_task(rest(site.order(["web1"], timeout=60)))
    await until(lambda: site.agents.nodes == [])
    site.now += 60
    advance(10)
    assert await following == [("web1", "started"), ("web1", "timeout")]


async def test_an_agent_that_waits_again_without_a_report_has_not_run() -> None:
    site = Site()
    await site.wait("web1")
    events = site.order(["web1"])
    await anext(events)
    again = await site.wait("web1", last=ID)
    assert await rest(events) == [("web1", "ended")]
    assert not again.done()
    again.cancel()


async def test_an_order_whose_answer_was_lost_is_sent_again_but_not_after_its_time() -> None:
    site = Site()
    await site.wait("web1")
    async with aclosing(site.order(["web1"], timeout=60)) as events:
        await anext(events)
        assert await (await site.wait("web1", last="earlier")) == RunOrder(ID)
        site.now += 60
        again = await site.wait("web1", last="earlier")
        assert not again.done()
        again.cancel()


async def test_a_second_request_of_an_agent_takes_the_place_of_the_first() -> None:
    site = Site(most=1)
    first = await site.wait("web1")
    second = await site.wait("web1")
    with pytest.raises(Conflict):
        await first
    with pytest.raises(Unavailable):
        await (await site.wait("web2"))
    assert site.agents.nodes == ["web1"]
    second.cancel()
    await turns(1)
    assert site.agents.nodes == []


async def test_an_agent_is_answered_after_a_while_and_sent_away_when_the_master_stops() -> None:
    site = Site()
    waiting = await site.wait("web1")
    advance(LONG)
    assert await waiting is None
    waiting = await site.wait("web1")
    await site.wait("web2")
    events = site.order(["web2"])
    await anext(events)
    site.agents.close()
    with pytest.raises(Unavailable):
        await waiting
    advance(10)
    with pytest.raises(Unavailable, match="The master stops"):
        await anext(events)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"nodes": ["a"], "all": True},
        {"nodes": "a"},
        {"nodes": ["../a"]},
        {"query": 1},
        {"all": True, "code": "file { '/x': }"},
        {"all": True, "tags": ["a;b"]},
        {"all": True, "tags": "a"},
        {"all": True, "environment": "../x"},
        {"all": True, "noop": "yes"},
        {"all": True, "concurrency": 0},
        {"all": True, "concurrency": True},
        {"all": True, "timeout": -1},
        {"all": True, "follow": float("inf")},
    ],
)
def test_what_is_no_order_is_refused(data: object) -> None:
    with pytest.raises(BadRequest):
        RunQuestion.of(data, ID)
