"""Connections to PostgreSQL: their limits, the settings of a session, and which errors mean that the server is away."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from .engines import prepare_connections

_UNAVAILABLE = ("08", "28", "3D", "40", "53", "55P03", "57P", "58", "25006", "XX00")
"""Beginnings of states: connection, login, no such database, ended transaction, resources, lock, shutdown, system, standby, damage."""

_ENDED_FOR_OTHERS = ("40001", "40P01", "57P01")
"""
States of a transaction that PostgreSQL has ended, and that succeeds when it is repeated: of a conflict, of a deadlock, in a session that an
administrator has ended. A server that stops has the repetition fail with another state.
"""


@dataclass(frozen=True, slots=True)
class DatabaseLimits:
    """The limits on connections to a database, and on waiting for it. Times are in seconds."""

    readers: int = 4
    """Transactions that read at the same time."""
    writers: int = 2
    """Transactions that write at the same time; SQLite has one in any case."""
    connect_timeout: float = 10
    """For a new connection, and for one of `readers` to become free."""
    lock_timeout: float = 20
    """For a lock that another transaction holds."""
    write_timeout: float = 120
    """For one statement that writes, on PostgreSQL."""
    attempts: int = 5
    """The most attempts of a writing transaction that PostgreSQL ends because of a deadlock."""


def session_options(limits: DatabaseLimits) -> dict[str, Any]:
    """Return the settings of each session with PostgreSQL."""
    return {
        "timezone": "UTC",
        "lock_timeout": int(limits.lock_timeout * 1000),
        "idle_in_transaction_session_timeout": int(limits.write_timeout * 1000),
    }


def connect_arguments(limits: DatabaseLimits, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of each connection to PostgreSQL, with the settings of its session."""
    return {
        "application_name": "bunraku",
        "client_encoding": "utf8",  # with a database in SQL_ASCII even its version would be bytes, and no check could name the encoding
        "connect_timeout": max(1, int(limits.connect_timeout)),
        "keepalives_idle": 30,
        "tcp_user_timeout": int(limits.write_timeout * 1000),
        "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
    }


def writing_engine(address: URL, limits: DatabaseLimits, **options: Any) -> Engine:
    """
    Return an engine for transactions that write, in which every statement ends; nothing is connected yet.

    Args:
        options: Further ones of SQLAlchemy's `create_engine`.
    Raises:
        ImportError: psycopg is not installed.
    """
    session = {**session_options(limits), "statement_timeout": int(limits.write_timeout * 1000)}
    engine = create_engine(address.set(drivername="postgresql+psycopg"), connect_args=connect_arguments(limits, session), **options)
    _bound_waits(engine, limits)
    _compress_with_lz4(engine)
    return engine


def _bound_waits(engine: Engine, limits: DatabaseLimits) -> None:
    """
    Have a statement end in psycopg's OperationalError, and its connection with it, when a server that is frozen does not answer.

    That is `connect_timeout` after `write_timeout`, when a server that works would have ended the statement.
    """
    import psycopg

    seconds = limits.write_timeout + limits.connect_timeout

    class BoundedConnection(psycopg.Connection[Any]):
        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
            return super().wait(self._bounded(gen), *arguments, **options)

        def _bounded(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            end = time.monotonic() + seconds
            is_ready = None
            try:
                while True:
                    is_ready = yield steps.send(is_ready)
                    if not is_ready and time.monotonic() > end:  # psycopg looks ten times a second
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"the server has not answered within {seconds:g} seconds")
            except StopIteration as done:
                return done.value

    @event.listens_for(engine, "do_connect")
    def _(_dialect: Any, _record: Any, arguments: list[Any], parameters: dict[str, Any]) -> psycopg.Connection[Any]:
        return BoundedConnection.connect(*arguments, **parameters)


def _compress_with_lz4(engine: Engine) -> None:
    """Have large values of the engine compressed with lz4 where the server has it; what it does by default takes four times as long."""

    def prepare(connection: Any, _record: Any) -> None:
        # Not an option of the connection: a server that was built without lz4, or one before 14, would refuse it.
        connection.execute(
            "SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)"
        )
        connection.commit()

    prepare_connections(engine, prepare)


def is_ended_for_others(err: DBAPIError) -> bool:
    """Return whether PostgreSQL has ended a transaction only so that others can go on: repeated, it succeeds."""
    return getattr(err.orig, "sqlstate", None) in _ENDED_FOR_OTHERS


def is_conflict(err: DBAPIError) -> bool:
    """Return whether a transaction failed because of other transactions, by a deadlock or a lock, while the server works."""
    return str(getattr(err.orig, "sqlstate", None) or "").startswith(("40", "55P03"))


def reason_of_absence(err: DBAPIError) -> str | None:
    """Return in one line why the server cannot be used now; None when the error is that of the statement."""
    original = err.orig
    state = getattr(original, "sqlstate", None)
    # Without a state the server was not reached, or did not answer: ConnectionTimeout is such an error, too.
    is_unreached = any(each.__name__ == "OperationalError" for each in type(original).__mro__)
    is_away = state.startswith(_UNAVAILABLE) if state is not None else is_unreached
    return str(original).partition("\n")[0] if is_away or err.connection_invalidated else None
