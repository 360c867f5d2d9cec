"""Reports while the masters' database is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DataError

from master.reports.database import DatabaseReports
from master.reports.pending import PendingReports
from master.service.state_queue import StateQueue
from shared.errors import Unavailable
from shared.models.report import Report
from shared.queue.spool import Spool, SpoolLimits
from shared.state.database import StateAway, StateDatabase
from tests.support.waiting import until

START = datetime(2026, 11, 20, 21, 48, 31, tzinfo=UTC)


@dataclass
class Rows(DatabaseReports):
    """A table in a list, which can be away; the database refuses reports of `poison`."""

    rows: list[tuple[str, datetime]] = field(default_factory=list)
    is_away: bool = False
    poison: str = ""

    async def write(self, host: str, received: datetime, body: bytes) -> None:
        if self.is_away:
            raise StateAway("it is stopped")
        if host == self.poison:
            raise DataError("INSERT", {}, Exception("out of range"))
        if (host, received) not in self.rows:
            self.rows.append((host, received))


@pytest.fixture
def table() -> Rows:
    seconds = iter(range(1000))
    return Rows(StateDatabase.open("postgresql://nobody@127.0.0.1:1/x"), now=lambda: START + timedelta(seconds=next(seconds)))


@pytest.fixture
def opened(tmp_path: Path, table: Rows) -> Callable[..., Any]:
    """Opens the queue as a master does at its start."""
    return lambda **limits: Spool(tmp_path / "reports", SpoolLimits(**limits))


def report(host: str) -> Report:
    return Report.from_data({"host": host, "time": "2026-11-20T21:48:31Z", "status": "unchanged"})


def names(table: Rows) -> str:
    return "".join(host for host, _ in table.rows)


async def test_reports_wait_and_are_stored_in_their_order_with_the_times_of_their_arrival(opened: Any, table: Rows) -> None:
    async with opened() as spool:
        pending = PendingReports(table, spool)
        await pending.process(report("a"))
        table.is_away = True
        await pending.process(report("b"))
        await pending.process(report("a"))
        table.is_away = False
        await pending.process(report("c"))  # behind those that wait
        assert (names(table), spool.depth, pending.oldest) == ("a", 3, START + timedelta(seconds=1))
        await pending.drain()
        assert (spool.depth, pending.oldest) == (0, None)
    assert table.rows == [(host, START + timedelta(seconds=number)) for number, host in enumerate("abac")]


async def test_reports_that_wait_survive_a_restart_and_a_database_that_leaves_again(opened: Any, table: Rows) -> None:
    table.is_away = True
    async with opened() as spool:
        pending = PendingReports(table, spool)
        for host in "abc":
            await pending.process(report(host))
        with pytest.raises(StateAway):
            await pending.drain()
        assert spool.depth == 3
    table.is_away = False
    async with opened() as spool:
        await PendingReports(table, spool).drain()
    assert names(table) == "abc"


async def test_a_full_queue_has_agents_come_back(opened: Any, table: Rows) -> None:
    table.is_away = True
    async with opened(commands=2) as spool:
        pending = PendingReports(table, spool)
        for host in "ab":
            await pending.process(report(host))
        with pytest.raises(Unavailable, match="queue of commands is full") as caught:
            await pending.process(report("c"))
        assert caught.value.retry_after == 30


async def test_a_report_that_cannot_be_stored_holds_up_no_other(opened: Any, table: Rows, tmp_path: Path) -> None:
    table.is_away, table.poison = True, "b"
    async with opened() as spool:
        pending = PendingReports(table, spool)
        for host in "abc":
            await pending.process(report(host))
        table.is_away = False
        await pending.drain()
        assert spool.depth == 0
    assert names(table) == "ac"
    assert [path.suffix for path in sorted((tmp_path / "reports" / "discarded").iterdir())] == [".yaml", ".reason"]


@pytest.fixture
async def queue(opened: Any, table: Rows) -> AsyncIterator[StateQueue]:
    async with opened() as spool:
        yield StateQueue(table.database, PendingReports(table, spool), [])


async def test_what_waits_is_told_and_brought_as_soon_as_the_database_is_back(queue: StateQueue, table: Rows) -> None:
    assert queue.reports is not None
    table.is_away = True
    await queue.reports.process(report("a"))
    queue.database._note_absence("it is stopped", 0)
    waiting: Any = queue.status()["state_database"]
    assert waiting["away_since"] and waiting["pending"]["reports"]["entries"] == 1
    assert waiting["pending"]["reports"]["oldest_seconds"] > 0 == waiting["pending"]["files"]["entries"]
    task = asyncio.create_task(queue.keep_drained(pause=0.01))
    try:
        await asyncio.sleep(0)
        table.is_away = False
        await until(lambda: not queue.backlog()["reports"].entries)
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert names(table) == "a"
