"""Checks of a store's database before the store runs. They change nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, NullPool, create_engine, make_url, text

from shared.database.inspection import Problem, schema_problems, server_problems
from shared.database.postgresql import DatabaseLimits
from shared.database.schema import UnknownSchema

from ..commands.commands import DatabaseUnavailable
from .engine import Database, StatementTimeout, translated_errors
from .moves import UNFINISHED
from .schema import HALF_MOVED, SCHEMA

_ADDRESS_HINT = "The setting is store: postgresql://USER@HOST/DATABASE. Does psql with that address answer, from this account?"


def inspect_database(url: str, seconds: float) -> list[Problem]:
    """Return the problems of a database; `seconds` are those for a connection and for a statement. Blocks."""
    if url.startswith("sqlite:"):
        return _inspect_sqlite(Path(make_url(url).database or ""))
    try:
        return asyncio.run(_inspect_postgresql(url, seconds))
    except (ValueError, DatabaseUnavailable, StatementTimeout) as err:
        return [Problem("error", f"The store's database cannot be used: {err}", _ADDRESS_HINT)]


def _inspect_sqlite(path: Path) -> list[Problem]:
    if not path.exists():
        return []  # the first start makes it
    # Only with a log beside it can somebody be writing; without one, SQLite would make files here to find that out.
    options = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True), poolclass=NullPool)
    try:
        with translated_errors(), engine.connect() as connection:
            return list(_schema_problems(connection, f"{path}"))
    except DatabaseUnavailable as err:
        return [Problem("error", f"The store's database {path} cannot be opened: {err}", "Restore it from a backup, or move it away.")]


async def _inspect_postgresql(url: str, seconds: float) -> list[Problem]:
    database = Database.open(url, DatabaseLimits(connect_timeout=seconds))
    try:
        async with database.reading(seconds) as connection:
            return await connection.run_sync(lambda connection: list(_postgresql_problems(connection)))
    finally:
        await database.close()


def _postgresql_problems(connection: Connection) -> Iterator[Problem]:
    name = f"database {connection.scalar(text('SELECT current_database()'))}"
    yield from server_problems(connection, f"the store's {name}", "store")
    yield from _schema_problems(connection, name)


def _schema_problems(connection: Connection, name: str) -> Iterator[Problem]:
    with suppress(UnknownSchema):  # said below
        if SCHEMA.version(connection) == UNFINISHED:
            yield Problem("error", f"{name}: {HALF_MOVED}", "The setting is store.")
            return
    backup = "Back it up first ('puppet db export'): an older version of this program does not read it afterwards."
    yield from schema_problems(connection, SCHEMA, name, "store", backup)
