"""One database of masters for all tests of a process: to make its tables takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.state.database import StateDatabase
from shared.state.tables import metadata
from tests.support.postgresql import PostgresqlServer


@pytest.fixture(scope="session")
def state_database(postgresql: PostgresqlServer) -> Iterator[str]:
    postgresql.run_sql("CREATE DATABASE masters")
    address = postgresql.address("masters")
    database = StateDatabase.open(address)
    database.transact(lambda connection: None)
    database._engine.dispose()
    yield address
    postgresql.run_sql("DROP DATABASE masters WITH (FORCE)")


@pytest.fixture
def state_url(postgresql: PostgresqlServer, state_database: str) -> Iterator[str]:
    """The address of a database with the masters' tables, which are empty."""
    yield state_database
    postgresql.run_sql("; ".join(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables)), "masters")
