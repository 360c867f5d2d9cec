"""
The connections that write to the store's database, on SQLite and on PostgreSQL.

A database belongs either to stores, or to one program that moves it and must be alone. SQLite's own locks see to that. On PostgreSQL
each connection that writes holds an advisory lock for as long as it lasts: those of stores share it, an exclusive one does not.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from shared.database.engines import prepare_connections
from shared.database.postgresql import DatabaseLimits, writing_engine

from ..commands.commands import DatabaseUnavailable
from ..jsontext import load_stored
from .columns import json_text
from .functions import MatchBudget, register_functions

if TYPE_CHECKING:
    import psycopg

_IN_USE = 0x62756E72616B76
"""The number of PostgreSQL's advisory lock, which no other program uses."""


def parse_address(url: str) -> URL:
    """Return the address of a database, `sqlite:///PATH` or `postgresql://…`; ValueError says that it is none."""
    try:
        address = make_url(url)
    except ArgumentError as err:
        raise ValueError("the address of a database is sqlite:///PATH or postgresql://USER@HOST/DATABASE") from err
    if not (address.drivername == "postgresql" or (address.drivername == "sqlite" and address.database)):
        raise ValueError(f"the address of a database begins with sqlite:/// or postgresql://, not with {address.drivername}:")
    return address


def writer_engine(address: URL, limits: DatabaseLimits, *, exclusive: bool = False) -> Engine:
    """
    Return the engine for transactions that write. Nothing is connected yet, but an SQLite file is created, readable for its owner only.

    Args:
        exclusive: There is one connection, and it is the only one to the database: connecting fails with a locked database while others
            have one, and others cannot write (SQLite: not even read) until the engine is disposed of. Both sides wait for `lock_timeout`.
    Raises:
        DatabaseUnavailable: The SQLite file cannot be created.
        ValueError: PostgreSQL's driver is not installed.
    """
    if address.drivername == "sqlite":
        return _sqlite_engine(address, limits, exclusive=exclusive)
    try:
        return _postgresql_engine(address, limits, exclusive=exclusive)
    except ImportError as err:
        raise ValueError(f"PostgreSQL needs the extra postgresql of this package: {err}") from err


def _sqlite_engine(address: URL, limits: DatabaseLimits, *, exclusive: bool) -> Engine:
    try:
        Path(address.database or "").touch(mode=0o600)
    except OSError as err:
        raise DatabaseUnavailable(f"{address.database}: {err.strerror}") from err
    engine = create_engine(
        address,
        pool_size=1,
        max_overflow=0,
        connect_args={"timeout": limits.lock_timeout, "check_same_thread": False},
    )
    prepare_connections(engine, lambda connection, _: _prepare(connection, limits, exclusive=exclusive))

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _prepare(connection: sqlite3.Connection, limits: DatabaseLimits, *, exclusive: bool) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    if exclusive:  # before the first access, so that SQLite locks the file and not only what others share of it in memory
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    _switch_to_wal(connection, limits.lock_timeout)
    # FULL, for a command leaves the queue as soon as it is committed: with NORMAL a loss of power could take back what was committed last.
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY", "cache_size = -16000"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    register_functions(connection.create_function, MatchBudget())  # no statement that writes has a regular expression


def _switch_to_wal(connection: sqlite3.Connection, seconds: float) -> None:
    """Let readers go on while somebody writes; the file remembers it. SQLite does not wait here when another process does the same."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as err:
            if err.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _postgresql_engine(address: URL, limits: DatabaseLimits, *, exclusive: bool) -> Engine:
    from psycopg.errors import LockNotAvailable

    engine = writing_engine(address, limits, pool_size=1 if exclusive else limits.writers, **common_options(limits))

    def claim(connection: psycopg.Connection[Any], _record: Any) -> None:
        function = "pg_advisory_lock" if exclusive else "pg_advisory_lock_shared"
        try:
            connection.execute(f"SELECT {function}(%s)", (_IN_USE,))
            connection.commit()
        except LockNotAvailable as err:
            raise DatabaseUnavailable("database is locked" if exclusive else "'puppet db move' has the database for itself") from err

    prepare_connections(engine, claim)
    return engine


def common_options(limits: DatabaseLimits) -> dict[str, Any]:
    """Return the options that all engines for PostgreSQL share."""
    return {
        "max_overflow": 0,
        "pool_timeout": limits.connect_timeout,
        "pool_pre_ping": True,
        "json_serializer": json_text,
        "json_deserializer": load_stored,
    }
