"""What one command may cost: large values beside many names, and keys and paths that are too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine, Text, event, select, text

from store.commands.commands import MAX_KEY, Command, Json, PayloadRejected, Unfinished
from store.commands.hashes import factset_hash
from store.commands.payloads import MAX_BYTES, MAX_FACTS, MAX_PACKAGES, VERSIONS, parse_payload
from store.commands.report_payloads import MAX_EVENTS
from store.database.columns import JsonColumn, json_text
from store.database.engine import Database
from store.database.tables import facts, factsets, metadata, node_packages
from store.writing.facts import MAX_TOGETHER
from store.writing.large_catalogs import SLICE_BYTES
from store.writing.leaves import MAX_PATHS, leaves
from store.writing.shared_rows import MAX_NEW
from store.writing.writer import DatabaseWriter
from tests.support.store_commands import catalog_command, facts_command, inputs_command, received, report_command

LARGE = "a" * 15_000_000
LONG = "é" * (MAX_KEY + 1)


@pytest.mark.slow
async def test_PDB_12_many_names_come_and_go_beside_a_large_fact(database: Database) -> None:
    writer = DatabaseWriter(database)
    for at, names in enumerate(("abcd", "aezf")):
        values: Mapping[str, Json] = {"am": LARGE} | {f"{name}{number}": number for name in names for number in range(1000)}
        await writer.write(received(facts_command(at, values)))
    async with database.reading() as connection:
        assert set(await connection.scalars(select(facts.c.name))) == set(values)


def test_PDB_12_a_table_that_sqlite_orders_by_its_key_has_no_texts() -> None:
    for table in metadata.tables.values():
        if not table.dialect_options["sqlite"]["with_rowid"]:
            assert not [column.name for column in table.columns if isinstance(column.type, Text | JsonColumn)], table.name


def many_facts(at: int, letter: str, packages: str) -> Command:
    inventory = tuple((f"package-{number:05}", packages, "apt") for number in range(MAX_PACKAGES))
    return facts_command(at, {f"{letter}{number}": letter * 1200 for number in range(MAX_FACTS)}, packages=inventory)


def many_events(at: int) -> Command:
    report = report_command(at, *map(str, range(MAX_EVENTS)))
    return replace(report, events=[replace(event, new_value={"n": ["n" * 150]}, old_value="o" * 150) for event in report.events])


def large_catalog(at: int, content: Json, titles: int) -> Command:
    catalog = catalog_command(at, {str(number): {"content": content, "number": number} for number in range(titles)})
    return replace(catalog, size=titles * len(json_text(content)))


HOLDING: dict[str, Callable[[], Sequence[Command]]] = {
    "facts and packages": lambda: (many_facts(1, "a", "1"), many_facts(2, "b", "2")),
    "facts": lambda: (facts_command(1, {f"f{number}": "a" * 1500 for number in range(MAX_FACTS)}),),
    "events": lambda: (many_events(1),),
    "large resources": lambda: (large_catalog(1, "x" * (SLICE_BYTES - 100), 4), large_catalog(2, [[]] * (SLICE_BYTES // 4), 4)),
    "a catalog of 120 MB": lambda: (large_catalog(1, ["x" * 40_000], 3000),),
    "catalog inputs": lambda: (inputs_command(1, *(f"{number:060}" for number in range(MAX_BYTES["replace catalog inputs"] // 70))),),
}


MOST_ROWS, MOST_BYTES = 70_000, 40 * 2**20
"""Rows and bytes that one transaction may change: less than a second's, for which all other commands wait."""


@pytest.mark.slow
@pytest.mark.parametrize("what", HOLDING)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # PostgreSQL has several writers
async def test_PDB_12_no_transaction_changes_more_than_can_be_written_in_a_second(database: Database, what: str) -> None:
    rows, sizes = [0], [0]

    def begin(_: object) -> None:
        rows.append(0)
        sizes.append(0)

    def count(_connection: object, cursor: object, statement: str, parameters: Sequence[object], *_: object) -> None:
        rows[-1] += max(getattr(cursor, "rowcount", 0), 0)
        if statement.startswith("INSERT"):
            sizes[-1] += len(str(parameters))

    event.listen(Engine, "begin", begin)
    event.listen(Engine, "after_cursor_execute", count)
    writer = DatabaseWriter(database)
    try:
        for command in HOLDING[what]():
            batch, is_done = received(command), False
            while not is_done:
                try:
                    await writer.write(batch)
                    is_done = True
                except Unfinished:
                    pass
    finally:
        event.remove(Engine, "begin", begin)
        event.remove(Engine, "after_cursor_execute", count)
    assert max(rows) < MOST_ROWS and max(sizes) < MOST_BYTES


