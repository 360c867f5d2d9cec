"""The store's database for tests, empty, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from store.database.engine import Database
from store.database.tables import metadata
from tests.support.postgresql import PostgresqlServer, postgresql_programs

_DATABASE = "store"
_numbers = itertools.count()


def create_tables(url: str) -> None:
    """Create the store's tables in an empty database."""

    async def migrate() -> None:
        database = Database.open(url)
        await database.migrate()
        await database.close()

    asyncio.run(migrate())


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server; the tests that ask for one are skipped where it is not installed."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    server = PostgresqlServer(programs)
    try:
        server.run_sql(f"CREATE DATABASE {_DATABASE}")
        create_tables(server.address(_DATABASE))
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite that has the store's tables and no rows."""
    path = tmp_path_factory.mktemp("store") / "template.sqlite"
    create_tables(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of a new database on SQLite with the store's tables."""
    shutil.copyfile(sqlite_template, tmp_path / "store.sqlite")
    return f"sqlite:///{tmp_path / 'store.sqlite'}"


@pytest.fixture
def postgresql_url(postgresql: PostgresqlServer) -> Iterator[str]:
    """The address of a database on PostgreSQL with the store's tables and no rows."""
    yield postgresql.address(_DATABASE)
    # 50 times faster than a new database, or than TRUNCATE.
    postgresql.run_sql("; ".join(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables)), _DATABASE)


@pytest.fixture
def empty_postgresql_url(postgresql: PostgresqlServer) -> Iterator[str]:
    """The address of a new database on PostgreSQL without any tables."""
    name = f"empty_{next(_numbers)}"
    postgresql.run_sql(f"CREATE DATABASE {name}")
    yield postgresql.address(name)
    postgresql.run_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database without any tables, on each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.sqlite'}"
    url: str = request.getfixturevalue("empty_postgresql_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a database with the store's tables and no rows, on each kind of database."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A database with the store's tables and no rows, on each kind of database."""
    database = Database.open(database_url)
    try:
        yield database
    finally:
        await database.close()
