"""
The connections to the store's database: several that read, and those that write.

Reading waits on the event loop, for an answer may be long and its reader slow. A transaction that writes is one function, which a
thread of its own runs from beginning to end: a command takes a dozen short statements, and passing each of them between the loop and
a thread would cost more processor time than the statements themselves.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, TypeVar

from sqlalchemy import URL, Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from shared.database.engines import prepare_connections
from shared.database.postgresql import DatabaseLimits, connect_arguments, is_ended_for_others, reason_of_absence, session_options

from ..commands.commands import DatabaseUnavailable
from .async_engine import AsyncConnection, AsyncEngine, create_async_engine
from .functions import MatchBudget, register_functions
from .schema import migrate_schema
from .writers import common_options, parse_address, writer_engine

T = TypeVar("T")

Dialect = Literal["sqlite", "postgresql"]

_STEPS = 20_000
"""Instructions of SQLite's machine between two looks at the clock: less than a millisecond."""

_UNAVAILABLE_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
}
"""Errors of the file or the disk, never of the statement."""

_STATEMENT_TIMEOUT = "57014"


class StatementTimeout(Exception):
    """A statement took longer than its transaction allows."""


class Database:
    """The store's database, on SQLite or PostgreSQL."""

    def __init__(self, readers: AsyncEngine, writers: Engine, threads: ThreadPoolExecutor, attempts: int = 1) -> None:
        self._readers = readers
        self._writers = writers
        self._threads = threads
        self._attempts = attempts

    @classmethod
    def open(cls, url: str, limits: DatabaseLimits | None = None) -> Database:
        """
        Return the database that `url` names: `sqlite:///PATH` or `postgresql://…`. Nothing is connected yet.

        ValueError says that the address is none, or that it names another kind of database. An SQLite file is created, readable for
        its owner only; DatabaseUnavailable says that this is impossible.
        """
        limits, address = limits or DatabaseLimits(), parse_address(url)
        writers = writer_engine(address, limits)
        if address.drivername == "sqlite":
            # SQLite has one writer; a second thread would only wait for its lock.
            return Database(_sqlite_readers(address, limits), writers, ThreadPoolExecutor(1, "store-writer"))
        threads = ThreadPoolExecutor(limits.writers, "store-writer")
        return Database(_postgresql_readers(address, limits), writers, threads, limits.attempts)

    @property
    def dialect(self) -> Dialect:
        """The kind of this database."""
        return "sqlite" if self._writers.dialect.name == "sqlite" else "postgresql"

    @asynccontextmanager
    async def reading(self, seconds: float | None = None) -> AsyncIterator[AsyncConnection]:
        """
        Yield a connection in a transaction that sees one state of the database and cannot write.

        StatementTimeout is raised when a statement takes longer than `seconds`; on SQLite, when the whole transaction does.
        DatabaseUnavailable is raised for errors that are not the statement's.
        """
        with translated_errors():
            async with self._readers.connect() as connection:
                if self.dialect == "sqlite":
                    (await connection.get_raw_connection()).info["deadline"].set(seconds)
                async with connection.begin():
                    if self.dialect == "postgresql":
                        # LOCAL, because the connection goes back to a pool.
                        await connection.execute(text(f"SET LOCAL statement_timeout = {int((seconds or 0) * 1000)}"))
                    yield connection

    async def write(self, work: Callable[[Connection], T]) -> T:
        """
        Run `work` in a writing transaction, in a thread, and return its result.

        The transaction is committed when `work` returns, and rolled back when it raises. It runs to its end even when the task that
        waits for it is cancelled. DatabaseUnavailable is raised for errors that are not the statement's. Where PostgreSQL ends it so that
        others can go on, `work` runs again from its beginning.
        """
        # Not asynchronous: a writer computes between its statements, which would hold up the loop (decision 036).
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._transact, work)

    def _transact(self, work: Callable[[Connection], T]) -> T:
        with translated_errors():
            attempts = self._attempts
            while True:
                try:
                    with self._writers.begin() as connection:
                        return work(connection)
                except DBAPIError as err:
                    attempts -= 1
                    if not attempts or not is_ended_for_others(err):
                        raise

    async def migrate(self) -> None:
        """
        Create the tables, or upgrade them. Several processes may do so at the same time.

        UnknownSchema is raised when the tables are newer than this program; DatabaseUnavailable as by `write`.
        """
        await self.write(migrate_schema)

    async def close(self) -> None:
        """Close all connections, after the transactions that are being written."""
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self._writers.dispose)
        await self._readers.dispose()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise DatabaseUnavailable and StatementTimeout in place of the drivers' errors."""
    try:
        yield
    except PoolTimeout as err:
        raise DatabaseUnavailable("all connections to the database are in use") from err
    except DBAPIError as err:
        original = err.orig
        if isinstance(original, sqlite3.Error):
            # The low byte is the kind; extended codes have more detail above it.
            code = getattr(original, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_INTERRUPT:
                raise StatementTimeout(str(original)) from err
            if code in _UNAVAILABLE_SQLITE:
                raise DatabaseUnavailable(str(original)) from err
            raise
        if getattr(original, "sqlstate", None) == _STATEMENT_TIMEOUT:
            raise StatementTimeout(str(original).partition("\n")[0]) from err
        if (reason := reason_of_absence(err)) is not None:
            raise DatabaseUnavailable(reason) from err
        raise


class _Deadline:
    """The end of a reading transaction on SQLite, and the part of its time that regular expressions may take."""

    def __init__(self) -> None:
        self._at: float | None = None
        self.matches = MatchBudget()

    def set(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds
        self.matches.renew(seconds)

    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() > self._at


def _sqlite_readers(address: URL, limits: DatabaseLimits) -> AsyncEngine:
    readers = create_async_engine(
        address.set(drivername="sqlite+aiosqlite"),
        pool_size=limits.readers,
        max_overflow=0,
        pool_timeout=limits.connect_timeout,
        connect_args={"timeout": limits.lock_timeout},
    )

    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        deadline = record.info["deadline"] = _Deadline()
        connection.run_async(lambda driver: driver.set_progress_handler(deadline.is_over, _STEPS))
        cursor = connection.cursor()
        for pragma in ("query_only = ON", "temp_store = MEMORY", "cache_size = -4000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()
        register_functions(connection.create_function, deadline.matches)

    prepare_connections(readers.sync_engine, prepare)

    @event.listens_for(readers.sync_engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return readers


def _postgresql_readers(address: URL, limits: DatabaseLimits) -> AsyncEngine:
    return create_async_engine(
        address.set(drivername="postgresql+psycopg"),
        pool_size=limits.readers,
        isolation_level="REPEATABLE READ",
        execution_options={"postgresql_readonly": True},
        connect_args=connect_arguments(limits, session_options(limits)),
        **common_options(limits),
    )
