"""The questions that clients ask all day find their rows by an index, on SQLite."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

from store.database.columns import json_text
from store.database.engine import Database
from store.queries.language.selections import read_query, with_paging
from store.queries.questions import QueryLimits
from store.queries.schema.entities import ENTITIES
from store.queries.sql.selects import Selects
from store.queries.sql.sqlite import SqliteSql

NEWEST = (("producer_timestamp", True),)

QUESTIONS: dict[str, tuple[str, Any, tuple[tuple[str, bool], ...]]] = {
    "one node": ("nodes", ["=", "certname", "a"], ()),
    "the facts of a node": ("facts", ["=", "certname", "a"], ()),
    "a fact of all nodes": ("facts", ["=", "name", "kernel"], ()),
    "a fact by its value": ("facts", ["and", ["=", "name", "role"], ["=", "value", "web"]], ()),
    "a path of facts": ("fact_contents", ["=", "path", ["os", "family"]], ()),
    "the nodes with a fact": ("nodes", ["=", ["fact", "role"], "web"], ()),
    "the inventory by a fact": ("inventory", ["extract", ["certname"], ["=", "facts.os.family", "Debian"]], ()),
    "a collector": ("resources", ["and", ["=", "type", "File"], ["=", "exported", True], ["not", ["=", "certname", "a"]]], ()),
    "resources by their title": ("resources", ["and", ["=", "type", "Package"], ["=", "title", "nginx"]], ()),
    "the resources of a node": ("resources", ["=", "certname", "a"], ()),
    "a catalog": ("catalogs", ["=", "certname", "a"], ()),
    "the edges of a node": ("edges", ["=", "certname", "a"], ()),
    "the latest reports": ("reports", ["extract", ["certname", "status"], ["=", "latest_report?", True]], ()),
    "the reports of a node": ("reports", ["=", "certname", "a"], NEWEST),
    "a report": ("reports", ["=", "hash", "a"], ()),
    "the events of a report": ("events", ["=", "report", "a"], ()),
    "the events of the latest reports": ("events", ["=", "latest_report?", True], ()),
}

SORTED: dict[str, tuple[str, Any, tuple[tuple[str, bool], ...]]] = {
    "nodes by name": ("nodes", None, (("certname", False),)),
    "the newest reports": ("reports", ["extract", ["certname", "status"]], NEWEST),
}


PRODUCTION = ["=", "environment", "production"]

OF_AN_ENVIRONMENT: dict[str, tuple[str, Any, tuple[tuple[str, bool], ...]]] = {
    "the newest reports by their end": ("reports", PRODUCTION, (("end_time", True),)),
    "the newest reports by their producer's time": ("reports", PRODUCTION, NEWEST),
}

SIZES = {
    "environments": "1 1",
    "producers": "1 1",
    "nodes": "1000 1",
    "reports": "12000 1",
    "ix_reports_node_id_producer_timestamp": "12000 12 1",
}
"""Of a site, by table or index, as ANALYZE writes them: rows, and rows with one key, or with the first columns of it."""


async def plan(database: Database, entity: str, query: Any, order_by: tuple[tuple[str, bool], ...]) -> list[str]:
    """Return the steps by which SQLite finds the rows."""
    selection = with_paging(read_query(ENTITIES[entity], query, QueryLimits()), 10, None, order_by)
    compiled = Selects(SqliteSql(), 0).statement(selection).page.compile(dialect=sqlite.dialect(paramstyle="qmark"))
    values = (compiled.params[name] for name in compiled.positiontup or ())
    parameters = tuple(json_text(value) if isinstance(value, list) else value for value in values)
    async with database.reading() as connection:
        rows = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", parameters)
        return [row[-1] for row in rows]


@pytest.fixture
async def database(recorded_sqlite_url: str) -> Any:
    database = Database.open(recorded_sqlite_url)
    yield database
    await database.close()


@pytest.mark.parametrize("name", QUESTIONS)
async def test_no_table_is_read_from_end_to_end(database: Database, name: str) -> None:
    steps = await plan(database, *QUESTIONS[name])
    scans = [step for step in steps if step.startswith("SCAN")]
    # Of the nodes only the keys of their latest reports are read.
    assert [step for step in scans if step != "SCAN nodes"] == [], steps


@pytest.mark.parametrize("name", SORTED)
async def test_rows_come_sorted_out_of_an_index(database: Database, name: str) -> None:
    steps = await plan(database, *SORTED[name])
    assert [step for step in steps if "TEMP B-TREE" in step] == [], steps


@pytest.mark.parametrize("name", OF_AN_ENVIRONMENT)
async def test_the_newest_reports_come_out_of_an_index_where_sizes_are_known(recorded_sqlite_url: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / "sized.sqlite"
    shutil.copyfile(recorded_sqlite_url.removeprefix("sqlite:///"), path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ANALYZE")
        for table, sizes in SIZES.items():
            connection.execute("UPDATE sqlite_stat1 SET stat = ? WHERE ? IN (tbl, idx)", (sizes, table))
    database = Database.open(f"sqlite:///{path}")
    try:
        steps = await plan(database, *OF_AN_ENVIRONMENT[name])
    finally:
        await database.close()
    assert [step for step in steps if "TEMP B-TREE" in step] == [], steps


async def test_a_collector_reads_exported_resources_only(database: Database) -> None:
    steps = await plan(database, *QUESTIONS["a collector"])
    assert any("ix_resources_exported" in step for step in steps), steps
