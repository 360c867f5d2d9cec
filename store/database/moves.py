"""
The records of a move in the databases: in the source that it is unchanged, in the target the progress of the move.

These tables exist from the first batch of a move until a store starts on the database.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, Text

UNFINISHED = "moving"
"""The version of the tables of a target that does not yet hold all of its source: no version of a store starts on that."""

_metadata = MetaData()

move_source = Table("move_source", _metadata, Column("id", Text, primary_key=True))
"""One row: while it is there, no store has started on this database. A target that began from it names it."""

move_target = Table(
    "move_target",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("tables_version", Text, nullable=False),
)
"""One row: the `id` of the source, its address without a password, and the version of the tables."""

move_progress = Table(
    "move_progress",
    _metadata,
    Column("table_name", Text, primary_key=True),
    Column("last_key", Text),
    Column("rows", BigInteger, nullable=False),
)
"""For each table the key of the last row that was moved, as a list in JSON, and the number of rows so far."""


def create_source_mark(connection: Connection) -> None:
    """Create the table `move_source`."""
    move_source.create(connection)


def create_target_marks(connection: Connection) -> None:
    """Create the tables of a target."""
    move_target.create(connection)
    move_progress.create(connection)


def forget_move(connection: Connection) -> None:
    """Remove these tables, where they are."""
    _metadata.drop_all(connection)
