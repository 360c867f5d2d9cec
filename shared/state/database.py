"""The database in which several masters keep what is worth keeping."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..database.postgresql import DatabaseLimits, connect_arguments, is_ended_for_others, reason_of_absence, session_options
from ..database.schema import UnknownSchema
from ..errors import ConfigError, Unavailable
from .tables import SCHEMA

T = TypeVar("T")

LIMITS = DatabaseLimits(writers=4, connect_timeout=3, lock_timeout=10, write_timeout=30)
"""A request waits for these: a server that is away is noticed within seconds."""

_RETRY_AFTER = 10


class StateAway(Unavailable):
    """The database cannot be used now; the same request may succeed later."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The database of the masters' state is away: {reason}", retry_after=_RETRY_AFTER, hint="The setting is state.")


class StateDatabase:
    """
    The masters' PostgreSQL database.

    A piece of work is one function of a connection, in one transaction: committed when it returns, rolled back when it raises. Where
    PostgreSQL ends a transaction so that others can go on, it runs again from its beginning. StateAway is raised while the server is away.
    """

    def __init__(self, engine: Engine, limits: DatabaseLimits = LIMITS) -> None:
        self._engine = engine
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.writers, "state")
        self._migrating = threading.Lock()
        self._is_migrated = False

    @classmethod
    def open(cls, address: str, limits: DatabaseLimits = LIMITS) -> StateDatabase:
        """Return the database at `postgresql://…`; nothing is connected yet. ConfigError when PostgreSQL's driver is not installed."""
        url = make_url(address).set(drivername="postgresql+psycopg")
        try:
            return cls(_engine(url, limits), limits)
        except ImportError as err:
            raise ConfigError(f"The setting state needs PostgreSQL's driver: {err}", hint="pip install 'bunraku[postgresql]'") from err

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction, after the tables have been made or migrated, and return its result. Blocks."""
        with _absence_named():
            self._migrate_once()
            return self._transact(work)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that is committed when the block ends, and rolled back when it raises; never repeated. Blocks."""
        with _absence_named():
            self._migrate_once()
            with self._engine.begin() as connection:
                yield connection

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Do the same in a thread; it runs to its end even when the task that waits for it is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.transact, work)

    async def close(self) -> None:
        """Close all connections, after the work that has begun."""
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.disconnect)

    def disconnect(self) -> None:
        """Close the connections that nobody uses now. Blocks."""
        self._engine.dispose()

    def _transact(self, work: Callable[[Connection], T]) -> T:
        attempts = self._limits.attempts
        while True:
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except DBAPIError as err:
                attempts -= 1
                if not attempts or not is_ended_for_others(err):
                    raise

    def _migrate_once(self) -> None:
        # At the first use rather than at the start: a master must come up while its database is away.
        with self._migrating:
            if self._is_migrated:
                return
            try:
                self._transact(SCHEMA.migrate)
            except UnknownSchema as err:
                raise ConfigError(f"The database of the setting state cannot be used: {err}") from err
            self._is_migrated = True


@contextmanager
def _absence_named() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as err:
        raise StateAway("all connections are in use") from err
    except DBAPIError as err:
        if (reason := reason_of_absence(err)) is not None:
            raise StateAway(reason) from err
        raise


def _engine(url: URL, limits: DatabaseLimits) -> Engine:
    options = {**session_options(limits), "statement_timeout": int(limits.write_timeout * 1000)}
    return create_engine(
        url,
        pool_size=limits.writers,
        max_overflow=0,
        pool_timeout=limits.connect_timeout,
        pool_pre_ping=True,
        connect_args=connect_arguments(limits, options),
    )
