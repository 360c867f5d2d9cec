"""The databases of the recorded data set, which tests only read."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.database.engine import Database
from store.queries.service import QueryService
from store.writing.writer import DatabaseWriter
from tests.support.postgresql import PostgresqlServer
from tests.support.recorded_store import recorded_commands


def _load(url: str) -> None:
    async def load() -> None:
        database = Database.open(url)
        await database.migrate()
        await DatabaseWriter(database).write(recorded_commands())
        await database.close()

    asyncio.run(load())


@pytest.fixture(scope="session")
def recorded_sqlite_url(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> str:
    """The address of the data set on SQLite."""
    path = tmp_path_factory.mktemp("recorded") / "recorded.sqlite"
    shutil.copyfile(sqlite_template, path)
    _load(f"sqlite:///{path}")
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def recorded_postgresql_url(postgresql: PostgresqlServer) -> str:
    """The address of the data set on PostgreSQL."""
    postgresql.run_sql("CREATE DATABASE recorded")
    _load(postgresql.address("recorded"))
    return postgresql.address("recorded")


@pytest.fixture(params=["sqlite", "postgresql"])
def recorded_url(request: pytest.FixtureRequest) -> str:
    """The address of the data set, on each kind of database."""
    url: str = request.getfixturevalue(f"recorded_{request.param}_url")
    return url


@pytest.fixture
async def recorded(recorded_url: str) -> AsyncIterator[Database]:
    """The database with the recorded data set, on each kind of database. Tests do not write into it."""
    database = Database.open(recorded_url)
    yield database
    await database.close()


@pytest.fixture
def service(recorded: Database) -> QueryService:
    """Who answers questions about the recorded data set."""
    return QueryService(recorded)
