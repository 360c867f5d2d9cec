"""The database in which several masters keep what is worth keeping."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, NullPool, event, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..clock import utc_now
from ..database.postgresql import (
    DatabaseLimits,
    is_conflict,
    is_ended_for_others,
    reason_of_absence,
    writing_engine,
)
from ..database.schema import UnknownSchema
from ..errors import ConfigError, Unavailable
from .tables import SCHEMA

T = TypeVar("T")

LIMITS = DatabaseLimits(writers=4, connect_timeout=3, lock_timeout=10, write_timeout=30)
"""A request waits for these: a server that is away is noticed within seconds."""

_RETRY_AFTER = 10
_SLOW = 1.0  # seconds of an attempt, from which on the server counts as silent


class StateAway(Unavailable):
    """The database cannot be used now; the same request may succeed later."""

    def __init__(self, reason: str) -> None:
        # It names hosts and paths, which are for the log and for who runs a command, not for clients.
        self.reason = reason
        hint = f"{reason} (the setting is state)"
        super().__init__("The database of the masters' state is away", retry_after=_RETRY_AFTER, hint=hint)


@dataclass(slots=True)
class Absence:
    """
    The time in which the server cannot be used.

    Attributes:
        since: When that was noticed.
        reason: The last error.
        next_attempt: Monotonic seconds, before which work is refused at once; 0 for a server that fails without delay.
    """

    since: datetime
    reason: str
    next_attempt: float


class StateDatabase:
    """
    The masters' PostgreSQL database.

    A piece of work is one function of a connection, in one transaction: committed when it returns, rolled back when it raises. Where
    PostgreSQL ends a transaction so that others can go on, it runs again from its beginning. StateAway is raised while the server is away.
    An attempt that failed slowly has further work refused for some seconds, so that requests do not queue up for a silent server.

    `is_single` says that each statement of the work stands for itself. It is one request to the server then, without BEGIN and COMMIT.

    Attributes:
        absence: Since when and why the server is away; None while it answers.
    """

    def __init__(self, engine: Engine, limits: DatabaseLimits = LIMITS) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.writers, "state")
        self._migrating = threading.Lock()
        self._is_migrated = False
        self.absence: Absence | None = None
        self._noting = threading.Lock()
        self._is_disconnected = False
        event.listen(engine, "checkin", self._close_if_disconnected)

    @classmethod
    def open(cls, address: str, limits: DatabaseLimits = LIMITS, *, keep_alive: bool = True) -> StateDatabase:
        """
        Return the database at `postgresql://…`; nothing is connected yet. ConfigError when PostgreSQL's driver is not installed.

        Args:
            keep_alive: False: each connection ends with its transaction, as suits commands.
        """
        try:
            return cls(_engine(make_url(address), limits, keep_alive), limits)
        except ImportError as err:
            raise ConfigError(f"The setting state needs PostgreSQL's driver: {err}", hint="pip install 'bunraku[postgresql]'") from err

    def transact(self, work: Callable[[Connection], T], *, is_single: bool = False) -> T:
        """Run `work` in a transaction, after the tables have been made or migrated; return its result. Blocks, also for a silent server."""
        with self._noticing_absence():
            self._migrate_once()
            return self._transact(work, is_single=is_single)

    def look(self, work: Callable[[Connection], T]) -> T:
        """Do the same without making or migrating tables, for work that only reads. Blocks."""
        with self._noticing_absence():
            return self._transact(work)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that is committed when the block ends, and rolled back when it raises; never repeated. Blocks."""
        with self._noticing_absence(is_timed=False):  # the block's own time says nothing of the server
            self._migrate_once()
            with self._engine.begin() as connection:
                yield connection

    def transact_within(self, seconds: float, work: Callable[[Connection], T], *, is_single: bool = False) -> T:
        """
        Do the same as `run`, but block. A transaction that nobody waits for any more is rolled back, and a single statement is not.

        So the same work may be done again after StateAway, unless the server was lost in the moment of the commit.
        """
        is_decided = threading.Lock()  # taken once: by the thread to commit, or here to give up

        def work_if_awaited(connection: Connection) -> T:
            result = work(connection)
            if not is_decided.acquire(blocking=False):
                raise StateAway("nobody waits for the answer any more")
            return result

        future = self._begin(work if is_single else work_if_awaited, is_single)
        done, _ = wait([future], timeout=seconds)
        if not done and not is_single and not is_decided.acquire(blocking=False):
            done, _ = wait([future], timeout=seconds)  # it is being committed
        if done:
            return future.result()
        future.cancel()
        raise self._silence(seconds)

    async def run(self, work: Callable[[Connection], T], *, seconds: float | None = None, is_single: bool = False) -> T:
        """
        Do the same as `transact` in a thread; it runs to its end even when the task that waits for it is cancelled.

        Args:
            seconds: The patience with a server that is silent, before StateAway is raised; by default that of the limits.
        """
        patience = seconds or self.patience
        future = asyncio.wrap_future(self._begin(work, is_single))
        try:
            done, _ = await asyncio.wait([future], timeout=patience)
            if done:
                return future.result()
        finally:
            future.cancel()  # nobody waits for it any more
        raise self._silence(patience)

    @property
    def patience(self) -> float:
        """The seconds in which the limits have any work come to its end."""
        return self._limits.connect_timeout + self._limits.write_timeout

    def _begin(self, work: Callable[[Connection], T], is_single: bool) -> Future[T]:
        absence = self.absence
        if absence is not None and time.monotonic() < absence.next_attempt:
            raise StateAway(absence.reason)  # not behind threads that may wait for the same server
        return self._threads.submit(self.transact, work, is_single=is_single)

    def _silence(self, seconds: float) -> StateAway:
        """Note that the server has not answered, and return the error for it."""
        reason = f"no answer within {seconds:g} seconds"
        self._note_absence(reason, seconds)
        return StateAway(reason)

    async def close(self) -> None:
        """Close all connections, after the work that has begun."""
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.disconnect)

    def disconnect(self) -> None:
        """Close the connections: those that nobody uses now, and others as soon as their work ends. Blocks."""
        self._is_disconnected = True
        self._engine.dispose()

    def _close_if_disconnected(self, connection: Any, *_: object) -> None:
        if self._is_disconnected and connection is not None:
            connection.close()

    @contextmanager
    def _noticing_absence(self, *, is_timed: bool = True) -> Iterator[None]:
        """Raise StateAway for errors of a server that is away, and remember whether it is."""
        self._refuse_while_silent()
        start = time.monotonic()
        try:
            yield
        except PoolTimeout as err:
            raise StateAway("all connections are in use") from err
        except DBAPIError as err:
            if (reason := reason_of_absence(err)) is None:
                raise
            if not is_conflict(err):
                self._note_absence(reason, time.monotonic() - start if is_timed else 0)
            raise StateAway(reason) from err
        self.absence = None

    def _refuse_while_silent(self) -> None:
        with self._noting:
            absence, now = self.absence, time.monotonic()
            if absence is None or not absence.next_attempt:
                return
            if now < absence.next_attempt:
                raise StateAway(absence.reason)
            absence.next_attempt = now + self._limits.connect_timeout  # others do not wait for this attempt

    def _note_absence(self, reason: str, took: float) -> None:
        with self._noting:
            since = self.absence.since if self.absence is not None else utc_now()
            # Not for longer than it takes to connect: whoever hung itself must not count that against the server.
            silence = min(took, self._limits.connect_timeout) if took >= _SLOW else 0
            self.absence = Absence(since, reason, time.monotonic() + silence if silence else 0)

    def _transact(self, work: Callable[[Connection], T], *, is_single: bool = False) -> T:
        attempts = self._limits.attempts
        engine = self._single if is_single else self._engine
        while True:
            try:
                with engine.begin() as connection:
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


def _engine(url: URL, limits: DatabaseLimits, keep_alive: bool) -> Engine:
    pool: dict[str, Any] = {"poolclass": NullPool}
    if keep_alive:
        pool = {"pool_size": limits.writers, "max_overflow": 0, "pool_timeout": limits.connect_timeout}
    engine = writing_engine(url, limits, **pool)
    if keep_alive:
        event.listen(engine, "checkout", _replace_ended)
    return engine


def _replace_ended(connection: Any, *_: object) -> None:
    """Have the pool replace a connection that the server has ended: only then has an idle one something to read. Asks no server."""
    poll = select.poll()
    if not connection.closed:
        poll.register(connection.fileno(), select.POLLIN)
    if connection.closed or poll.poll(0):
        raise DisconnectionError("the server has ended the connection")
