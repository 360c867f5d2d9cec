"""What is said about the masters' database before a master uses it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import make_url

from master.checks.report import check_state
from shared.settings import MasterSettings, load
from shared.state.database import StateDatabase
from shared.state.inspection import inspect_state
from shared.state.tables import SCHEMA
from tests.support.postgresql import PostgresqlServer


def messages(url: str) -> list[str]:
    return [f"{problem.severity}: {problem.message}" for problem in inspect_state(url)]


def test_an_empty_database_is_in_order_and_stays_empty(empty_postgresql_url: str, postgresql: PostgresqlServer) -> None:
    assert messages(empty_postgresql_url) == []
    assert not postgresql.has_table(make_url(empty_postgresql_url).database or "", SCHEMA.version_table)


def test_tables_of_a_newer_master_are_an_error(empty_postgresql_url: str) -> None:
    database = StateDatabase.open(empty_postgresql_url, keep_alive=False)
    database.transact(lambda connection: SCHEMA.set_version(connection, "999"))
    (message,) = messages(empty_postgresql_url)
    assert message.startswith("error: the masters' database empty_") and "newer version" in message


def test_an_account_that_may_make_no_tables_is_named(postgresql: PostgresqlServer, empty_postgresql_url: str) -> None:
    postgresql.run_sql("DROP ROLE IF EXISTS looker; CREATE ROLE looker LOGIN")
    (message,) = messages(empty_postgresql_url.replace("store@", "looker@"))
    assert message.startswith("error: looker may not make tables in the masters' database empty_")


@pytest.mark.slow
def test_the_masters_check_asks_the_database(tmp_path: Path) -> None:
    flags = {"vardir": str(tmp_path), "user": "root", "state": "postgresql://nobody@127.0.0.1:1/none"}
    (finding,) = check_state(load(MasterSettings, section="master", flags=flags))
    assert (finding.area, finding.severity) == ("state", "error")
    assert "is away: connection" in finding.message and "psql" in finding.hint
