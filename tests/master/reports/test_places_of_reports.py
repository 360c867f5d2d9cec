"""Stored reports: the same from files and from the masters' database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from master.reports.database import DatabaseReports
from master.reports.processors import Store
from master.reports.stored import LatestReport
from shared.errors import BadRequest
from shared.models.report import Event, Log, Report, ResourceStatus
from shared.state.database import StateDatabase
from shared.state.tables import reports as table

START = datetime(2026, 11, 20, 21, 48, 31, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def database(state_url: str) -> AsyncIterator[StateDatabase]:
    opened = StateDatabase.open(state_url)
    yield opened
    await opened.close()


@pytest.fixture(params=["files", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Store | DatabaseReports:
    """The processor `store` in its place."""
    if request.param == "files":
        return Store(tmp_path, now=clock)
    return DatabaseReports(request.getfixturevalue("database"), now=clock)


def report(host: str, status: str = "unchanged", **fields: object) -> Report:
    return Report.from_data({"host": host, "time": "2026-11-20T21:48:31Z", "status": status, "puppet_version": "8.10.0", **fields})


def to_the_minute(run: LatestReport) -> tuple[str, str, datetime | None]:
    return run.node, run.status, run.received and run.received.replace(second=0, microsecond=0)


async def latest(store: Store | DatabaseReports, *names: str) -> list[LatestReport]:
    return await asyncio.to_thread(lambda: list(store.latest(names)))


async def test_the_last_report_of_each_node_is_known_and_nodes_without_one(store: Store | DatabaseReports, clock: Clock) -> None:
    for status in ("failed", "changed"):
        await store.process(report("web1", status))
        clock.now += timedelta(minutes=1)
    await store.process(report("db1"))
    minute = START.replace(second=0)
    assert [to_the_minute(run) for run in await latest(store, "new1", "web1", "../x")] == [
        ("db1", "unchanged", minute + timedelta(minutes=2)),
        ("new1", "none", None),
        ("web1", "changed", minute + timedelta(minutes=1)),
    ]


async def test_of_reports_that_arrive_at_once_the_last_one_counts(store: Store | DatabaseReports) -> None:
    for status in ("failed", "changed", "unchanged"):
        await store.process(report("n", status))
    assert [run.status for run in await latest(store)] == ["unchanged"]


async def test_what_a_report_says_is_known_without_its_details(store: Store | DatabaseReports) -> None:
    fields = {"noop": True, "corrective_change": True, "cached_catalog_status": "on_failure", "environment": "test"}
    logs = [Log(level="notice", message="status: failed\nnoop: false", source="x").model_dump()]
    await store.process(report("n", "changed", logs=logs, **fields))
    (run,) = await latest(store)
    assert (run.status, run.noop, run.corrective_change, run.cached_catalog) == ("changed", True, True, True)
    assert (run.environment, run.puppet_version) == ("test", "8.10.0")


@pytest.mark.parametrize("corrected", [True, False])
async def test_what_a_resource_says_is_not_taken_for_what_the_report_says(store: Store | DatabaseReports, corrected: bool) -> None:
    event = Event(name="created", property="ensure", status="failure", corrective_change=not corrected)
    status = ResourceStatus(resource="File[/a]", resource_type="File", title="/a", events=[event], corrective_change=not corrected)
    await store.process(report("n", "changed", corrective_change=corrected).model_copy(update={"resource_statuses": {"File[/a]": status}}))
    (run,) = await latest(store)
    assert (run.status, run.corrective_change) == ("changed", corrected)


async def test_reports_of_a_node_are_forgotten_with_it(store: Store | DatabaseReports) -> None:
    for host in ("a", "b"):
        await store.process(report(host))
    assert [await store.forget("a"), await store.forget("a")] == [True, False]
    assert [run.node for run in await latest(store)] == ["b"]


@pytest.mark.parametrize("host", ["..", "a/b", "A"])
async def test_a_host_that_is_no_certname_is_not_stored(store: Store | DatabaseReports, host: str) -> None:
    for refused in (store.process(report("n").model_copy(update={"name": host})), store.forget(host)):
        with pytest.raises(BadRequest):
            await refused
    assert await latest(store) == []


async def test_a_report_in_a_table_is_the_file_that_it_would_be(database: StateDatabase, tmp_path: Path, clock: Clock) -> None:
    for store in (Store(tmp_path, now=clock), DatabaseReports(database, now=clock)):
        await store.process(report("n").model_copy(update={"report_format": 4}))
    (file,) = (tmp_path / "n").iterdir()
    assert await database.run(lambda connection: connection.scalar(select(table.c.body))) == file.read_bytes()


async def test_old_reports_are_removed_from_the_table(database: StateDatabase, clock: Clock) -> None:
    store = DatabaseReports(database, now=clock)
    for _ in range(3):
        await store.process(report("n"))
        clock.now += timedelta(days=1)
    assert await store.remove_before(START + timedelta(days=2)) == 2
    assert [run.received for run in await latest(store)] == [START + timedelta(days=2)]


async def test_a_report_is_stored_once_however_often_it_is_brought(database: StateDatabase, clock: Clock) -> None:
    stores = [DatabaseReports(database, now=clock) for _ in range(2)]
    await stores[0].process(report("n"))
    await stores[1].process(report("n"))
    await stores[1].process(report("n", "failed"))
    assert await database.run(lambda connection: len(connection.execute(select(table.c.received)).all())) == 2
