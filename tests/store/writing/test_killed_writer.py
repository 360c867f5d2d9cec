"""A process that is killed while it writes, and a disk that is full: each batch is there as a whole, or not at all."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from store.commands.commands import Command, DatabaseUnavailable
from store.database.engine import Database
from store.writing.writer import DatabaseWriter
from tests.support.postgresql import PostgresqlServer
from tests.support.store_commands import NODE, catalog_command, facts_command, received, report_command
from tests.support.store_model import ModelNode, stored_nodes

ROOT = Path(__file__).parents[3]


def batch(turn: int) -> list[Command]:
    """Facts, a catalog and a report of one moment."""
    files = {f"/{turn % 3}/{number}": {"turn": turn} for number in range(30)}
    edges = [(f"/{turn % 3}/0", f"/{turn % 3}/{number}") for number in range(1, 30)]
    facts = {f"fact{number}": {str(turn): turn} for number in range(30)}
    return [facts_command(turn, facts), catalog_command(turn, files, edges=edges), report_command(turn, *files)]


def turn_of(node: ModelNode) -> int:
    """The number of the last batch, all of which is there."""
    assert node.facts is not None
    assert node.catalog is not None
    turns = {node.facts.producer_timestamp, node.catalog.producer_timestamp, max(it.producer_timestamp for it in node.reports.values())}
    assert len(turns) == 1
    assert (len(node.facts.values), len(node.catalog.resources), len(node.catalog.edges)) == (30, 30, 29)
    assert {len(report.events) for report in node.reports.values()} == {30}
    return turns.pop()


async def write_forever(url: str) -> None:
    """Write one batch after the other, and say so."""
    database = Database.open(url)
    writer = DatabaseWriter(database)
    known = (await database.write(stored_nodes)).get(NODE)
    turn = 0 if known is None else turn_of(known)
    while True:
        turn += 1
        await writer.write(received(*batch(turn)))
        print(turn, flush=True)


async def checked_turn(url: str) -> int:
    """The number of the last batch that is in the database, which is whole."""
    database = Database.open(url)
    try:
        if database.dialect == "sqlite":
            assert await database.write(lambda connection: connection.scalar(text("PRAGMA integrity_check"))) == "ok"
            assert await database.write(lambda connection: connection.execute(text("PRAGMA foreign_key_check")).all()) == []
        return turn_of((await database.write(stored_nodes))[NODE])
    finally:
        await database.close()


SCRIPT = """
import asyncio, sys
from tests.store.writing.test_killed_writer import write_forever
asyncio.run(write_forever(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_killed_process_leaves_whole_batches(database_url: str) -> None:
    for _ in range(2):
        command = [sys.executable, "-c", SCRIPT, database_url]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            printed = "".join(process.stdout.readline() for _ in range(random.randint(1, 20)))
        finally:
            process.kill()
            output, _ = process.communicate()
        last = int((printed + output).split()[-1])
        assert asyncio.run(checked_turn(database_url)) in (last, last + 1)


async def test_a_full_disk_is_no_fault_of_the_command(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    writer = DatabaseWriter(database)
    try:
        await writer.write(received(*batch(1)))
        pages = await database.write(lambda connection: connection.scalar(text("PRAGMA page_count")))
        await database.write(lambda connection: connection.execute(text(f"PRAGMA max_page_count = {pages}")).all())
        with pytest.raises(DatabaseUnavailable, match="full"):
            for turn in range(2, 50):
                await writer.write(received(*batch(turn)))
        before = turn_of((await database.write(stored_nodes))[NODE])
        await database.write(lambda connection: connection.execute(text("PRAGMA max_page_count = 100000")).all())
        await writer.write(received(*batch(before + 1)))
        assert turn_of((await database.write(stored_nodes))[NODE]) == before + 1
    finally:
        await database.close()


@pytest.mark.parametrize("state", ["53100", "53200", "57P02", "58030", "XX001"])
async def test_what_fails_inside_the_server_is_no_fault_of_the_command(
    postgresql: PostgresqlServer, postgresql_url: str, state: str
) -> None:
    """A full disk, no memory, a crash, an error of its disk, a damaged page: in the midst of a transaction."""
    database = Database.open(postgresql_url)
    writer = DatabaseWriter(database)
    raising = f"BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '{state}'; END"
    postgresql.run_sql(f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ {raising} $$", "store")
    try:
        await writer.write(received(*batch(1)))
        postgresql.run_sql("CREATE TRIGGER fail BEFORE INSERT ON reports EXECUTE FUNCTION fail()", "store")
        with pytest.raises(DatabaseUnavailable, match="no space left"):
            await writer.write(received(*batch(2)))
        assert turn_of((await database.write(stored_nodes))[NODE]) == 1
        postgresql.run_sql("DROP TRIGGER fail ON reports", "store")
        await writer.write(received(*batch(2)))
        assert turn_of((await database.write(stored_nodes))[NODE]) == 2
    finally:
        postgresql.run_sql("DROP FUNCTION fail() CASCADE", "store")
        await database.close()


async def test_a_file_that_is_no_database_is_no_fault_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"damaged" * 1000)
    database = Database.open(f"sqlite:///{tmp_path / 'store.sqlite'}")
    try:
        with pytest.raises(DatabaseUnavailable, match="not a database"):
            await DatabaseWriter(database).write(received(*batch(1)))

    finally:
        await database.close()
