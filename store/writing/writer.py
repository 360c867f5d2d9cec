"""The writer: it carries out batches of commands, each in one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from ..commands.commands import DatabaseUnavailable, ReceivedCommand, ReplaceCatalog, ReplaceFacts, Unfinished
from ..database.engine import Database, StatementTimeout
from .catalogs import CatalogChange, CatalogTooLarge, edges_hash, write_catalogs
from .facts import MANY_FACTS, FactsAndPackages, FactsChange, NewFacts, write_facts
from .large_catalogs import take_place, write_in_slices
from .nodes import StartAgain, lock_nodes, write_inputs, write_nodes
from .reports import NewReports
from .shared_rows import NameIds, SharedRows, Unresolved

# Each is lost only to another writer that got through; five in a row mean a lasting contention.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _LargeCommand:
    """A command that is written in slices, which a generator does; each connection that is sent to it is one transaction."""

    received: ReceivedCommand
    slices: Generator[None, Connection, None]
    is_whole: bool = True
    """True: the last slice completes the command; otherwise it starts again, with the missing rows in place."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is made of commands before the transaction: many facts, by the ids of their commands, and the reports."""

    facts: Mapping[int, NewFacts]
    reports: NewReports


class DatabaseWriter:
    """
    Carries out commands by writing their data into the database: a `CommandWriter`.

    A batch is one transaction of four steps, each in an order that is the same for all batches, so that no two of them wait for each
    other: lock the nodes; compare what the commands say with what is stored; look up or insert the rows that nodes share; write.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._names = NameIds()
        self._large: _LargeCommand | None = None

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        """Carry out the commands in their order, all of them or none; see CommandWriter."""
        if not commands:
            return
        # The queue gives the same command again until it is whole.
        if self._large is not None and list(commands) == [self._large.received]:
            await self._continue(self._large)
            return
        prepared = await asyncio.to_thread(_prepare, commands)
        keep_packages = False
        for _ in range(_ATTEMPTS):
            try:
                work = partial(self._carry_out, commands=commands, prepared=prepared, keep_packages=keep_packages)
                shared = await self._database.write(work)
            except StartAgain:
                continue
            except FactsAndPackages:
                if len(commands) > 1:
                    raise Unfinished from None
                keep_packages = True
            except (CatalogTooLarge, Unresolved) as err:
                if self._large is None and len(commands) == 1:
                    if isinstance(err, Unresolved):
                        self._large = _LargeCommand(commands[0], err.write_in_slices(), is_whole=False)
                        next(self._large.slices)
                    else:
                        self._large = await asyncio.to_thread(self._begin, commands[0])
                raise Unfinished from None
            except StatementTimeout as err:
                # Seldom the fault of a command: a disk or a server that is slow for a while.
                raise DatabaseUnavailable(f"writing took too long: {err}") from err
            except IntegrityError as err:
                if not _is_foreign_key(err):
                    raise
                self._names.forget()  # an environment or a producer has been deleted as unused
            else:
                self._names.keep(shared)
                if keep_packages:
                    raise Unfinished
                return
        raise DatabaseUnavailable("others kept changing the same rows")

    def _begin(self, received: ReceivedCommand) -> _LargeCommand:
        """Return a command before anything is written; raise PayloadRejected."""
        command = received.command
        assert isinstance(command, ReplaceCatalog)
        digest = edges_hash(command)

        def replace(connection: Connection, hidden: int) -> None:
            (state,) = lock_nodes(connection, [received])
            if state.catalog is not None:
                take_place(connection, state.id, state.certname, hidden)
            self._carry_out(connection, [received], _Prepared({}, NewReports([])), written_edges=digest)

        slices = write_in_slices(command, self._names, replace)
        next(slices)
        return _LargeCommand(received, slices)

    async def _continue(self, large: _LargeCommand) -> None:
        """Write the next slice of a large command; raise Unfinished when there are more."""

        def write_slice(connection: Connection) -> bool:
            try:
                large.slices.send(connection)
            except StopIteration:
                return False
            return True

        self._large = None  # after an error it begins anew
        try:
            has_more = await self._database.write(write_slice)
        except StatementTimeout as err:
            raise DatabaseUnavailable(f"writing took too long: {err}") from err
        if has_more:
            self._large = large
        if has_more or not large.is_whole:
            raise Unfinished

    def _carry_out(
        self,
        connection: Connection,
        commands: Sequence[ReceivedCommand],
        prepared: _Prepared,
        *,
        written_edges: str | None = None,
        keep_packages: bool = False,
    ) -> SharedRows:
        shared = SharedRows(self._names)
        states = lock_nodes(connection, commands)
        facts = [
            FactsChange(connection, node, shared, prepared.facts.get(id(node.facts[0])), keep_packages=keep_packages)
            for node in states
            if node.facts
        ]
        # Only compared here: all shared rows must be known before the first row that refers to them is written.
        catalogs = [CatalogChange(connection, node, shared, written_edges) for node in states if node.catalog]
        prepared.reports.compare(connection, shared)
        # After the nodes are locked, and in a fixed order of tables and keys: no two batches can wait for each other.
        shared.resolve(connection)
        write_facts(connection, facts, shared)
        write_catalogs(connection, catalogs, shared)
        write_inputs(connection, states)
        prepared.reports.write(connection, states, shared)
        # Last, since reports may have changed which one is the latest.
        write_nodes(connection, states)
        return shared


def _prepare(commands: Sequence[ReceivedCommand]) -> _Prepared:
    facts: dict[int, NewFacts] = {}
    for received in commands:
        command = received.command
        if isinstance(command, ReplaceFacts) and len(command.values) > MANY_FACTS:
            facts[id(command)] = NewFacts(command)
            facts[id(command)].prepare()
    return _Prepared(facts, NewReports(commands))


def _is_foreign_key(err: IntegrityError) -> bool:
    original = err.orig
    if isinstance(original, sqlite3.Error):
        return original.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    # PostgreSQL's foreign_key_violation.
    return getattr(original, "sqlstate", None) == "23503"
