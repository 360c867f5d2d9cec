"""A database belongs to stores, or to one program that is alone with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, func, select

from shared.database.engines import prepare_connections
from shared.database.postgresql import DatabaseLimits
from store.commands.commands import DatabaseUnavailable
from store.database.engine import translated_errors
from store.database.tables import nodes
from store.database.writers import parse_address, writer_engine

IMPATIENT = DatabaseLimits(lock_timeout=0.05)


def engine(url: str, *, exclusive: bool) -> Engine:
    return writer_engine(parse_address(url), IMPATIENT, exclusive=exclusive)


def use(engine: Engine) -> None:
    """Connect, and keep the connection in the engine's pool, as stores do."""
    with translated_errors(), engine.begin() as connection:
        assert connection.scalar(select(func.count()).select_from(nodes)) == 0


def test_a_connection_that_cannot_be_prepared_is_closed() -> None:
    made: list[sqlite3.Connection] = []
    engine = create_engine("sqlite://")

    def fail(connection: sqlite3.Connection, _: object) -> None:
        made.append(connection)
        raise ZeroDivisionError

    prepare_connections(engine, fail)
    with pytest.raises(ZeroDivisionError):
        engine.connect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_nobody_is_alone_with_a_database_that_a_store_has_open(database_url: str) -> None:
    store, other = engine(database_url, exclusive=False), engine(database_url, exclusive=True)
    use(store)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match="database is locked"):
            use(other)
    store.dispose()
    use(other)
    other.dispose()


def test_no_store_uses_a_database_with_which_somebody_is_alone(database_url: str) -> None:
    alone, store = engine(database_url, exclusive=True), engine(database_url, exclusive=False)
    use(alone)
    with pytest.raises(DatabaseUnavailable, match=r"database is locked|'puppet db move' has the database for itself"):
        use(store)
    with pytest.raises(DatabaseUnavailable, match="database is locked"):
        use(engine(database_url, exclusive=True))
    alone.dispose()
    use(store)
    store.dispose()


def test_stores_share_a_database(database_url: str) -> None:
    engines = [engine(database_url, exclusive=False) for _ in range(2)]
    for shared in engines:
        use(shared)
    for shared in engines:
        shared.dispose()


def test_an_sqlite_file_outlives_who_was_alone_with_it(sqlite_url: str, tmp_path: Path) -> None:
    alone = engine(sqlite_url, exclusive=True)
    use(alone)
    alone.dispose()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.sqlite"]
