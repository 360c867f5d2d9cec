"""Checks of a store's database before the store runs. They change nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy import Connection, NullPool, create_engine, make_url, text

from shared.database.postgresql import DatabaseLimits
from shared.database.schema import NEWER, UnknownSchema

from ..commands.commands import DatabaseUnavailable
from .engine import Database, StatementTimeout, translated_errors
from .moves import UNFINISHED
from .schema import HALF_MOVED, SCHEMA

_ADDRESS_HINT = "The setting is store: postgresql://USER@HOST/DATABASE. Does psql with that address answer, from this account?"


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault that stops a store (error), or that the administrator should know (warning), with its remedy."""

    severity: Literal["error", "warning"]
    message: str
    hint: str = ""


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
    yield from server_problems(connection, name)
    yield from _schema_problems(connection, name)


def server_problems(connection: Connection, name: str) -> Iterator[Problem]:
    """Yield the faults that make a PostgreSQL database unusable for the store, independent of its tables; messages call it `name`."""
    if connection.scalar(text("SELECT pg_is_in_recovery()")):
        yield Problem("error", f"The store's {name} is on a standby, which cannot be written", "Name the primary in the setting store.")
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        hint = "Make another one: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0."
        yield Problem("error", f"The store's {name} has the encoding {encoding}, which lacks characters of facts and reports", hint)
    if not connection.scalar(text("SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)")):
        user = connection.scalar(text("SELECT current_user"))
        yield Problem(
            "error", f"{user} may not make tables in the store's {name}", f"As its owner: GRANT CREATE ON SCHEMA public TO {user}."
        )


def _schema_problems(connection: Connection, name: str) -> Iterator[Problem]:
    try:
        version = SCHEMA.version(connection)
    except UnknownSchema as err:
        yield Problem("error", f"{name}: {err}", "The setting is store.")
        return
    if version in (None, SCHEMA.newest):
        return
    if version == UNFINISHED:
        yield Problem("error", f"{name}: {HALF_MOVED}", "The setting is store.")
        return
    if SCHEMA.can_be_upgraded(version or ""):
        hint = "Back it up first ('puppet db export'): an older version of this program does not read it afterwards."
        yield Problem("warning", f"{name}: the tables are of version {version}, and the next start brings them to {SCHEMA.newest}", hint)
    else:
        yield Problem("error", f"{name}: {NEWER}", f"Its tables are of version {version}, this program's of {SCHEMA.newest}.")
