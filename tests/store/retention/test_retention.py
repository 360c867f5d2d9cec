"""What the store forgets, and what it keeps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import func, select, update

from store.commands.commands import Command, ConfigureExpiration, DatabaseUnavailable, DeactivateNode
from store.database.engine import Database, StatementTimeout
from store.database.tables import environments, events, fact_paths, metadata, nodes, packages, parameter_sets, producers
from store.retention.nodes import delete_node_batch
from store.retention.reports import delete_report_batch
from store.retention.retention import STEPS, CleaningInProgress, Retention, RetentionSettings
from store.timestamps import parse_timestamp
from store.writing.writer import DatabaseWriter
from tests.support.store_commands import NODE, catalog_command, facts_command, inputs_command, received, report_command
from tests.support.store_model import stored_nodes

NOW = parse_timestamp("2026-03-20T10:00:00Z")
DAY = 86_400_000_000


def retention_of(database: Database, **settings: Any) -> Retention:
    return Retention(database, RetentionSettings(**settings), clock=lambda: NOW)


async def write(database: Database, *commands: Command) -> None:
    await DatabaseWriter(database).write(received(*commands))


async def column(database: Database, values: Any) -> set[Any]:
    async with database.reading() as connection:
        return set(await connection.scalars(select(values)))


async def changed_to(database: Database, values: Any, expected: set[Any]) -> None:
    """Wait until a column has these values."""
    found = await column(database, values)
    while found != expected:
        await asyncio.sleep(0.01)
        found = await column(database, values)


@pytest.mark.parametrize(
    ("commands", "is_expired"),
    [
        ((facts_command(NOW - 8 * DAY, {}),), True),
        ((facts_command(NOW - 6 * DAY, {}),), False),
        ((facts_command(NOW - 8 * DAY, {}), catalog_command(NOW - 6 * DAY, {})), False),
        ((facts_command(NOW - 8 * DAY, {}), inputs_command(NOW - 6 * DAY, "a")), False),
        ((facts_command(NOW - 8 * DAY, {}), report_command(NOW - 6 * DAY)), False),
        ((catalog_command(NOW - 8 * DAY, {}), report_command(NOW - 8 * DAY), inputs_command(NOW - 8 * DAY, "a")), True),
        ((facts_command(NOW - 8 * DAY, {}), ConfigureExpiration(NODE, NOW - 9 * DAY, False)), False),
        ((facts_command(NOW - 8 * DAY, {}), ConfigureExpiration(NODE, NOW - 6 * DAY, True)), False),
        ((facts_command(NOW - 8 * DAY, {}), ConfigureExpiration(NODE, NOW - 8 * DAY, True)), True),
        ((DeactivateNode(NODE, NOW - 8 * DAY),), False),
    ],
)
async def test_nodes_of_which_nothing_is_heard_expire(database: Database, commands: tuple[Command, ...], is_expired: bool) -> None:
    await write(database, *commands)
    retention = retention_of(database)
    assert await retention.clean(["expire_nodes"]) == {"expire_nodes": int(is_expired)}
    assert await column(database, nodes.c.expired) == {NOW if is_expired else None}
    assert await retention.clean(["expire_nodes"]) == {"expire_nodes": 0}


async def test_a_time_to_live_of_nothing_is_none_at_all(database: Database) -> None:
    await write(database, facts_command(1, {}), DeactivateNode("old.example.com", 1))
    await retention_of(database, node_ttl=0, node_purge_ttl=0).clean()
    assert {name: node.expired for name, node in (await database.write(stored_nodes)).items()} == {NODE: None, "old.example.com": None}


async def test_inactive_nodes_are_deleted_with_all_their_data(database: Database) -> None:
    gone, kept = "gone.example.com", "kept.example.com"
    files: dict[str, dict[str, Any]] = {"/a": {"mode": "0644"}, "/b": {}}
    for name in (gone, kept):
        await write(
            database,
            facts_command(NOW - 20 * DAY, {"os": {"name": "Debian"}}, node=name, packages=(("nginx", "1", "apt"),)),
            catalog_command(NOW - 20 * DAY, files, node=name, edges=[("/a", "/b")]),
            inputs_command(NOW - 20 * DAY, "a", node=name),
            *(report_command(NOW - 20 * DAY - number, "/a", node=name) for number in range(120)),
        )
    await write(database, DeactivateNode(gone, NOW - 15 * DAY), DeactivateNode(kept, NOW - 13 * DAY))
    before = (await database.write(stored_nodes))[kept]
    assert await retention_of(database).clean(["purge_nodes"]) == {"purge_nodes": 1}
    assert await database.write(stored_nodes) == {kept: before}


async def test_only_so_many_nodes_are_deleted_at_once_and_the_oldest_ones_first(database: Database) -> None:
    await write(database, *(DeactivateNode(f"node{age}.example.com", NOW - age * DAY) for age in (40, 60, 50, 30)))
    retention = retention_of(database, node_purge_limit=2)
    assert await retention.clean(["purge_nodes"]) == {"purge_nodes": 2}
    assert await column(database, nodes.c.certname) == {"node30.example.com", "node40.example.com"}
    assert await retention.clean(["purge_nodes"], purge_limit=1) == {"purge_nodes": 1}
    assert await column(database, nodes.c.certname) == {"node30.example.com"}


async def test_a_node_is_deleted_at_once_when_asked(database: Database) -> None:
    await write(database, facts_command(NOW, {}), report_command(NOW, "/a"), facts_command(NOW, {}, node="other.example.com"))
    retention = retention_of(database)
    await retention.delete_node(NODE)
    await retention.delete_node("unknown.example.com")
    assert set(await database.write(stored_nodes)) == {"other.example.com"}
    assert await column(database, events.c.id) == set()


async def test_reports_are_deleted_by_whole_days(database: Database) -> None:
    midnight = parse_timestamp("2026-03-06T00:00:00Z")  # 14 days before NOW began ten hours later
    times = [midnight - 1, midnight, *(midnight - 5 * DAY + number for number in range(150))]
    await write(database, *(report_command(at, "/a") for at in times))
    await write(database, report_command(midnight - 1, "/a", node="old.example.com"))
    assert await retention_of(database).clean(["purge_reports"]) == {"purge_reports": 152}
    stored = await database.write(stored_nodes)
    assert [it.producer_timestamp for it in stored[NODE].reports.values()] == [midnight]
    assert stored[NODE].latest is not None
    assert (stored["old.example.com"].reports, stored["old.example.com"].latest) == ({}, None)
    await write(database, report_command(midnight - 2 * DAY, node="old.example.com"))
    assert (await database.write(stored_nodes))["old.example.com"].latest is not None


async def test_reports_with_many_events_are_deleted_a_few_at_a_time_so_that_commands_go_on(database: Database) -> None:
    many = [f"/{number}" for number in range(700)]
    await write(database, *(report_command(at, *many) for at in (1, 2, 3)), *(report_command(at, "/a") for at in (4, 5)))
    assert [await database.write(lambda connection: delete_report_batch(connection, 3)) for _ in range(3)] == [1, 1, 0]
    (node,) = await column(database, nodes.c.id)
    assert [await database.write(lambda connection: delete_node_batch(connection, node, None)) for _ in range(2)] == [None, True]
    await write(database, *(report_command(at, *many) for at in (1, 2, 3)))
    (node,) = await column(database, nodes.c.id)
    assert [await database.write(lambda connection: delete_node_batch(connection, node, None)) for _ in range(4)] == [
        None,
        None,
        None,
        True,
    ]


async def test_events_may_go_before_their_reports(database: Database) -> None:
    await write(database, report_command(NOW - 3 * DAY, "/a", "/b"), report_command(NOW, "/c"))
    assert await retention_of(database).clean(["purge_resource_events"]) == {"purge_resource_events": 0}
    assert await retention_of(database, resource_events_ttl=86400).clean() == {**dict.fromkeys(STEPS, 0), "purge_resource_events": 2}
    assert await column(database, events.c.resource_title) == {"/c"}


async def test_what_no_node_uses_any_more_is_deleted(database: Database) -> None:
    first: dict[str, Any] = {"os": {"name": "Debian", "release": [12, "bookworm"]}, "swap": None, "both": 1}
    second: dict[str, Any] = {"os": {"name": "Debian", "release": "12"}, "both": {"c": []}, "new": True}
    for at, values, environment in ((1, first, "old"), (2, second, "new")):
        await write(
            database,
            facts_command(at, values, environment=environment, packages=(("nginx", str(at), "apt"),)),
            catalog_command(at, {"/a": {"version": at}, "/b": {}}, environment=environment),
        )
    await write(database, report_command(3, environment="of a report"))
    assert await retention_of(database).clean(["gc_packages", "other"]) == {"gc_packages": 1, "other": 1 + 4 + 1}
    assert await column(database, packages.c.version) == {"2"}
    assert await column(database, environments.c.name) == {"new", "of a report"}
    assert await column(database, producers.c.name) == {"master1"}
    assert await column(database, fact_paths.c.pointer) == {'$."name"', '$."release"', "$"}
    assert len(await column(database, parameter_sets.c.hash)) == 2
    assert await retention_of(database).clean(["gc_packages", "other"]) == {"gc_packages": 0, "other": 0}
    await write(database, facts_command(4, first, environment="old"), catalog_command(4, {"/a": {"version": 1}}, environment="old"))
    stored = (await database.write(stored_nodes))[NODE]  # which compares the paths with the facts
    assert stored.catalog is not None
    assert stored.catalog.environment == "old"


async def test_two_cleanings_at_once_are_refused(database: Database) -> None:
    retention = retention_of(database)
    results = await asyncio.gather(retention.clean(), retention.clean(), return_exceptions=True)
    assert [type(result) for result in results] == [dict, CleaningInProgress]


async def test_a_running_retention_does_each_step_again_and_again(database: Database) -> None:
    await write(database, facts_command(NOW - 8 * DAY, {}))
    retention = retention_of(database, intervals={"expire_nodes": 0.01, "purge_nodes": 0})
    task = asyncio.create_task(retention.run())
    try:
        for at in (NOW - 8 * DAY, NOW - 7.5 * DAY):
            await write(database, facts_command(int(at), {}), DeactivateNode("other.example.com", int(at)))
            async with asyncio.timeout(60):
                await changed_to(database, nodes.c.expired, {NOW, None})
            await database.write(lambda connection: connection.execute(update(nodes).values(expired=None)))
    finally:
        task.cancel()


@dataclass
class UnreachableDatabase:
    """A database in front of which some errors lie."""

    database: Database
    errors: list[Exception]

    async def write(self, work: Any) -> Any:
        if self.errors:
            raise self.errors.pop()
        return await self.database.write(work)


async def test_a_running_retention_waits_for_a_database_that_is_away(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    await write(database, facts_command(NOW - 8 * DAY, {}))
    unreachable = UnreachableDatabase(database, [StatementTimeout("too slow"), DatabaseUnavailable("away")])
    settings = RetentionSettings(intervals={"expire_nodes": 0.01})
    task = asyncio.create_task(Retention(unreachable, settings, clock=lambda: NOW).run())  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(60):
            await changed_to(database, nodes.c.expired, {NOW})
    finally:
        task.cancel()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "Cleaning the store: expire_nodes is put off: away",
        "Cleaning the store: expire_nodes is put off: too slow",
    ]


@pytest.mark.slow
async def test_commands_and_cleanings_at_once_leave_nothing_without_what_it_refers_to(database_url: str) -> None:
    """Two masters on one database, one of which cleans all the time while both write; what is unused for a moment comes back."""
    databases = [Database.open(database_url) for _ in range(2)]
    retention = Retention(databases[0], RetentionSettings(node_ttl=0.001, node_purge_ttl=1000, report_ttl=86400), clock=lambda: NOW)
    writing = True

    async def clean() -> None:
        while writing:
            await retention.clean()

    async def run(database: Database, own: str) -> None:
        writer = DatabaseWriter(database)
        for turn in range(15):
            at, kind = NOW - 100 * DAY + turn, str(turn % 2)
            for name in (own, "shared.example.com"):
                await writer.write(
                    received(
                        facts_command(at, {"fact": {kind: turn}}, node=name, environment=kind, packages=((kind, kind, "apt"),)),
                        catalog_command(at, {"/a": {"kind": kind}}, node=name, environment=kind),
                        report_command(at, "/a", node=name, environment=kind),
                    )
                )

    try:
        async with asyncio.timeout(60):
            cleaning = asyncio.create_task(clean())
            await asyncio.gather(*(run(database, f"node{number}.example.com") for number, database in enumerate(databases)))
            writing = False
            await cleaning
        stored = await databases[0].write(stored_nodes)
        assert len(stored) == 3
        for node in stored.values():
            assert node.facts is not None
            assert node.catalog is not None
            assert (node.facts.producer_timestamp, node.facts.packages) == (NOW - 100 * DAY + 14, (("0", "0", "apt"),))
            assert (node.catalog.environment, len(node.catalog.resources)) == ("0", 1)
    finally:
        for database in databases:
            await database.close()


async def test_every_table_is_cleaned(database: Database) -> None:
    """A table that a later version adds has to be thought of."""
    await write(
        database,
        facts_command(1, {"os": {"name": "Debian"}}, packages=(("nginx", "1", "apt"),)),
        catalog_command(1, {"/a": {"mode": "0644"}, "/b": {}}, edges=[("/a", "/b")]),
        inputs_command(1, "a"),
        report_command(1, "/a"),
    )
    async with database.reading() as connection:
        counts = {table.name: await connection.scalar(select(func.count()).select_from(table)) for table in metadata.sorted_tables}
    assert 0 not in counts.values()
    retention = retention_of(database)
    await retention.delete_node(NODE)
    await retention.clean()
    async with database.reading() as connection:
        counts = {table.name: await connection.scalar(select(func.count()).select_from(table)) for table in metadata.sorted_tables}
    assert set(counts.values()) == {0}
