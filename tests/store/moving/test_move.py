"""All that a store keeps, moved from one kind of database to another."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Table, delete, func, insert, select, text, update

from shared.database.postgresql import DatabaseLimits
from shared.database.schema import UnknownSchema
from shared.errors import ConfigError, Conflict, PuppetError, Unavailable
from shared.failpoints import VARIABLE
from store.commands.commands import Command, DatabaseUnavailable
from store.database.engine import Database
from store.database.json_values import sort_key_of
from store.database.tables import fact_paths, facts, metadata, nodes, reports
from store.database.writers import parse_address
from store.moving.move import MoveLimits, MoveResult, move_database
from store.writing.writer import DatabaseWriter
from tests.support.postgresql import PostgresqlServer
from tests.support.recorded_store import recorded_commands
from tests.support.store_commands import facts_command, received, report_command
from tests.support.store_model import stored_nodes

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SMALL = MoveLimits(rows=40, wait=0.3)

# What jsonb writes otherwise than orjson.
UNUSUAL = {
    "numbers": [1e16, -0.0, 1.5e300, 1e-7, 7.0, 7, 2**80, -1.5e17, 12345678901234567890],
    "texts": ["1e16", 'a "-0.0" \\', "ü\u2028\x7f", "\x01\b", ""],
    "nothing": None,
    "nested": {"b": [], "a": {"": {}}, "aa": [None, True, {"z": 1e22}]},
}


def move(source: str, target: str, *, restart: bool = False, limits: MoveLimits = SMALL) -> MoveResult:
    return move_database(parse_address(source), parse_address(target), lambda *_: None, restart=restart, limits=limits)


async def with_database(url: str, work: Any) -> Any:
    database = Database.open(url, DatabaseLimits(lock_timeout=0.1))
    try:
        return await database.write(work)
    finally:
        await database.close()


async def start_store(url: str, *commands: Command) -> None:
    """Do what a store does at its start, and carry out commands."""
    database = Database.open(url, DatabaseLimits(lock_timeout=0.1))
    try:
        await database.migrate()
        await DatabaseWriter(database).write(received(*commands))
    finally:
        await database.close()


def fill(url: str, *more: Command) -> None:
    """Write the recorded data set, and further commands."""

    async def write() -> None:
        database = Database.open(url)
        writer = DatabaseWriter(database)
        await writer.write(recorded_commands())
        await writer.write(received(*more))
        await database.close()

    asyncio.run(write())


def contents(url: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What a database holds: as nodes, and as the keys of all rows."""

    def read(connection: Connection) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        keys = {table.name: sorted(tuple(row) for row in connection.execute(select(*table.primary_key.columns))) for table in tables()}
        return stored_nodes(connection), keys

    result: tuple[dict[str, Any], dict[str, list[Any]]] = asyncio.run(with_database(url, read))
    return result


def tables() -> list[Table]:
    return list(metadata.sorted_tables)


def test_a_target_holds_what_its_source_held(addresses: tuple[str, str]) -> None:
    source, target = addresses
    fill(source)
    before, keys = contents(source)
    result = move(source, target)
    assert contents(source) == (before, keys)
    moved, moved_keys = contents(target)
    assert moved_keys == keys
    assert moved == before and len(before) > 10
    assert result.copied == sum(digest.rows for digest in result.tables.values()) == sum(map(len, keys.values()))
    assert result.tables.keys() == metadata.tables.keys() and result.is_resumed is False


def test_a_store_goes_on_with_a_target(addresses: tuple[str, str]) -> None:
    source, target = addresses
    fill(source)
    move(source, target)
    asyncio.run(start_store(target, facts_command(10, {"new": {"deep": 1}}, node="new.example.com", environment="fresh")))
    asyncio.run(start_store(target, report_command(11, "a", "b", node="new.example.com")))
    assert contents(target)[0]["new.example.com"].latest is not None
    assert len(contents(target)[0]) == len(contents(source)[0]) + 1


def test_values_are_the_same_in_both_databases(addresses: tuple[str, str]) -> None:
    """A number of 1e16 or more comes out of jsonb with all its digits, as an integer, and -0.0 as 0.0."""
    source, target = addresses
    fill(source, facts_command(5, UNUSUAL, node="odd.example.com"))
    move(source, target)

    def read(connection: Connection) -> dict[str, bytes]:
        rows = connection.execute(select(facts.c.name, facts.c.value))
        return {row.name: sort_key_of(row.value) for row in rows if row.name in UNUSUAL}

    expected = {name: sort_key_of(value) for name, value in UNUSUAL.items()}
    assert asyncio.run(with_database(target, read)) == asyncio.run(with_database(source, read)) == expected


def test_a_database_without_rows_is_moved(addresses: tuple[str, str]) -> None:
    source, target = addresses
    assert move(source, target).copied == 0
    asyncio.run(start_store(target, facts_command(1, {"a": 1})))
    assert len(contents(target)[0]) == 1


