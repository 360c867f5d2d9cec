"""The connections to the store's database, on both kinds of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from shared.database.postgresql import DatabaseLimits
from store.commands.commands import DatabaseUnavailable
from store.database.engine import Database, StatementTimeout
from store.database.tables import environments, facts, nodes
from tests.support.postgresql import PostgresqlServer

ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(3600)",
}


def add_environment(name: str, connection: Connection) -> None:
    connection.execute(insert(environments).values(name=name))


async def names(database: Database) -> list[str]:
    async with database.reading() as connection:
        return list((await connection.execute(select(environments.c.name).order_by(environments.c.name))).scalars())


async def test_what_one_transaction_writes_the_next_one_reads(database: Database) -> None:
    await database.write(lambda connection: add_environment("production", connection))
    assert await names(database) == ["production"]


async def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def work(connection: Connection) -> None:
        add_environment("production", connection)
        raise LookupError("no such thing")

    with pytest.raises(LookupError):
        await database.write(work)
    assert await names(database) == []


async def test_a_reader_sees_one_state_while_others_write(database: Database) -> None:
    async with database.reading() as connection:
        counted = select(func.count()).select_from(environments)
        assert await connection.scalar(counted) == 0
        await asyncio.wait_for(database.write(lambda writing: add_environment("production", writing)), 10)
        assert await connection.scalar(counted) == 0
    assert await names(database) == ["production"]


async def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises((DBAPIError, DatabaseUnavailable)):
        async with database.reading() as connection:
            await connection.execute(insert(environments).values(name="production"))
    assert await names(database) == []


async def test_a_statement_that_takes_too_long_is_ended(database: Database) -> None:
    with pytest.raises(StatementTimeout):
        async with database.reading(seconds=0.05) as connection:
            await connection.execute(text(ENDLESS[database.dialect]))

    assert await names(database) == []


async def test_the_time_of_one_transaction_does_not_end_the_next_one(sqlite_url: str) -> None:
    database = Database.open(sqlite_url, DatabaseLimits(readers=1))
    try:
        async with database.reading(seconds=0.001):
            pass
        await asyncio.sleep(0.01)
        async with database.reading() as connection:
            counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT count(*) FROM n"
            assert await connection.scalar(text(counting)) == 50000
    finally:
        await database.close()


async def test_an_error_of_a_statement_is_not_taken_for_one_of_the_database(database: Database) -> None:
    with pytest.raises(DBAPIError):
        async with database.reading() as connection:
            await connection.execute(text("SELECT nothing FROM nowhere"))
    await database.write(lambda connection: add_environment("production", connection))
    with pytest.raises(IntegrityError):
        await database.write(lambda connection: add_environment("production", connection))


@pytest.mark.parametrize("value", [None, True, 7, 9007199254740993, -(2**63), 0.5, "ü\n", [], {}, {"b": [1, None], "a": {"c": "d"}}])
async def test_json_is_read_as_it_was_written(database: Database, value: object) -> None:
    def work(connection: Connection) -> None:
        connection.execute(insert(nodes).values(id=1, certname="web1"))
        connection.execute(insert(facts).values(node_id=1, name="fact", value=value))

    await database.write(work)
    async with database.reading() as connection:
        stored = (await connection.execute(select(facts.c.value))).scalar_one()
    assert (stored, type(stored)) == (value, type(value))


async def test_a_server_that_is_away_is_no_error_of_the_command(postgresql_url: str, postgresql: PostgresqlServer) -> None:
    database = Database.open(postgresql_url)
    try:
        assert await names(database) == []
        postgresql.stop()
        with pytest.raises(DatabaseUnavailable):
            await names(database)
        with pytest.raises(DatabaseUnavailable):
            await database.write(lambda connection: add_environment("production", connection))
        postgresql.start()
        await database.write(lambda connection: add_environment("production", connection))
        assert await names(database) == ["production"]
    finally:
        await database.close()


async def test_a_lock_that_another_process_holds_is_waited_for_no_longer_than_the_limit(sqlite_url: str) -> None:
    first, second = Database.open(sqlite_url), Database.open(sqlite_url, DatabaseLimits(lock_timeout=0.05))

    def work(connection: Connection) -> None:
        add_environment("production", connection)
        with pytest.raises(DatabaseUnavailable, match="locked"):
            second._transact(lambda other: add_environment("staging", other))

    try:
        await first.write(work)
        assert await names(second) == ["production"]
    finally:
        await first.close()
        await second.close()


@pytest.mark.parametrize("url", ["", "mysql://localhost/x", "sqlite://", "store.sqlite"])
def test_an_address_that_names_no_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="the address of a database"):
        Database.open(url)


def test_the_extra_that_postgresql_needs_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ValueError, match="needs the extra postgresql of this package"):
        Database.open("postgresql://store@/x")


def test_a_file_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"nowhere/store\.sqlite: No such file or directory"):
        Database.open(f"sqlite:///{tmp_path}/nowhere/store.sqlite")


async def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path}/store.sqlite")
    await database.close()
    assert (tmp_path / "store.sqlite").stat().st_mode & 0o777 == 0o600
