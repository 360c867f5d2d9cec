"""The database of the masters' state."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Connection, MetaData, text

from shared.database.postgresql import DatabaseLimits
from shared.database.schema import Schema
from shared.errors import ConfigError
from shared.state.database import StateAway, StateDatabase
from shared.state.notices import Notices, notify
from shared.state.tables import SCHEMA, metadata
from tests.support.postgresql import PostgresqlServer

IMPATIENT = DatabaseLimits(connect_timeout=1)


@pytest.fixture
async def database(empty_postgresql_url: str) -> AsyncIterator[StateDatabase]:
    """The masters' database, which has no tables before its first use."""
    opened = StateDatabase.open(empty_postgresql_url)
    yield opened
    await opened.close()


def one(connection: Connection) -> int:
    """Return a number of the server's."""
    return int(connection.scalar(text("SELECT 1")) or 0)


async def test_the_first_work_finds_the_tables_that_two_masters_make_at_once(database: StateDatabase, empty_postgresql_url: str) -> None:
    other = StateDatabase.open(empty_postgresql_url)
    assert await asyncio.gather(database.run(SCHEMA.version), other.run(SCHEMA.version)) == [SCHEMA.newest] * 2
    await other.close()


async def test_what_raises_has_changed_nothing(database: StateDatabase) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half (id int)"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.run(fail)
    assert await database.run(lambda connection: connection.scalar(text("SELECT to_regclass('half')"))) is None


async def test_a_statement_that_stands_for_itself_is_one_request(database: StateDatabase, postgresql: PostgresqlServer) -> None:
    await database.run(one)
    await database.run(lambda connection: connection.execute(text("SET log_statement = 'all'")), is_single=True)
    before = postgresql.log
    for _ in range(3):
        assert await database.run(one, is_single=True) == 1
    assert [line.partition("LOG:  ")[2] for line in postgresql.log.removeprefix(before).splitlines()] == ["statement: SELECT 1"] * 3


async def test_a_server_that_is_away_is_said_and_comes_back_by_itself(postgresql: PostgresqlServer, empty_postgresql_url: str) -> None:
    database = StateDatabase.open(empty_postgresql_url, IMPATIENT)
    assert await database.run(one) == 1
    postgresql.stop()
    try:
        with pytest.raises(StateAway, match="is away"):
            await database.run(one)
    finally:
        postgresql.start()
    assert await database.run(one) == 1
    await database.close()


@pytest.mark.slow
async def test_a_server_that_is_silent_holds_up_one_request_and_others_are_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        host, port = silent.getsockname()
        database = StateDatabase.open(f"postgresql://nobody@{host}:{port}/none", IMPATIENT)
        for _ in range(20):
            with pytest.raises(StateAway):
                await database.run(one)
        await database.close()
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


async def test_a_request_does_not_wait_longer_than_its_patience(database: StateDatabase) -> None:
    await database.run(one)
    with pytest.raises(StateAway) as away:
        await database.run(lambda connection: connection.execute(text("SELECT pg_sleep(0.2)")), seconds=0.05)
    assert away.value.reason.startswith("no answer within 0.05 seconds")
    assert database.absence is not None and "no answer" in database.absence.reason


async def test_large_values_are_compressed_with_lz4_where_the_server_has_it(database: StateDatabase) -> None:
    names = await database.run(
        lambda connection: connection.scalar(text("SELECT enumvals FROM pg_settings WHERE name LIKE '%toast_comp%'"))
    )
    used = await database.run(lambda connection: connection.scalar(text("SHOW default_toast_compression")))
    assert used == ("lz4" if "lz4" in (names or ()) else "pglz")


@pytest.mark.slow
async def test_work_does_not_wait_for_ever_for_a_server_that_stands_still(
    database: StateDatabase, postgresql: PostgresqlServer, empty_postgresql_url: str
) -> None:
    await database.run(one)  # makes the tables, for which there is no time below
    impatient = StateDatabase.open(empty_postgresql_url, DatabaseLimits(connect_timeout=1, write_timeout=2))
    await asyncio.to_thread(impatient.transact, one)
    with postgresql.frozen(), pytest.raises(StateAway) as away:
        await asyncio.to_thread(impatient.transact, one)
    assert away.value.reason == "the server has not answered within 3 seconds"
    await asyncio.to_thread(impatient.disconnect)


async def test_a_connection_that_is_in_use_at_the_end_is_closed_when_its_work_ends(empty_postgresql_url: str) -> None:
    database = StateDatabase.open(empty_postgresql_url)
    with database.begin() as connection:
        used = connection.connection.dbapi_connection
        database.disconnect()
        assert used is not None and not used.closed
        assert one(connection) == 1
    assert used.closed


async def test_tables_of_a_newer_master_are_refused(database: StateDatabase, empty_postgresql_url: str) -> None:
    await database.run(lambda connection: SCHEMA.set_version(connection, "999"))
    older = StateDatabase.open(empty_postgresql_url)
    with pytest.raises(ConfigError, match="newer version"):
        await older.run(one)
    await older.close()


async def test_a_notice_reaches_other_masters_when_it_is_committed(database: StateDatabase, empty_postgresql_url: str) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    notices = Notices(empty_postgresql_url, poll=60)

    async def listen(topic: str) -> None:
        heard.put_nowait(topic)

    notices.on("crl", lambda: listen("crl"))
    notices.on("code", lambda: listen("code"))
    task = asyncio.create_task(notices.keep_listening())
    try:
        assert {await heard.get(), await heard.get()} == {"crl", "code"}  # at the start: what was said before
        await database.run(lambda connection: notify(connection, "code"))
        assert await asyncio.wait_for(heard.get(), 10) == "code"
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_listener_for_which_the_database_is_away_is_called_again(
    empty_postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls = asyncio.Semaphore(0)
    notices = Notices(empty_postgresql_url, poll=0.01)

    async def listen() -> None:
        calls.release()
        raise StateAway("stopped")

    notices.on("crl", listen)
    task = asyncio.create_task(notices.keep_listening())
    for _ in range(3):
        await asyncio.wait_for(calls.acquire(), 10)
    task.cancel()
    await asyncio.wait([task])
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_each_kind_of_database_has_a_lock_of_its_own() -> None:
    from store.database.schema import SCHEMA as STORE

    assert isinstance(STORE, Schema)
    assert (STORE.lock, STORE.version_table) != (SCHEMA.lock, SCHEMA.version_table)


@pytest.mark.slow
async def test_older_tables_become_todays(database: StateDatabase) -> None:
    def described(connection: Connection) -> dict[str, object]:
        found = MetaData()
        found.reflect(connection)
        return {
            name: sorted((column.name, str(column.type), column.nullable, str(column.server_default and "default")) for column in table.c)
            for name, table in found.tables.items()
        }

    def make_old(connection: Connection) -> None:
        """Have the tables be those of version 001."""
        for name in ("order_nodes", "orders", "rollout_nodes", "rollouts", "rollout_predictions"):
            connection.execute(text(f"DROP TABLE state_{name}"))
        connection.execute(text("ALTER TABLE state_environments DROP COLUMN is_rolling"))
        connection.execute(text("ALTER TABLE state_deployments DROP COLUMN is_rollout"))
        SCHEMA.set_version(connection, "001")

    todays = await database.run(described)
    assert todays.keys() >= metadata.tables.keys()
    await database.run(make_old)
    assert await database.run(described) != todays
    await database.run(SCHEMA.migrate)
    assert (await database.run(described), await database.run(SCHEMA.version)) == (todays, SCHEMA.newest)