def test_a_target_on_which_a_store_has_started_may_be_empty(addresses: tuple[str, str]) -> None:
    source, target = addresses
    asyncio.run(start_store(target))
    fill(source)
    move(source, target)
    assert contents(target)[1] == contents(source)[1]


def interrupted(source: str, target: str, monkeypatch: pytest.MonkeyPatch, *, batches: int = 1, point: str = "move.committed") -> None:
    """Begin a move that fails after some batches."""
    for _ in range(batches):
        monkeypatch.setenv(VARIABLE, f"{point}=error")
        with pytest.raises(PuppetError, match="failpoint"):
            move(source, target)
        monkeypatch.delenv(VARIABLE)


@pytest.mark.parametrize("point", ["move.written", "move.committed"])
def test_a_move_that_was_interrupted_goes_on(addresses: tuple[str, str], monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    source, target = addresses
    fill(source)
    interrupted(source, target, monkeypatch, batches=5, point=point)
    result = move(source, target)
    total = sum(digest.rows for digest in result.tables.values())
    assert result.is_resumed is True
    assert result.copied < total if point == "move.committed" else result.copied == total
    assert contents(target)[1] == contents(source)[1]


def test_no_store_starts_on_a_part(addresses: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = addresses
    fill(source)
    interrupted(source, target, monkeypatch)
    with pytest.raises(UnknownSchema, match="holds only a part of the data of 'puppet db move'"):
        asyncio.run(start_store(target))
    with pytest.raises(Conflict, match="is itself the target of a move that has not ended"):
        move(target, source)
    move(source, target)
    asyncio.run(start_store(target))


def test_a_source_that_has_changed_since_is_moved_from_the_beginning(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = files
    fill(source)
    interrupted(source, target, monkeypatch, batches=5)
    asyncio.run(start_store(source, facts_command(10, {"new": 1}, node="new.example.com")))
    with pytest.raises(Conflict, match="which a store has changed since") as caught:
        move(source, target)
    assert "--restart" in caught.value.hint
    result = move(source, target, restart=True)
    assert (result.is_resumed, contents(target)[1]) == (False, contents(source)[1])


def test_a_move_that_has_ended_is_found_so_until_a_store_starts(files: tuple[str, str]) -> None:
    source, target = files
    fill(source)
    first = move(source, target)
    again = move(source, target)
    assert (again.is_resumed, again.copied, again.tables) == (True, 0, first.tables)
    asyncio.run(start_store(target))
    for restart in (False, True):
        with pytest.raises(Conflict, match="holds data already, or tables of something else"):
            move(source, target, restart=restart)


def test_what_was_moved_can_be_moved_on(files: tuple[str, str], tmp_path: Path) -> None:
    source, target = files
    fill(source)
    move(source, target)
    third = f"sqlite:///{tmp_path / 'third.sqlite'}"
    assert move(target, third).is_resumed is False
    assert contents(third)[1] == contents(source)[1]


def test_data_of_another_site_stay(files: tuple[str, str]) -> None:
    source, target = files
    fill(source)
    asyncio.run(start_store(target, facts_command(1, {"a": 1}, node="theirs.example.com")))
    for restart in (False, True):
        with pytest.raises(Conflict, match="holds data already") as caught:
            move(source, target, restart=restart)
        assert "Name an empty database" in caught.value.hint
    assert contents(target)[0].keys() == {"theirs.example.com"}


def test_a_part_of_another_database_stays_unless_it_is_thrown_away(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, target = files
    fill(source)
    interrupted(source, target, monkeypatch)
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    asyncio.run(start_store(other, facts_command(1, {"a": 1}, node="theirs.example.com")))
    with pytest.raises(Conflict, match=r"holds the data of a move from .*, another database"):
        move(other, target)
    move(other, target, restart=True)
    assert contents(target)[0].keys() == {"theirs.example.com"}


def test_neither_database_may_be_in_use(addresses: tuple[str, str]) -> None:
    async def try_all() -> None:
        for used in addresses:
            database = Database.open(used)
            await database.migrate()
            with pytest.raises(Unavailable, match="is in use: a store runs on it, or another program has it open"):
                await asyncio.to_thread(move, *addresses)
            await database.close()

    asyncio.run(try_all())


def test_stores_wait_as_long_as_a_move_runs(addresses: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = addresses
    fill(source)
    refusals = []

    def try_to_start(label: str, *_: int) -> None:
        if label == "copied" and not refusals:
            for address in addresses:
                with pytest.raises(DatabaseUnavailable) as caught:
                    asyncio.run(start_store(address))
                refusals.append(caught.value)

    move_database(parse_address(source), parse_address(target), try_to_start)
    assert len(refusals) == 2


def change_paths(connection: Connection) -> None:
    connection.execute(update(fact_paths).where(fact_paths.c.depth == 0).values(depth=5))


def add_a_node(connection: Connection) -> None:
    connection.execute(insert(nodes).values(certname="late.example.com"))


def remove_a_report(connection: Connection) -> None:
    connection.execute(delete(reports).where(reports.c.id == select(func.max(reports.c.id)).scalar_subquery()))


UNEQUAL = {
    "changed in the source": (True, change_paths, "fact_paths"),
    "removed from the source": (True, remove_a_report, "reports"),
    "changed in the target": (False, change_paths, "fact_paths"),
    "added to the target": (False, add_a_node, "nodes"),
    "removed from the target": (False, remove_a_report, "reports"),
}


@pytest.mark.parametrize("is_source, change, names", UNEQUAL.values(), ids=UNEQUAL)
def test_tables_that_are_not_equal_at_the_end_are_named(files: tuple[str, str], is_source: bool, change: Any, names: str) -> None:
    """Somebody writes past the store, who does not say so."""
    source, target = files
    fill(source)
    move(source, target)
    asyncio.run(with_database(source if is_source else target, change))
    with pytest.raises(Conflict, match=rf"are not equal after the move: (\w+ \([0-9 and]+ rows\), )*{names} \(") as caught:
        move(source, target)
    assert "--restart" in caught.value.hint
    move(source, target, restart=True)
    assert contents(target)[1] == contents(source)[1]


def test_a_source_without_data_is_refused(addresses: tuple[str, str], tmp_path: Path) -> None:
    source, target = addresses
    with pytest.raises((Conflict, ConfigError), match=r"holds no data of a store|There is no database"):
        move(target, source)
    with pytest.raises(Conflict, match="the same database"):
        move(source, source)
    with pytest.raises(ConfigError, match="There is no database"):
        move(f"sqlite:///{tmp_path / 'nothing.sqlite'}", target)
    assert not (tmp_path / "nothing.sqlite").exists()


async def test_tables_of_something_else_stay(sqlite_url: str, empty_database_url: str) -> None:
    await with_database(empty_database_url, lambda connection: connection.execute(text("CREATE TABLE facts (id INTEGER)")))
    with pytest.raises(Conflict, match="tables of the same names as the store's"):
        await asyncio.to_thread(move, sqlite_url, empty_database_url)


SCRIPT = """
import sys
from store.database.writers import parse_address
from store.moving.move import MoveLimits, move_database
result = move_database(parse_address(sys.argv[1]), parse_address(sys.argv[2]), lambda *_: None, limits=MoveLimits(rows=int(sys.argv[3])))
print(result.copied)
"""


def run_process(source: str, target: str, rows: int, failpoints: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, VARIABLE: failpoints}
    command = [sys.executable, "-c", SCRIPT, source, target, str(rows)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_a_process_that_is_killed_again_and_again_moves_everything_once(addresses: tuple[str, str]) -> None:
    source, target = addresses
    fill(source)
    for point in ("move.written", "move.committed") * 2:
        assert run_process(source, target, 100, f"{point}=kill").returncode == -9
        with pytest.raises(UnknownSchema):
            asyncio.run(start_store(target))
    done = run_process(source, target, 100)
    assert done.returncode == 0, done.stderr
    total = sum(map(len, contents(source)[1].values()))
    assert 0 < int(done.stdout) < total
    assert contents(target)[1] == contents(source)[1]


@pytest.mark.slow
def test_a_move_whose_server_goes_away_can_go_on(sqlite_url: str, empty_postgresql_url: str, postgresql: PostgresqlServer) -> None:
    fill(sqlite_url)
    calls = []

    def stop_server(label: str, done: int, total: int) -> None:
        calls.append(label)
        if len(calls) == 6:
            postgresql.stop()

    try:
        with pytest.raises(Unavailable, match="cannot be used") as caught:
            move_database(parse_address(sqlite_url), parse_address(empty_postgresql_url), stop_server, limits=SMALL)
    finally:
        postgresql.start()
    assert "the same command goes on" in caught.value.hint
    result = move(sqlite_url, empty_postgresql_url)
    assert result.is_resumed and result.copied < sum(digest.rows for digest in result.tables.values())
    assert contents(empty_postgresql_url)[1] == contents(sqlite_url)[1]


@pytest.mark.slow
def test_a_connection_that_is_cut_between_two_batches_is_made_anew(
    sqlite_url: str, empty_postgresql_url: str, postgresql: PostgresqlServer
) -> None:
    fill(sqlite_url)
    calls = []

    def cut_connection(label: str, done: int, total: int) -> None:
        calls.append(label)
        if len(calls) == 6:
            postgresql.end_sessions()

    move_database(parse_address(sqlite_url), parse_address(empty_postgresql_url), cut_connection, limits=SMALL)
    assert contents(empty_postgresql_url)[1] == contents(sqlite_url)[1]
