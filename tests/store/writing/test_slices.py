"""Commands that SQLite writes in slices: others write in between, and no reader sees a part of a catalog."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import Engine, event, select

from store.commands.commands import MAX_KEY, Command, PayloadRejected, ReplaceCatalog, ReplaceFacts, Unfinished
from store.database.engine import Database
from store.database.tables import NO_CERTNAME, nodes
from store.queries.questions import Question
from store.queries.service import QueryService
from store.writing.catalogs import MAX_CHANGES, MAX_ROWS
from store.writing.shared_rows import MAX_NEW
from store.writing.writer import DatabaseWriter
from tests.support.choices import in_gate
from tests.support.store_commands import NODE, catalog_command, facts_command, received, report_command
from tests.support.store_model import StoreModel, in_order, stored_nodes

MOST_ROWS = 30_000
"""Rows that one transaction may write or remove; a resource is one, as is an edge, and its parameters are another."""

MANY = MAX_CHANGES + 1


def catalog(at: int, first: int, resources: int, *, edges: int | None = None) -> ReplaceCatalog:
    titles = [f"/{number}" for number in range(first, first + resources)]
    pairs = itertools.islice(itertools.product(titles, titles), resources if edges is None else edges)
    return catalog_command(at, {title: {"mode": title} for title in titles}, edges=list(pairs))


async def nothing() -> None:
    """Do nothing between two slices."""


async def write(writer: DatabaseWriter, command: Command, between: Callable[[], Awaitable[None]] = nothing) -> int:
    """Carry out a command as the queue does, and return how often it was unfinished."""
    batch = received(command)
    for times in itertools.count():
        try:
            await writer.write(batch)
        except Unfinished:
            await between()
        else:
            return times
    raise AssertionError


async def shown(database: Database, entity: str) -> list[object]:
    answer = await QueryService(database).answer(Question(entity, None))
    return [row async for rows in answer.batches for row in rows]


CHANGES: dict[str, Callable[[], tuple[ReplaceCatalog, ReplaceCatalog]]] = {
    "all resources are new": lambda: (catalog(1, 0, 1), catalog(2, MANY, MANY)),
    "all resources change their names": lambda: (catalog(1, 0, MANY), catalog(2, MANY, MANY)),
    "all resources go": lambda: (catalog(1, 0, MANY), catalog(2, MANY, 1)),
    "one resource of very many changes": lambda: (catalog(1, 0, MAX_ROWS + 1), catalog(2, 1, MAX_ROWS + 1)),
    "edges of few resources": lambda: (catalog(1, 0, 100, edges=0), catalog(2, 1, 100, edges=MANY)),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", in_gate(CHANGES, set(CHANGES) - {"one resource of very many changes"}))
async def test_PDB_12_a_large_catalog_replaces_the_old_one_at_once_and_others_write_in_between(database: Database, what: str) -> None:
    writer, model, versions, others = DatabaseWriter(database), StoreModel(), [], itertools.count(1)
    before, after = CHANGES[what]()
    rows: list[int] = []

    async def look_and_write_another() -> None:
        if database.dialect == "sqlite" and next(others) % 8 == 1:  # seldom, for it takes longer than the slice
            assert {row["certname"] for row in await shown(database, "nodes")} <= {NODE, "other"}  # type: ignore[index]
            titles = {row["title"] for row in await shown(database, "resources")}  # type: ignore[index]
            versions.append([command.version for command in (before, after) if titles == {entry.title for entry in command.resources}])
            assert len(await shown(database, "edges")) == len((before if versions[-1] == ["1"] else after).edges)
        other = facts_command(next(others), {"at": next(others)}, node="other")
        model.carry_out(other)
        await writer.write(received(other))

    def begin(_: object) -> None:
        rows.append(0)

    def count(_connection: object, cursor: object, *_rest: object) -> None:
        rows[-1] += max(getattr(cursor, "rowcount", 0), 0)

    for command in (facts_command(1, {"kernel": "Linux"}), report_command(1, "/a"), before):
        model.carry_out(command)
        await write(writer, command)
    event.listen(Engine, "begin", begin)
    event.listen(Engine, "after_cursor_execute", count)
    try:
        unfinished = await write(writer, after, look_and_write_another)
    finally:
        event.remove(Engine, "begin", begin)
        event.remove(Engine, "after_cursor_execute", count)
    model.carry_out(after)
    assert await database.write(stored_nodes) == in_order(model)
    assert (unfinished > 2) == (database.dialect == "sqlite")
    if database.dialect == "sqlite":
        assert max(rows) < MOST_ROWS
        assert set(map(tuple, versions)) <= {("1",), ("2",)} and versions == sorted(versions) and ["1"] in versions


@pytest.mark.slow
@pytest.mark.parametrize(
    "facts",
    [
        facts_command(1, {"disks": {str(number): number for number in range(MAX_NEW + 1)}}, node="many"),
        facts_command(1, {}, node="many", packages=tuple((f"p{number:05}", "1", "apt") for number in range(MAX_NEW + 1))),
    ],
    ids=["paths", "packages"],
)
async def test_PDB_12_others_write_while_rows_that_nodes_share_are_inserted(database: Database, facts: ReplaceFacts) -> None:
    writer, model, other = DatabaseWriter(database), StoreModel(), facts_command(1, {"kernel": "Linux"})

    async def look_and_write_another() -> None:
        assert not {row["certname"] for row in await shown(database, "nodes")} & {"many"}  # type: ignore[index]
        await writer.write(received(other))

    unfinished = await write(writer, facts, look_and_write_another)
    assert (unfinished > 1) == (database.dialect == "sqlite")
    await writer.write(received(other))
    for command in (other, facts):
        model.carry_out(command)
    assert await database.write(stored_nodes) == in_order(model)


async def test_PDB_12_a_large_catalog_is_given_alone(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    writer = DatabaseWriter(database)
    batch = received(facts_command(1, {}), catalog(1, 0, MANY))
    for _ in range(2):
        with pytest.raises(Unfinished):
            await writer.write(batch)
    assert await database.write(stored_nodes) == {}
    await database.close()


@pytest.mark.slow
async def test_PDB_12_a_large_catalog_begins_anew_after_a_restart(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    for _ in range(3):
        writer = DatabaseWriter(database)
        for _ in range(4):
            with pytest.raises(Unfinished):
                await writer.write(received(catalog(1, 0, MANY)))
        assert await shown(database, "nodes") == await shown(database, "resources") == []
    await write(DatabaseWriter(database), catalog(2, 1, MANY))
    model = StoreModel()
    model.carry_out(catalog(2, 1, MANY))
    assert await database.write(stored_nodes) == in_order(model)
    async with database.reading() as connection:
        assert (await connection.execute(select(nodes.c.id).where(nodes.c.certname == NO_CERTNAME))).all() == []
    await database.close()


async def test_PDB_12_a_newer_catalog_that_came_in_between_stays(sqlite_url: str) -> None:
    database, newer, model = Database.open(sqlite_url), catalog(5, 7, 3), StoreModel()

    async def write_newer() -> None:
        await DatabaseWriter(database).write(received(newer))

    await write(DatabaseWriter(database), catalog(2, 0, MANY), write_newer)
    model.carry_out(newer)
    assert await database.write(stored_nodes) == in_order(model)
    await database.close()


async def test_PDB_12_a_large_catalog_with_too_long_a_title_is_refused_before_anything_is_written(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    writer = DatabaseWriter(database)
    titles = [str(number) for number in range(MANY)] + ["t" * (MAX_KEY + 1)]
    with pytest.raises(PayloadRejected, match="resources have a title of 16385 characters"):
        await writer.write(received(catalog_command(1, {title: {} for title in titles})))
    assert await database.write(stored_nodes) == {}
    await database.close()
