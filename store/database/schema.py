"""The version of the database's tables: empty databases get today's, older ones are migrated."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, Table, Text, insert, inspect, select, text, update

from .moves import UNFINISHED, forget_move
from .tables import metadata

HALF_MOVED = "the database holds only a part of the data of 'puppet db move': run that again until it succeeds, or use another database"

NEWER = "the database was written by a newer version of this program: use that, or restore a backup"

_SCRIPTS = Path(__file__).parent / "migrations"

HEAD = max(path.name.partition("_")[0] for path in _SCRIPTS.glob("versions/[0-9]*_*.py"))
"""The newest script in `migrations/versions`: what `tables.py` says."""

_LOCK = 0x62756E72616B75
"""A number for PostgreSQL's advisory lock, which no other program uses."""

_VERSION = Table("alembic_version", MetaData(), Column("version_num", Text))


class UnknownSchema(ValueError):
    """The address leads to a database whose tables this version of the store does not know."""


def migrate_schema(connection: Connection) -> None:
    """
    Bring the tables up to date, in the transaction of the connection.

    Other processes that do the same wait, and find the work done. What the database says of a move is removed: from now on it changes.
    UnknownSchema is raised when the tables are newer than this program, are not its own, or hold a part of another database only.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    version = schema_version(connection)
    if version is None:
        create_schema(connection, HEAD)
    elif version == UNFINISHED:
        raise UnknownSchema(HALF_MOVED)
    elif version != HEAD:
        upgrade_schema(connection)
    forget_move(connection)


def create_schema(connection: Connection, version: str) -> None:
    """Create the newest tables in an empty database, under a version."""
    metadata.create_all(connection)  # the scripts would do the same, step by step
    _VERSION.create(connection)
    connection.execute(insert(_VERSION).values(version_num=version))


def set_schema_version(connection: Connection, version: str) -> None:
    """Write another version of the tables into a database."""
    connection.execute(update(_VERSION).values(version_num=version))


def drop_schema(connection: Connection) -> None:
    """Remove the store's tables, with all data, their version and the records of a move."""
    metadata.drop_all(connection)
    _VERSION.drop(connection)
    forget_move(connection)


def schema_version(connection: Connection) -> str | None:
    """Return the version of the store's tables in a database, None where it has none; UnknownSchema when the tables are not the store's."""
    names = set(inspect(connection).get_table_names())
    if "alembic_version" in names:
        return connection.scalar(select(_VERSION.c.version_num)) or ""
    if names & metadata.tables.keys():
        raise UnknownSchema("the database has tables of the same names as the store's, but no version of them: use another one")
    return None


def can_be_upgraded(version: str) -> bool:
    """Return whether there are scripts that lead from a version of the tables to the newest."""
    return any(_SCRIPTS.glob(f"versions/{version}_*.py"))


def upgrade_schema(connection: Connection) -> None:
    """Run the scripts that the tables lack, in the transaction of the connection; UnknownSchema is raised when there is no way."""
    # Alembic takes 12 MB, which no process shall hold for the one start in a hundred at which there is something to migrate.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as err:
        raise UnknownSchema(NEWER) from err
