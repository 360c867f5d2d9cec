"""Transactions of several stores on one PostgreSQL neither wait for each other in a circle nor miss what others have just written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import psycopg
import pytest
from sqlalchemy import Connection, func, insert, select, update

from shared.database.postgresql import DatabaseLimits
from store.database.engine import Database
from store.database.tables import environments, nodes, reports
from store.retention.retention import Retention, RetentionSettings
from store.writing.writer import DatabaseWriter
from tests.support.postgresql import PostgresqlServer
from tests.support.store_commands import facts_command, received, report_command
from tests.support.store_model import stored_nodes

DAY = 86_400_000_000
NOW = 1000 * DAY
ONCE = DatabaseLimits(attempts=1)


@asynccontextmanager
async def opened(*urls: str, limits: DatabaseLimits | None = None) -> AsyncIterator[list[Database]]:
    """Yield a database for each address, as different stores have them."""
    async with AsyncExitStack() as stack:
        databases = [Database.open(url, limits) for url in urls]
        for database in databases:
            stack.push_async_callback(database.close)
        yield databases


@contextmanager
def held(server: PostgresqlServer, statement: str) -> Iterator[None]:
    """Hold the locks of a statement, which is taken back in the end."""
    with psycopg.connect(server.address("store")) as connection:
        connection.execute(statement.encode())
        yield
        connection.rollback()


async def until_waiting(server: PostgresqlServer, number: int, *tasks: asyncio.Task[None]) -> None:
    """Return when so many transactions wait for a lock, or fewer by the number of tasks that have ended."""
    async with asyncio.timeout(20):
        while server.transactions_that_wait() + sum(task.done() for task in tasks) < number:  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.01)


async def awaited(*tasks: Awaitable[None]) -> None:
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks)


async def test_reports_are_deleted_by_one_store_while_another_deletes_their_node(postgresql: PostgresqlServer, postgresql_url: str) -> None:
    async with opened(postgresql_url, postgresql_url, limits=ONCE) as (first, second):
        for node in ("busy", "removed"):
            await DatabaseWriter(first).write(received(report_command(NOW - 100 * DAY, "/a", node=node)))
        settings = RetentionSettings(report_ttl=86400)
        of_first, of_second = (Retention(database, settings, clock=lambda: NOW) for database in (first, second))

        async def purge_reports() -> None:
            await of_first.clean(["purge_reports"])

        with held(postgresql, "SELECT 1 FROM nodes WHERE certname = 'busy' FOR NO KEY UPDATE"):  # as a command does
            of_reports = asyncio.create_task(purge_reports())
            await until_waiting(postgresql, 1, of_reports)
            of_node = asyncio.create_task(of_second.delete_node("removed"))
            await until_waiting(postgresql, 2, of_reports, of_node)
        await awaited(of_reports, of_node)
        assert set(await first.write(stored_nodes)) == {"busy"}
        await purge_reports()
        async with first.reading() as connection:
            assert await connection.scalar(select(func.count()).select_from(reports)) == 0
            assert (await connection.execute(select(nodes.c.latest_report_id))).all() == [(None,)]


async def test_a_node_that_another_store_creates_at_the_same_moment_gets_the_newest_facts(
    postgresql: PostgresqlServer, postgresql_url: str
) -> None:
    path = "INSERT INTO fact_paths (path, type, name, depth, pointer) VALUES ('[\"second\"]', 'integer', 'second', 0, '$')"
    async with opened(postgresql_url, postgresql_url, limits=ONCE) as (first, second):
        writer = DatabaseWriter(first)
        await writer.write(received(facts_command(1, {"first": 1}, node="known")))
        with held(postgresql, path):
            with held(postgresql, "SELECT 1 FROM nodes WHERE certname = 'known' FOR UPDATE"):
                late = [facts_command(2, {"second": 2}, node=node) for node in ("known", "new")]
                of_second = asyncio.create_task(DatabaseWriter(second).write(received(*late)))
                await until_waiting(postgresql, 1)  # it has looked for the nodes, of which it knows one
                await writer.write(received(facts_command(1, {"first": 1}, node="new")))
            await until_waiting(postgresql, 1)  # it has compared what is stored
            of_first = asyncio.create_task(writer.write(received(facts_command(3, {"third": 3}, node="new"))))
            await until_waiting(postgresql, 2, of_first)
        await awaited(of_first, of_second)
        facts = {certname: node.facts for certname, node in (await first.write(stored_nodes)).items()}
        assert {certname: of_node and of_node.producer_timestamp for certname, of_node in facts.items()} == {"known": 2, "new": 3}


@pytest.mark.slow
async def test_a_transaction_that_the_server_ends_for_a_deadlock_begins_anew(postgresql_url: str) -> None:
    both_hold_one = threading.Barrier(2)
    async with opened(postgresql_url) as (database,):
        await database.write(lambda connection: connection.execute(insert(environments), [{"name": "a"}, {"name": "b"}]))

        def rename(*names: str) -> Callable[[Connection], None]:
            attempts = 0

            def work(connection: Connection) -> None:
                nonlocal attempts
                attempts += 1
                for name in names:
                    row = environments.c.name.startswith(name)
                    connection.execute(update(environments).where(row).values(name=environments.c.name + "x"))
                    if attempts == 1 and name == names[0]:
                        both_hold_one.wait(20)

            return work

        await awaited(database.write(rename("a", "b")), database.write(rename("b", "a")))
        async with database.reading() as connection:
            assert set(await connection.scalars(select(environments.c.name))) == {"axx", "bxx"}
