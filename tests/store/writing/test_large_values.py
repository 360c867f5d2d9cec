"""What one command may cost: large values beside many names, and keys and paths that are too long."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from sqlalchemy import Text, select, text

from store.commands.commands import MAX_KEY, Command, Json, PayloadRejected
from store.database.columns import JsonColumn
from store.database.engine import Database
from store.database.tables import facts, metadata
from store.writing.leaves import MAX_PATHS, leaves
from store.writing.writer import DatabaseWriter
from tests.support.store_commands import catalog_command, facts_command, received, report_command

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
