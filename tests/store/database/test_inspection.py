"""What is said about a database before a store opens it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from store.database.engine import Database
from store.database.inspection import inspect_database
from store.database.schema import SCHEMA
from tests.support.postgresql import PostgresqlServer


def messages(url: str) -> list[str]:
    return [f"{problem.severity}: {problem.message}" for problem in inspect_database(url, 5)]


def test_a_database_with_the_tables_of_this_version_is_in_order(database_url: str) -> None:
    assert messages(database_url) == []


def test_an_empty_database_is_in_order(empty_database_url: str) -> None:
    assert messages(empty_database_url) == []


async def test_tables_that_the_next_start_migrates_are_named(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    await database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '001'")))
    await database.close()
    (message,) = await asyncio.to_thread(messages, sqlite_url)
    assert message.startswith("warning: ")
    assert message.endswith(f": the tables are of version 001, and the next start brings them to {SCHEMA.newest}")


async def test_a_file_that_a_store_uses_is_read(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    try:
        await database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '999'")))
        (message,) = await asyncio.to_thread(messages, sqlite_url)
    finally:
        await database.close()
    assert "written by a newer version" in message


def test_a_file_that_nobody_uses_is_left_as_it_is(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    before = path.stat().st_mtime_ns
    assert messages(sqlite_url) == []
    assert path.stat().st_mtime_ns == before and list(path.parent.iterdir()) == [path]


@pytest.mark.slow
def test_an_account_that_may_make_no_tables_is_named(postgresql: PostgresqlServer, empty_postgresql_url: str) -> None:
    postgresql.run_sql("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    (message,) = messages(empty_postgresql_url.replace("store@", "reader@"))
    assert message.startswith("error: reader may not make tables in the store's database empty_")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_whose_encoding_lacks_characters_is_named(encoding: str, postgresql: PostgresqlServer) -> None:
    postgresql.run_sql(f"CREATE DATABASE latin ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    (message,) = messages(postgresql.address("latin"))
    assert message == f"error: The store's database latin has the encoding {encoding}, which lacks characters of facts and reports"
    postgresql.run_sql("DROP DATABASE latin")


@pytest.mark.slow
def test_a_server_without_that_database_is_named(postgresql: PostgresqlServer) -> None:
    (message,) = messages(postgresql.address("nothing"))
    assert message.startswith("error: The store's database cannot be used: ") and 'database "nothing" does not exist' in message
