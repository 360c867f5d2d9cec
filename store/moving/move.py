"""
A move: all rows of a database are copied to another one, and then compared.

Tables come in the order in which they refer to each other, rows in the order of their keys. Each batch is a transaction of the target,
which also notes the last key: so a move that was interrupted, however that happened, goes on behind it, and no row comes twice. No
store starts on a target before the end, and none uses either database as long as this runs. A source is left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, exists, func, select, update

from shared.errors import Conflict
from shared.failpoints import failpoint

from ..database.columns import json_text
from ..database.moves import move_progress
from ..database.schema import SCHEMA
from ..database.tables import metadata
from ..jsontext import load_stored
from .databases import MovingDatabase, check_exists, check_source, only_user, prepare_target
from .rows import StoredRow, StoredTable, TableDigest, size_of

MoveProgress = Callable[[str, int, int], None]
"""Is called with the current step, the number of finished rows, and of all rows."""


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """
    The limits of a move.

    Attributes:
        rows: The rows in one transaction at most.
        bytes: About how many bytes they take in memory, unless a single row is larger.
        wait: The seconds for which a database may be in use by somebody else.
    """

    rows: int = 5000
    bytes: int = 8 * 2**20
    wait: float = 5.0


@dataclass(frozen=True, slots=True)
class MoveResult:
    """
    The result of a move.

    Attributes:
        source: The address of the source, without a password.
        target: That of the target.
        is_resumed: Whether an earlier call had begun it.
        copied: The rows that this call has copied.
        tables: The contents of each table in both databases.
    """

    source: str
    target: str
    is_resumed: bool
    copied: int
    tables: dict[str, TableDigest]


@dataclass(slots=True)
class _Counter:
    """Counts rows of one part of the work, and reports them."""

    label: str
    total: int
    progress: MoveProgress
    done: int = 0

    def add(self, rows: int) -> None:
        self.done += rows
        self.progress(self.label, self.done, self.total)


def move_database(
    source: URL, target: URL, progress: MoveProgress, *, restart: bool = False, limits: MoveLimits | None = None
) -> MoveResult:
    """
    Copy all data of a store from one database to another, or continue an interrupted copy; return once both are equal. Blocks.

    Args:
        restart: Empty a target that an earlier move has begun to fill, and start again.
    Raises:
        Conflict: The source holds no data, the target holds others, or they are not equal at the end.
        Unavailable: A store runs on one of them, or it cannot be reached. Called again, it goes on.
        ConfigError: An address cannot be used.
    """
    if _are_same(source, target):
        raise Conflict("Source and target are the same database")
    limits = limits or MoveLimits()
    check_exists(source)
    with only_user(source, limits.wait) as first:
        check_source(first)
        with only_user(target, limits.wait) as second:
            is_resumed = prepare_target(first, second, restart=restart)
            tables = [StoredTable(table) for table in metadata.sorted_tables]
            copied = _copy(first, second, tables, progress, limits)
            with second.transaction() as connection:
                _raise_sequences(connection)
                _collect_statistics(connection)
            digests = _compare(first, second, tables, progress)
            with second.transaction() as connection:
                SCHEMA.set_version(connection, SCHEMA.newest)
            return MoveResult(first.name, second.name, is_resumed, copied, digests)


def _are_same(source: URL, target: URL) -> bool:
    if source.drivername == target.drivername == "sqlite":
        return Path(source.database or "").resolve() == Path(target.database or "").resolve()
    return source == target


def _copy(source: MovingDatabase, target: MovingDatabase, tables: Sequence[StoredTable], progress: MoveProgress, limits: MoveLimits) -> int:
    """Copy the rows that the target lacks; return how many."""
    with target.transaction() as connection:
        states = {state.table_name: state for state in connection.execute(select(move_progress))}
    with source.transaction() as connection:
        total = sum(table.count(connection) for table in tables)
    before: int = sum(state.rows for state in states.values())
    counter = _Counter("copied", total, progress)
    counter.add(before)
    for table in tables:
        state = states[table.name]
        after = None if state.last_key is None else load_stored(state.last_key.encode())
        assert after is None or isinstance(after, list)
        rows = state.rows
        with source.transaction() as connection:
            for batch in _batches(table.read(connection, after), limits):
                rows += len(batch)
                _write_batch(target, table, batch, rows)
                counter.add(len(batch))
    return counter.done - before


def _batches(rows: Iterator[StoredRow], limits: MoveLimits) -> Iterator[list[StoredRow]]:
    """Yield rows in batches within the limits."""
    batch: list[StoredRow] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += size_of(row)
        if len(batch) == limits.rows or size >= limits.bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write_batch(target: MovingDatabase, table: StoredTable, batch: Sequence[StoredRow], rows: int) -> None:
    """Write a batch and how far the move has come with it: `rows` are those of the table, with the batch."""
    with target.transaction() as connection:
        table.write(connection, batch)
        mark = update(move_progress).where(move_progress.c.table_name == table.name)
        connection.execute(mark.values(last_key=json_text(table.key_of(batch[-1])), rows=rows))
        failpoint("move.written")
    failpoint("move.committed")


def _raise_sequences(connection: Connection) -> None:
    """Have PostgreSQL count on behind the keys that were copied; SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in metadata.sorted_tables:
        if "id" in table.c:
            last = select(func.coalesce(func.max(table.c.id), 1)).scalar_subquery()
            has_rows = exists(select(table.c.id))
            connection.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "id"), last, has_rows)))


def _collect_statistics(connection: Connection) -> None:
    """Let the database analyze its tables, so that its first queries choose the right indexes."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA analysis_limit = 400")
        connection.exec_driver_sql("ANALYZE")
    else:
        connection.exec_driver_sql(f"ANALYZE {', '.join(metadata.tables)}")


def _compare(
    source: MovingDatabase, target: MovingDatabase, tables: Sequence[StoredTable], progress: MoveProgress
) -> dict[str, TableDigest]:
    """Return the digests of all tables; raise Conflict where those of source and target differ."""
    with target.transaction() as connection:
        counter = _Counter("compared", 2 * sum(table.count(connection) for table in tables), progress)
    digests: list[dict[str, TableDigest]] = []
    for database in (source, target):
        with database.transaction() as connection:
            digests.append({table.name: table.digest(connection, counter.add) for table in tables})
    of_source, of_target = digests
    different = [
        f"{name} ({of_source[name].rows} and {of_target[name].rows} rows)" for name in of_source if of_source[name] != of_target[name]
    ]
    if different:
        hint = "A program other than a store of this version has written to one of them; --restart empties the target and starts again."
        raise Conflict(f"{source.name} and {target.name} are not equal after the move: {', '.join(different)}", hint=hint)
    return of_source