async def test_PDB_12_a_resource_that_is_too_large_is_named_and_nothing_is_stored(database: Database) -> None:
    catalog = large_catalog(1, "x" * SLICE_BYTES, 1)
    writer = DatabaseWriter(database)
    if database.dialect == "sqlite":
        with pytest.raises(
            PayloadRejected, match=r"the resource File\[0\] has 8388653 bytes of parameters and tags; at most 8388608 are allowed"
        ):
            await writer.write(received(catalog))
        async with database.reading() as connection:
            assert (await connection.execute(text("SELECT certname FROM nodes"))).all() == []


@pytest.mark.parametrize("command", MAX_BYTES)
def test_PDB_12_a_payload_that_is_too_large_for_a_transaction_names_the_limit(command: str) -> None:
    with pytest.raises(PayloadRejected, match=f"at most {MAX_BYTES[command]} are allowed for '{command}'"):
        parse_payload(command, max(VERSIONS[command]), b" " * (MAX_BYTES[command] + 1), 0)


@pytest.mark.slow
async def test_PDB_12_many_facts_are_written_before_many_packages_and_each_state_has_its_hash(database: Database) -> None:
    old = facts_command(1, {"a": 1}, packages=(("nginx", "1", "apt"),))
    new = facts_command(
        2, {f"f{number}": 1 for number in range(MAX_NEW)}, packages=tuple((f"p{n:05}", "1", "apt") for n in range(MAX_TOGETHER))
    )
    writer = DatabaseWriter(database)
    states: list[tuple[str, int, int]] = []
    command, is_done = old, False
    while not is_done:
        try:
            await writer.write(received(command))
        except Unfinished:
            pass
        else:
            command, is_done = new, command == new
        async with database.reading() as connection:
            digest = await connection.scalar(select(factsets.c.hash))
            counts = [len((await connection.execute(select(column))).all()) for column in (facts.c.name, node_packages.c.package_id)]
            states.append((digest, *counts))
    shapes = [(old.values, old.packages), (new.values, old.packages), (new.values, new.packages)]
    if database.dialect != "sqlite":  # PostgreSQL writes both at once
        del shapes[1]
    expected = [(factset_hash(old.certname, old.environment, values, packages), len(values), len(packages)) for values, packages in shapes]
    assert list(dict.fromkeys(states)) == expected


COMMANDS: dict[str, Command] = {
    "facts have a name": facts_command(1, {LONG: 1}),
    "environments have a name": facts_command(1, {}, environment=LONG),
    "packages have a name": facts_command(1, {}, packages=((LONG, "1", "apt"),)),
    "packages have a version": facts_command(1, {}, packages=(("nginx", LONG, "apt"),)),
    "packages have a provider": facts_command(1, {}, packages=(("nginx", "1", LONG),)),
    "fact paths have a path": facts_command(1, {"x": {LONG: 1}}),
    "resources have a title": catalog_command(1, {LONG: {}}),
    "events have a resource title": report_command(1, LONG),
}


@pytest.mark.parametrize("what", COMMANDS)
async def test_PDB_12_a_key_that_is_too_long_is_named_and_nothing_is_stored(database: Database, what: str) -> None:
    said = re.compile(r"(\w+( \w+)* have a \w+( \w+)*) of \d+ characters; at most 16384 are allowed")
    with pytest.raises(PayloadRejected) as refused:
        await DatabaseWriter(database).write(received(COMMANDS[what]))
    match = said.fullmatch(str(refused.value))
    assert match and (match[1] == what or what == "facts have a name")
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT certname FROM nodes"))).all() == []


async def test_PDB_12_a_long_key_above_many_leaves_is_refused_before_its_paths_are_made(database: Database) -> None:
    values: Json = {"k" * 1000: {str(number): number for number in range(MAX_PATHS // 1100 + 1)}}
    with pytest.raises(PayloadRejected, match=f"more than {MAX_PATHS} characters"):
        await DatabaseWriter(database).write(received(facts_command(1, {"x": values})))
    halves: dict[str, Json] = {name: {"k" * 1000: {str(number): number for number in range(MAX_PATHS // 2200 + 1)}} for name in "xy"}
    with pytest.raises(PayloadRejected, match=f"more than {MAX_PATHS} characters"):
        await DatabaseWriter(database).write(received(facts_command(1, halves)))


def test_what_removes_unused_paths_reads_all_of_them() -> None:
    value: Json = {"k" * 1000: list(range(MAX_PATHS // 1100 + 1))}
    assert sum(1 for _ in leaves("x", value)) == MAX_PATHS // 1100 + 1
