"""The version of a database's tables: empty databases get today's, older ones are migrated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, Table, Text, insert, inspect, select, text, update

ANOTHER_ENCODING = "make another one: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
NEWER = "the database was written by a newer version of this program: use that, or restore a backup"


class UnknownSchema(ValueError):
    """The address leads to a database whose tables this version of the program does not know, or in which it cannot make them."""


def encoding_problem(connection: Connection) -> str:
    """Return what is wrong with the encoding of a PostgreSQL database, as what is said of it; '' when it is UTF8."""
    encoding = connection.scalar(text("SHOW server_encoding"))
    return "" if encoding == "UTF8" else f"has the encoding {encoding}, which lacks characters of facts and reports"


@dataclass(frozen=True, eq=False)
class Schema:
    """
    The tables of one kind of database.

    Args:
        tables: Today's tables.
        scripts: The folder of Alembic's scripts, which lead from older tables to these. The newest script in `versions` names them.
        version_table: Holds the version.
        lock: The number of PostgreSQL's advisory lock for migrations, which no other program uses.
    """

    tables: MetaData
    scripts: Path
    version_table: str
    lock: int

    @cached_property
    def newest(self) -> str:
        """The version of today's tables."""
        return max(path.name.partition("_")[0] for path in self.scripts.glob("versions/[0-9]*_*.py"))

    @cached_property
    def _version(self) -> Table:
        return Table(self.version_table, MetaData(), Column("version_num", Text))

    def lock_migration(self, connection: Connection) -> None:
        """Wait until no other process migrates the same tables, and keep it so until the transaction ends."""
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": self.lock})

    def migrate(self, connection: Connection) -> None:
        """
        Bring the tables up to date, in the transaction of the connection. Other processes that do the same wait, and find the work done.

        UnknownSchema is raised when the tables are newer than this program, or are not its own, or an empty database is not in UTF8.
        """
        self.lock_migration(connection)
        version = self.version(connection)
        if version is None:
            if connection.dialect.name == "postgresql" and (problem := encoding_problem(connection)):
                raise UnknownSchema(f"the database {problem}: {ANOTHER_ENCODING}")
            self.create(connection, self.newest)
        elif version != self.newest:
            self.upgrade(connection)

    def version(self, connection: Connection) -> str | None:
        """Return the version of the tables in a database, None where it has none; UnknownSchema when the tables are not ours."""
        names = set(inspect(connection).get_table_names())
        if self.version_table in names:
            return connection.scalar(select(self._version.c.version_num)) or ""
        if names & self.tables.tables.keys():
            raise UnknownSchema("the database has tables of the same names as the store's, but no version of them: use another one")
        return None

    def create(self, connection: Connection, version: str) -> None:
        """Create today's tables in an empty database, under a version."""
        self.tables.create_all(connection)  # the scripts would do the same, step by step
        self.create_version(connection, version)

    def create_version(self, connection: Connection, version: str) -> None:
        """Write the version of tables that have none yet."""
        self._version.create(connection)
        connection.execute(insert(self._version).values(version_num=version))

    def set_version(self, connection: Connection, version: str) -> None:
        """Write another version of the tables into a database."""
        connection.execute(update(self._version).values(version_num=version))

    def drop(self, connection: Connection) -> None:
        """Remove the tables, with all data, and their version."""
        self.tables.drop_all(connection)
        self._version.drop(connection)

    def can_be_upgraded(self, version: str) -> bool:
        """Return whether there are scripts that lead from a version of the tables to the newest."""
        return any(self.scripts.glob(f"versions/{version}_*.py"))

    def upgrade(self, connection: Connection, version: str = "head") -> None:
        """Run the scripts that the tables lack, up to a version, in the connection's transaction; UnknownSchema: there is no way."""
        # Alembic takes 12 MB, which no process shall hold for the one start in a hundred at which there is something to migrate.
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(self.scripts).replace("%", "%%"))
        config.attributes["connection"] = connection
        config.attributes["version_table"] = self.version_table
        try:
            command.upgrade(config, version)
        except CommandError as err:
            raise UnknownSchema(NEWER) from err
