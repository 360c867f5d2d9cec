"""The writer: it carries out batches of commands, each in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from ..commands.commands import DatabaseUnavailable, ReceivedCommand
from ..database.engine import Database, StatementTimeout
from .catalogs import CatalogChange, write_catalogs
from .facts import FactsChange, write_facts
from .nodes import StartAgain, lock_nodes, write_inputs, write_nodes
from .reports import NewReports
from .shared_rows import NameIds, SharedRows

_ATTEMPTS = 5


class DatabaseWriter:
    """
    Carries out commands by writing what they say into the database: a `CommandWriter`.

    A batch is one transaction of four steps, each in an order that is the same for all batches, so that no two of them wait for each
    other: lock the nodes; compare what the commands say with what is stored; look up or insert the rows that nodes share; write.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._names = NameIds()

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        """Carry out the commands in their order, all of them or none; see CommandWriter."""
        if not commands:
            return
        for _ in range(_ATTEMPTS):
            try:
                shared = await self._database.write(lambda connection: self._carry_out(connection, commands))
            except StartAgain:
                continue
            except StatementTimeout as err:
                # Seldom the fault of a command: a disk or a server that is slow for a while.
                raise DatabaseUnavailable(f"writing took too long: {err}") from err
            except IntegrityError as err:
                if not _is_foreign_key(err):
                    raise
                self._names.forget()  # an environment or a producer has been deleted as unused
            else:
                self._names.keep(shared)
                return
        raise DatabaseUnavailable("others kept changing the same rows")

    def _carry_out(self, connection: Connection, commands: Sequence[ReceivedCommand]) -> SharedRows:
        shared = SharedRows(self._names)
        states = lock_nodes(connection, commands)
        facts = [FactsChange(connection, node, shared) for node in states if node.facts]
        catalogs = [CatalogChange(connection, node, shared) for node in states if node.catalog]
        reports = NewReports(connection, states, shared)
        shared.resolve(connection)
        write_facts(connection, facts, shared)
        write_catalogs(connection, catalogs, shared)
        write_inputs(connection, states)
        reports.write(connection, shared)
        write_nodes(connection, states)
        return shared


def _is_foreign_key(err: IntegrityError) -> bool:
    original = err.orig
    if isinstance(original, sqlite3.Error):
        return original.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    return getattr(original, "sqlstate", None) == "23503"
