"""
Rows that nodes share and that none uses any more.

A reader searches for them, so that commands continue; then a short transaction deletes those that are still unused. On PostgreSQL it
locks them first and checks them again in a second statement, which sees what was committed before; what a command is about to use is
left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, exists, select
from sqlalchemy.exc import IntegrityError

from ..database.engine import Database
from ..database.tables import (
    catalogs,
    environments,
    factsets,
    node_packages,
    packages,
    parameter_sets,
    producers,
    reports,
    resources,
)

_BATCH = 500


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table of shared rows, and the columns that hold their ids."""

    table: Table
    users: tuple[Column[int], ...]

    def is_unused(self) -> ColumnElement[bool]:
        """Return a condition: no other row refers to a row."""
        return and_(*(~exists().where(column == self.table.c.id) for column in self.users))


SHARED_TABLES = {
    shared.table.name: shared
    for shared in (
        SharedTable(packages, (node_packages.c.package_id,)),
        SharedTable(parameter_sets, (resources.c.parameter_set_id,)),
        SharedTable(environments, (factsets.c.environment_id, catalogs.c.environment_id, reports.c.environment_id)),
        SharedTable(producers, (factsets.c.producer_id, catalogs.c.producer_id, reports.c.producer_id)),
    )
}


async def collect_table(database: Database, shared: SharedTable) -> int:
    """Delete the unused rows of a table, and return how many."""
    key = shared.table.c.id
    total, after = 0, 0
    while True:
        async with database.reading() as connection:
            found = await connection.scalars(select(key).where((key > after) & shared.is_unused()).order_by(key).limit(_BATCH))
            ids = list(found)
        if not ids:
            return total
        total += await _delete(database, shared, ids)
        after = ids[-1]


async def _delete(database: Database, shared: SharedTable, ids: Sequence[int]) -> int:
    def work(connection: Connection) -> int:
        key = shared.table.c.id
        locked = connection.scalars(select(key).where(key.in_(ids)).with_for_update(skip_locked=True)).all()
        if not locked:
            return 0
        return connection.execute(delete(shared.table).where(key.in_(locked) & shared.is_unused())).rowcount

    try:
        return await database.write(work)
    except IntegrityError:
        return 0  # a command has begun to use one of them since: the next time will do


def update_statistics(connection: Connection) -> None:
    """Let SQLite analyze its tables, so that it chooses the right indexes; PostgreSQL does so by itself."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA analysis_limit = 400")
        connection.exec_driver_sql("PRAGMA optimize")
