"""A clock that goes back, the store's or that of who sends commands, loses nothing and keeps nothing for longer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import select

from shared.queue.spool import Spool
from store.commands.commands import Command, DeactivateNode
from store.commands.submission import Submission
from store.database.engine import Database
from store.database.tables import nodes
from store.queue.processor import CommandProcessor, ProcessorLimits
from store.retention.retention import Retention, RetentionSettings
from store.timestamps import format_timestamp, parse_timestamp
from store.writing.writer import DatabaseWriter
from tests.support.command_queue import running
from tests.support.store_commands import NODE, facts_command, received, report_command
from tests.support.store_model import stored_nodes

NOW = parse_timestamp("2026-03-20T10:00:00Z")
SECOND = 1_000_000
DAY = 86_400 * SECOND


@dataclass
class SettableClock:
    """A clock that shows the times of a list, one at each look, and the last one from then on."""

    times: list[int]

    def __call__(self) -> int:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


def retention_at(database: Database, *times: int) -> Retention:
    return Retention(database, RetentionSettings(), clock=SettableClock(list(times)))


async def write(database: Database, *commands: Command) -> None:
    await DatabaseWriter(database).write(received(*commands))


async def expiries(database: Database) -> dict[str, int | None]:
    async with database.reading() as connection:
        return dict(iter(await connection.execute(select(nodes.c.certname, nodes.c.expired))))


async def test_a_node_that_expired_while_the_clock_was_ahead_is_active_again(database: Database) -> None:
    await write(database, facts_command(NOW - 1 * DAY, {}), facts_command(NOW - 8 * DAY, {}, node="silent"))
    await retention_at(database, NOW + 3650 * DAY).clean(["expire_nodes"])
    assert await expiries(database) == {NODE: NOW + 3650 * DAY, "silent": NOW + 3650 * DAY}
    assert await retention_at(database, NOW).clean(["expire_nodes"]) == {"expire_nodes": 2}
    assert await expiries(database) == {NODE: None, "silent": NOW}
    assert await retention_at(database, NOW + 15 * DAY).clean(["purge_nodes"]) == {"purge_nodes": 1}
    assert set(await expiries(database)) == {NODE}


async def test_an_expiry_that_is_not_in_the_future_stays_as_it_is(database: Database) -> None:
    await write(database, facts_command(NOW - 8 * DAY, {}))
    await retention_at(database, NOW).clean(["expire_nodes"])
    for at in (NOW, NOW + DAY):
        assert await retention_at(database, at).clean(["expire_nodes"]) == {"expire_nodes": 0}
        assert await expiries(database) == {NODE: NOW}


async def test_a_clock_that_goes_back_while_nodes_expire_stops_it(database: Database) -> None:
    names = [f"node{number}" for number in range(150)]  # more than expire in one transaction
    await write(database, *(facts_command(NOW - 1 * DAY, {}, node=name) for name in names))
    retention = retention_at(database, NOW, NOW + 3650 * DAY, NOW)  # one look for expiries to correct, the next ones for the nodes
    assert await retention.clean(["expire_nodes"]) == {"expire_nodes": 100}
    assert await retention.clean(["expire_nodes"]) == {"expire_nodes": 100}
    assert set((await expiries(database)).values()) == {None}


async def test_a_clock_that_goes_back_while_nodes_are_deleted_stops_it(database: Database) -> None:
    await write(database, DeactivateNode("recent", NOW - 1 * DAY), DeactivateNode("old", NOW - 20 * DAY))
    assert await retention_at(database, NOW + 30 * DAY, NOW).clean(["purge_nodes"]) == {"purge_nodes": 1}
    assert set(await expiries(database)) == {"recent"}


async def test_a_clock_that_goes_back_while_reports_are_deleted_stops_it(database: Database) -> None:
    await write(database, *(report_command(NOW - 1 * DAY - number) for number in range(150)))
    assert await retention_at(database, NOW + 30 * DAY, NOW).clean(["purge_reports"]) == {"purge_reports": 100}


def submissions(times: Iterable[int]) -> Iterator[Submission]:
    """Yield facts of these times of their producer, which say when they are."""
    for at in times:
        payload = {
            "certname": NODE,
            "environment": None,
            "producer": None,
            "producer_timestamp": format_timestamp(at),
            "values": {"at": at},
        }
        yield Submission("replace facts", 5, NODE, None, None, json.dumps(payload).encode(), "identity")


@pytest.mark.parametrize("together", [True, False], ids=["in one transaction", "one by one"])
async def test_the_newest_facts_by_their_producers_time_stay_when_all_clocks_go_back(
    database: Database, tmp_path: Path, together: bool
) -> None:
    times = [NOW, NOW + 60 * SECOND, NOW - 3600 * SECOND, NOW - 3000 * SECOND, NOW + 30 * SECOND]
    limits = ProcessorLimits(batch_commands=100 if together else 1)
    async with Spool(tmp_path / "queue", clock=SettableClock(list(times))) as spool:
        processor = CommandProcessor(spool, DatabaseWriter(database), limits)
        for submission in submissions(times):
            await spool.add(submission)
        async with running(processor):
            for submission in submissions([NOW + 50 * SECOND]):
                assert (await processor.submit(replace(submission, seconds_to_wait=20.0))).is_processed
    facts = (await database.write(stored_nodes))[NODE].facts
    assert facts is not None and facts.producer_timestamp == NOW + 60 * SECOND
    assert facts.values == {"at": str(NOW + 60 * SECOND)}
