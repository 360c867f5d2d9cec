"""Carrying out commands: which of them count, and what is written of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, update

from store.commands.checked_catalogs import CheckedCatalogs, DeferredSequence
from store.commands.commands import Command, ConfigureExpiration, DatabaseUnavailable, DeactivateNode, ReplaceCatalog, ReplaceFacts
from store.commands.payloads import parse_payload
from store.database.engine import Database
from store.database.tables import environments, factsets, nodes
from store.writing.writer import DatabaseWriter
from tests.support.store_commands import NODE, catalog_command, facts_command, inputs_command, received, report_command
from tests.support.store_model import ModelNode, StoreModel, in_order, stored_nodes

_FILE = {"type": "File", "exported": False, "file": None, "line": 1, "tags": ["file"]}
_CATALOG = {"certname": NODE, "version": "1", "environment": "production", "producer": "m", "code_id": None, "job_id": None} | {
    "transaction_uuid": "t",
    "catalog_uuid": "c",
}


def stored(command: ReplaceFacts) -> ReplaceFacts | None:
    """The facts of a command in the form of `stored_nodes`."""
    model = StoreModel()
    model.carry_out(command)
    return in_order(model)[command.certname].facts


async def node_after(database: Database, *commands: Command) -> ModelNode:
    """What is stored of NODE after the commands, each in a batch of its own."""
    writer = DatabaseWriter(database)
    for command in commands:
        await writer.write(received(command))
    return (await database.write(stored_nodes))[NODE]


@pytest.mark.slow
async def test_facts_and_catalogs_that_are_older_than_those_stored_are_ignored(database: Database) -> None:
    node = await node_after(
        database,
        facts_command(5, {"kernel": "Linux"}),
        facts_command(4, {"kernel": "Darwin"}),
        catalog_command(5, {"/a": {}}),
        catalog_command(4, {"/b": {}}),
    )
    assert node.facts == stored(facts_command(5, {"kernel": "Linux"}))
    assert node.catalog is not None
    assert [resource[1] for resource in node.catalog.resources] == ["/a"]  # type: ignore[index]


async def test_a_catalog_that_was_checked_before_is_written_over_another_one(database: Database) -> None:
    checked = CheckedCatalogs()

    def parsed(at: int, **contents: str) -> Command:
        files = [_FILE | {"title": f"/{name}", "parameters": {"content": content}} for name, content in contents.items()]
        ends = ({"type": "File", "title": f"/{name}"} for name in (min(contents), max(contents)))
        edge = dict(zip(("source", "target"), ends, strict=True)) | {"relationship": "before"}
        payload = _CATALOG | {"producer_timestamp": f"2026-01-01T00:00:0{at}Z", "resources": files, "edges": [edge]}
        command = parse_payload("replace catalog", 9, json.dumps(payload).encode(), 0, checked)
        assert command is not None
        return command

    first = await node_after(database, parsed(1, a="1", b="1"))
    assert await node_after(database, parsed(2, a="2", c="2")) != first
    again = parsed(3, a="1", b="1")
    assert isinstance(again, ReplaceCatalog) and isinstance(again.resources, DeferredSequence)
    node = await node_after(database, again)
    assert node.catalog is not None and first.catalog is not None
    assert (node.catalog.resources, node.catalog.edges) == (first.catalog.resources, first.catalog.edges)


async def test_facts_of_the_same_time_replace_those_stored_and_inputs_do_not(database: Database) -> None:
    node = await node_after(
        database,
        facts_command(5, {"kernel": "Linux", "uptime": 7}),
        facts_command(5, {"kernel": "Darwin"}, environment=None),
        inputs_command(5, "a"),
        inputs_command(5, "b"),
    )
    assert node.facts == stored(facts_command(5, {"kernel": "Darwin"}, environment=None))
    assert node.inputs == inputs_command(5, "a")


async def test_packages_are_replaced_with_the_facts(database: Database) -> None:
    first, second = ("nginx", "1", "apt"), ("nginx", "2", "apt")
    for at, packages in enumerate([(first,), (first, second), (second,), ()]):
        command = facts_command(at, {}, packages=packages)
        assert (await node_after(database, command)).facts == stored(command)


@pytest.mark.parametrize(
    ("commands", "deactivated"),
    [
        ((DeactivateNode(NODE, 5),), 5),
        ((DeactivateNode(NODE, 5), DeactivateNode(NODE, 4)), 5),
        ((DeactivateNode(NODE, 5), DeactivateNode(NODE, 6)), 6),
        ((facts_command(5, {}), DeactivateNode(NODE, 4)), None),
        ((catalog_command(5, {}), DeactivateNode(NODE, 4)), None),
        ((report_command(5, type="plan"), DeactivateNode(NODE, 4)), None),
        ((inputs_command(5, "a"), DeactivateNode(NODE, 4)), 4),
        ((facts_command(5, {}), DeactivateNode(NODE, 5)), 5),
        ((DeactivateNode(NODE, 5), facts_command(5, {})), 5),
        ((DeactivateNode(NODE, 5), facts_command(6, {})), None),
        ((DeactivateNode(NODE, 5), catalog_command(6, {})), None),
        ((DeactivateNode(NODE, 5), inputs_command(6, "a")), None),
        ((DeactivateNode(NODE, 5), report_command(6)), None),
        ((DeactivateNode(NODE, 5), ConfigureExpiration(NODE, 6, False)), 5),
        ((facts_command(9, {}), DeactivateNode(NODE, 9), facts_command(7, {})), 9),
    ],
)
async def test_when_a_node_is_deactivated(database: Database, commands: tuple[Command, ...], deactivated: int | None) -> None:
    assert (await node_after(database, *commands)).deactivated == deactivated


@pytest.mark.parametrize(("at", "expired"), [(4, 5), (5, 5), (6, None)])
async def test_newer_data_end_the_expiry_of_a_node_even_when_others_are_newer_still(
    database: Database, at: int, expired: int | None
) -> None:
    await node_after(database, facts_command(9, {}))
    await database.write(lambda connection: connection.execute(update(nodes).values(expired=5)))
    assert (await node_after(database, facts_command(at, {"stale": True}))).expired == expired


async def test_the_newest_command_says_whether_a_node_expires(database: Database) -> None:
    commands = (ConfigureExpiration(NODE, 5, False), ConfigureExpiration(NODE, 4, True), ConfigureExpiration(NODE, 5, True))
    assert (await node_after(database, *commands)).expiration == (False, 5)
    assert (await node_after(database, ConfigureExpiration(NODE, 6, True))).expiration == (True, 6)


async def test_the_latest_report_is_the_newest_one_of_an_agent(database: Database) -> None:
    node = await node_after(database, report_command(5, "/a"), report_command(4, "/b"), report_command(6, type="plan"))
    assert len(node.reports) == 3
    assert node.latest is not None
    assert node.reports[node.latest].producer_timestamp == 5


async def test_a_report_that_comes_twice_is_stored_once(database: Database) -> None:
    report = report_command(5, "/a")
    node = await node_after(database, report, report)
    assert [len(it.events) for it in node.reports.values()] == [1]
    await DatabaseWriter(database).write(received(report, report_command(6, "/b"), report, report_command(6, "/b")))
    assert len((await database.write(stored_nodes))[NODE].reports) == 2


@contextmanager
def counted_rows() -> Iterator[dict[str, int]]:
    """The number of rows that are inserted, updated and deleted, by table."""
    rows: dict[str, int] = {}

    def count(_conn: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, executemany: bool) -> None:
        words = statement.replace("INTO ", "").replace("FROM ", "").split()
        if words[0] in ("INSERT", "UPDATE", "DELETE"):
            arrays = [value for value in parameters.values() if isinstance(value, list)] if isinstance(parameters, dict) else []
            rows[words[1]] = rows.get(words[1], 0) + (len(arrays[0]) if arrays else len(parameters) if executemany else 1)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield rows
    finally:
        event.remove(Engine, "before_cursor_execute", count)


FACTS = {f"fact{number}": {"a": number, "b": ["x", None]} for number in range(50)}
FILES: dict[str, dict[str, Any]] = {f"/file{number}": {"content": f"text {number}", "mode": "0644"} for number in range(50)}
EDGES = [(f"/file{number}", f"/file{number + 1}") for number in range(49)]
PACKAGES = tuple((f"package{number}", "1", "apt") for number in range(50))


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        (facts_command(2, FACTS, packages=PACKAGES), {"factsets": 1}),
        (facts_command(2, {**FACTS, "fact7": {"a": 8, "b": ["y", None]}}, packages=PACKAGES), {"factsets": 1, "facts": 1}),
        (facts_command(2, {**FACTS, "fact7": {"a": 7.5}}, packages=PACKAGES), {"factsets": 1, "facts": 1, "fact_paths": 1}),
        (facts_command(2, {**FACTS, "new": True}, packages=PACKAGES[1:]), {"factsets": 1, "facts": 1, "fact_paths": 1, "node_packages": 1}),
        (facts_command(2, FACTS, packages=PACKAGES, environment="dev"), {"factsets": 1, "environments": 1}),
        (facts_command(1, {"stale": True}), {"facts": 51, "factsets": 1, "fact_paths": 1, "node_packages": 50}),
        (facts_command(0, {"stale": True}), {}),
        (catalog_command(2, FILES, edges=EDGES), {"catalogs": 1}),
        (catalog_command(2, dict(reversed(FILES.items())), edges=EDGES[::-1]), {"catalogs": 1}),
        (catalog_command(2, {**FILES, "/file7": {"mode": "0600"}}, edges=EDGES), {"catalogs": 1, "resources": 1, "parameter_sets": 1}),
        (catalog_command(2, FILES, edges=EDGES[1:]), {"catalogs": 1, "edges": 1}),
        (
            catalog_command(2, {**FILES, "/new": {}}, edges=[*EDGES, ("/file0", "/new")]),
            {"catalogs": 1, "resources": 1, "parameter_sets": 1, "edges": 1},
        ),
        (report_command(1, "/file0"), {}),
        (report_command(2), {"reports": 1, "nodes": 1}),
        (report_command(2, *FILES), {"reports": 1, "nodes": 1, "events": 50}),
        (DeactivateNode(NODE, 0), {}),
        (ConfigureExpiration(NODE, 1, True), {"nodes": 1}),
    ],
)
async def test_only_what_differs_is_written(database: Database, command: Command, rows: dict[str, int]) -> None:
    writer = DatabaseWriter(database)
    first = (facts_command(1, FACTS, packages=PACKAGES), catalog_command(1, FILES, edges=EDGES), report_command(1, "/file0"))
    await writer.write(received(*first))
    with counted_rows() as written:
        await writer.write(received(command))
    assert written == rows


async def test_resources_of_two_nodes_share_their_parameters(database: Database) -> None:
    writer = DatabaseWriter(database)
    await writer.write(received(catalog_command(1, FILES)))
    with counted_rows() as written:
        await writer.write(received(catalog_command(1, FILES, node="web2.example.com")))
    assert written == {"nodes": 1, "catalogs": 1, "resources": 50}


@pytest.mark.slow
async def test_catalogs_and_facts_may_have_more_rows_than_one_statement_looks_up(database: Database) -> None:
    files: dict[str, dict[str, Any]] = {f"/file{number}": {"content": str(number)} for number in range(1200)}
    packages = tuple(sorted((f"package{number}", "1", "apt") for number in range(1200)))
    node = await node_after(database, catalog_command(1, files), facts_command(1, {"many": list(range(1200))}, packages=packages))
    assert node.catalog is not None
    assert node.facts is not None
    assert (len(node.catalog.resources), len(node.facts.packages)) == (1200, 1200)


async def test_of_a_batch_all_commands_are_carried_out_or_none(database: Database) -> None:
    writer = DatabaseWriter(database)
    faulty = facts_command(1, {"fact": object()}, node="web2.example.com")  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        await writer.write(received(facts_command(1, FACTS), report_command(1), faulty, catalog_command(1, FILES)))
    assert await database.write(stored_nodes) == {}
    await writer.write(received(facts_command(1, FACTS)))
    assert set(await database.write(stored_nodes)) == {NODE}


async def test_a_name_that_was_deleted_as_unused_is_created_again(database: Database) -> None:
    writer = DatabaseWriter(database)
    await writer.write(received(facts_command(1, FACTS)))
    await database.write(lambda connection: connection.execute(update(factsets).values(environment_id=None)))
    await database.write(lambda connection: connection.execute(delete(environments)))
    await writer.write(received(facts_command(2, FACTS)))
    assert (await database.write(stored_nodes))[NODE].facts == stored(facts_command(2, FACTS))


async def test_a_batch_that_fails_teaches_the_writer_no_names(database: Database) -> None:
    writer = DatabaseWriter(database)
    faulty = facts_command(1, {"fact": object()}, node="web2.example.com")  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        await writer.write(received(report_command(1, environment="dev"), faulty))
    await writer.write(received(report_command(1, environment="other"), report_command(2, environment="dev")))
    assert {it.environment for it in (await database.write(stored_nodes))[NODE].reports.values()} == {"other", "dev"}


@pytest.mark.slow
async def test_two_writers_at_once_never_wait_for_each_other_forever(database_url: str) -> None:
    """Each has the same nodes and shared rows in another order; the newest commands win, whoever is faster."""
    count, databases = 6, [Database.open(database_url) for _ in range(2)]
    nodes_of_batch = [f"node{number}.example.com" for number in range(count)]
    model = StoreModel()

    def batch(turn: int) -> list[Command]:
        commands: list[Command] = []
        for number, node in enumerate(nodes_of_batch):
            files: dict[str, dict[str, Any]] = {f"/{turn}/{number % 3}/{index}": {"turn": turn} for index in range(5)}
            commands += (
                catalog_command(turn, files, node=node, environment=f"e{turn}"),
                facts_command(turn, {f"fact{turn}": {str(number % 2): turn}}, node=node, packages=((f"p{turn}", "1", "apt"),)),
                report_command(turn, "/a", node=node, environment=f"f{turn}"),
            )
        return commands

    async def run(database: Database, turns: range) -> None:
        writer = DatabaseWriter(database)
        for turn in turns:
            commands = batch(turn)
            await writer.write(received(*(commands[::-1] if turn % 2 else commands)))

    turns = 12
    try:
        await asyncio.wait_for(
            asyncio.gather(*(run(database, range(1, turns + 1)) for database in databases)), 60
        )  # the same commands twice, at the same time
        await asyncio.wait_for(
            asyncio.gather(*(run(database, range(turns + 1 + start, 2 * turns, 2)) for start, database in enumerate(databases))), 60
        )
        for turn in range(1, 2 * turns):
            for command in batch(turn):
                model.carry_out(command)
        assert await databases[0].write(stored_nodes) == in_order(model)
    finally:
        for database in databases:
            await database.close()


async def test_a_server_that_goes_away_in_the_middle_is_no_fault_of_the_command(postgresql_url: str) -> None:
    database = Database.open(postgresql_url)
    writer = DatabaseWriter(database)
    try:
        await writer.write(received(facts_command(1, FACTS)))

        def end_the_session(_conn: Any, cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("UPDATE factsets"):
                cursor.connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")

        event.listen(Engine, "before_cursor_execute", end_the_session)
        try:
            with pytest.raises(DatabaseUnavailable):
                await writer.write(received(facts_command(2, FACTS)))
        finally:
            event.remove(Engine, "before_cursor_execute", end_the_session)
        await writer.write(received(facts_command(2, FACTS)))
        assert (await database.write(stored_nodes))[NODE].facts == stored(facts_command(2, FACTS))
    finally:
        await database.close()
