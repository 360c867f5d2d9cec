"""The two databases of a move: exclusive access to them, and the checks of source and target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, exists, insert, inspect, select
from sqlalchemy.exc import DBAPIError

from shared.database.inspection import server_problems
from shared.database.postgresql import DatabaseLimits
from shared.database.schema import UnknownSchema
from shared.errors import ConfigError, Conflict, PuppetError, Unavailable

from ..commands.commands import DatabaseUnavailable
from ..database.engine import StatementTimeout, translated_errors
from ..database.moves import UNFINISHED, create_source_mark, create_target_marks, forget_move, move_progress, move_source, move_target
from ..database.schema import SCHEMA, drop_schema
from ..database.tables import metadata
from ..database.writers import writer_engine

_AGAIN = "When it can be, the same command goes on where this one stopped."
_STOP = "Stop the masters and 'puppet db' that use it, and whatever else has it open."
_RESTART = "If that can be discarded, --restart empties the target and starts again."
_OTHER_TARGET = "Name an empty database: a new one on PostgreSQL, or a file that does not exist."


@dataclass(frozen=True, slots=True)
class MovingDatabase:
    """
    A database with which this process is alone.

    Attributes:
        name: Its address without a password.
    """

    name: str
    _engine: Engine

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """
        Lend a connection in a transaction, which is committed at the end; one at a time.

        Raises:
            Unavailable: Somebody else uses the database, or it cannot be reached any more.
            PuppetError: It refuses a statement.
        """
        try:
            with translated_errors(), self._engine.begin() as connection:
                yield connection
        except (DatabaseUnavailable, StatementTimeout) as err:
            if "database is locked" in str(err):
                message = f"{self.name} is in use: a store runs on it, or another program has it open"
                raise Unavailable(message, retry_after=0, hint=_STOP) from err
            raise Unavailable(f"{self.name} cannot be used: {err}", retry_after=0, hint=_AGAIN) from err
        except DBAPIError as err:
            text = str(err.orig).partition("\n")[0]
            raise PuppetError(f"{self.name} refuses a statement: {text}") from err


@contextmanager
def only_user(address: URL, wait: float) -> Iterator[MovingDatabase]:
    """
    Lend a database exclusively. It may still be in use for `wait` seconds.

    Raises:
        Unavailable: A store runs on it, or another program has it open, or it cannot be reached.
        ConfigError: The address cannot be used here.
    """
    name = address.render_as_string(hide_password=True)
    try:
        engine = writer_engine(address, DatabaseLimits(lock_timeout=wait), exclusive=True)
    except (ValueError, DatabaseUnavailable) as err:
        raise ConfigError(f"{name} cannot be used: {err}") from err
    database = MovingDatabase(name, engine)
    try:
        with database.transaction():
            pass  # connects, and with that locks out everybody else
        yield database
    finally:
        engine.dispose()


def check_exists(address: URL) -> None:
    """Raise ConfigError when the file of a source is not there; to open it would make it."""
    if address.drivername == "sqlite" and not Path(address.database or "").is_file():
        raise ConfigError(f"There is no database {address.database}", hint="--from names the database that holds the data.")


def check_source(source: MovingDatabase) -> None:
    """Raise Conflict unless a database has all data of a store of this version."""
    with source.transaction() as connection:
        version = _version(connection, source.name)
    if version is None:
        raise Conflict(f"{source.name} holds no data of a store", hint="--from names the database that holds the data.")
    if version == UNFINISHED:
        raise Conflict(f"{source.name} is itself the target of a move that has not ended", hint="End that move first.")
    if version != SCHEMA.newest:
        hint = "Start a store of this version on it once, which brings them up to date; a newer one needs that newer version."
        raise Conflict(f"{source.name} has tables of version {version}, not {SCHEMA.newest}", hint=hint)


def prepare_target(source: MovingDatabase, target: MovingDatabase, *, restart: bool) -> bool:
    """
    Prepare a target for the rows of a source, so that no store starts on it until its version is set; return whether it has some rows
    already.

    Args:
        restart: Empty a target that an earlier move has begun to fill.
    Raises:
        Conflict: The target holds something else.
        ConfigError: No store could use the target.
    """
    with source.transaction() as connection:
        id = _source_id(connection)
    with target.transaction() as connection:
        if connection.dialect.name == "postgresql":
            for problem in server_problems(connection, f"the database {target.name}", "store"):
                raise ConfigError(problem.message, hint=problem.hint)
        version = _version(connection, target.name)
        mark = connection.execute(select(move_target)).one_or_none() if inspect(connection).has_table(move_target.name) else None
        if mark is not None and not restart:
            if (mark.id, mark.tables_version) == (id, SCHEMA.newest):
                return True
            has_changed = "which a store has changed since" if mark.source == source.name else "another database"
            raise Conflict(f"{target.name} holds the data of a move from {mark.source}, {has_changed}", hint=_RESTART)
        if mark is not None:
            drop_schema(connection)
            version = None
        if version is None:
            SCHEMA.create(connection, UNFINISHED)
        elif version == SCHEMA.newest and _is_empty(connection):
            forget_move(connection)
            SCHEMA.set_version(connection, UNFINISHED)
        else:
            raise Conflict(f"{target.name} holds data already, or tables of something else", hint=_OTHER_TARGET)
        create_target_marks(connection)
        connection.execute(insert(move_target).values(id=id, source=source.name, tables_version=SCHEMA.newest))
        tables = [{"table_name": table.name, "rows": 0} for table in metadata.sorted_tables]
        connection.execute(insert(move_progress), tables)
    return False


def _version(connection: Connection, name: str) -> str | None:
    try:
        return SCHEMA.version(connection)
    except UnknownSchema as err:
        raise Conflict(f"{name}: {err}") from err


def _source_id(connection: Connection) -> str:
    """Return an id of a source that is valid as long as no store starts on it."""
    if inspect(connection).has_table(move_source.name):
        known: str | None = connection.scalar(select(move_source.c.id))
        if known is not None:
            return known
    else:
        create_source_mark(connection)
    id = str(uuid4())
    connection.execute(insert(move_source).values(id=id))
    return id


def _is_empty(connection: Connection) -> bool:
    """Return whether all tables of the store are there, and hold nothing."""
    if not metadata.tables.keys() <= set(inspect(connection).get_table_names()):
        return False
    return not any(connection.scalar(select(exists(select(table)))) for table in metadata.sorted_tables)
