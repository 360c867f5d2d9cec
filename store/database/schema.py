"""The version of the store's tables: empty databases get today's, older ones are migrated, half-moved ones are refused."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from shared.database.schema import Schema, UnknownSchema

from .moves import UNFINISHED, forget_move
from .tables import metadata

HALF_MOVED = "the database holds only a part of the data of 'puppet db move': run that again until it succeeds, or use another database"

SCHEMA = Schema(metadata, Path(__file__).parent / "migrations", "alembic_version", 0x62756E72616B75)


def migrate_schema(connection: Connection) -> None:
    """
    Bring the tables up to date, in the transaction of the connection.

    Other processes that do the same wait, and find the work done. What the database says of a move is removed: from now on it changes.
    UnknownSchema is raised when the tables are newer than this program, are not its own, or hold a part of another database only.
    """
    SCHEMA.lock_migration(connection)
    if SCHEMA.version(connection) == UNFINISHED:
        raise UnknownSchema(HALF_MOVED)
    SCHEMA.migrate(connection)
    forget_move(connection)


def drop_schema(connection: Connection) -> None:
    """Remove the store's tables, with all data, their version and the records of a move."""
    SCHEMA.drop(connection)
    forget_move(connection)
