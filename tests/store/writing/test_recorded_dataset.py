"""The recorded data set, written into the store and read back from its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import func, select

from store.database.engine import Database
from store.database.tables import (
    catalog_inputs,
    environments,
    events,
    fact_paths,
    factsets,
    metadata,
    node_packages,
    nodes,
    packages,
    producers,
    reports,
)
from store.timestamps import format_timestamp
from store.writing.writer import DatabaseWriter
from tests.support.recorded_store import RECORDED, recorded_commands

NODE_FIELDS = ("certname", "facts_environment", "latest_report_hash", "report_timestamp", "latest_report_status")


def recorded(group: str, path: str) -> list[Any]:
    """The rows that PuppetDB answered to a path without a query."""
    for case in json.loads((RECORDED / f"{group}.json").read_text()):
        if case["request"]["path"] == f"/pdb/query/v4/{path}" and "query" not in case["request"].get("params", {}):
            rows: list[Any] = case["answer"]["body"]
            return rows
    raise AssertionError(f"no request of {path}")


async def test_the_recorded_data_set(database: Database) -> None:
    await DatabaseWriter(database).write(recorded_commands())
    await check_tables(database)


@pytest.mark.slow
async def test_the_recorded_data_set_one_command_after_the_other_and_all_of_them_twice(database: Database) -> None:
    writer = DatabaseWriter(database)
    for received in recorded_commands():
        await writer.write([received])
    await check_tables(database)
    async with database.reading() as connection:
        before = {table.name: await connection.scalar(select(func.count()).select_from(table)) for table in metadata.sorted_tables}
    await writer.write(recorded_commands())
    async with database.reading() as connection:
        after = {table.name: await connection.scalar(select(func.count()).select_from(table)) for table in metadata.sorted_tables}
    assert after == before


async def check_tables(database: Database) -> None:
    """Compare the tables with what PuppetDB answers."""
    async with database.reading() as connection:

        async def rows(statement: Any) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in await connection.execute(statement)]

        report, environment = reports.alias(), environments.alias()
        found = await rows(
            select(nodes.c.certname, environment.c.name, report.c.hash, report.c.end_time, report.c.status)
            .select_from(nodes)
            .outerjoin(factsets)
            .outerjoin(environment, environment.c.id == factsets.c.environment_id)
            .outerjoin(report, report.c.id == nodes.c.latest_report_id)
            .where(nodes.c.deactivated.is_(None))
        )
        assert {(*row[:3], row[3] and format_timestamp(row[3]), row[4]) for row in found} == {
            tuple(row[name] for name in NODE_FIELDS) for row in recorded("nodes", "nodes")
        }
        found = await rows(select(nodes.c.certname, nodes.c.deactivated).where(nodes.c.deactivated.is_not(None)))
        assert {(name, format_timestamp(at)) for name, at in found} == {
            ("old1.example.com", "2025-11-09T12:00:00.000Z"),
            ("ghost.example.com", "2025-11-09T13:00:00.000Z"),
        }
        names = set((await connection.execute(select(fact_paths.c.name))).scalars())
        assert names == set(recorded("facts-path", "fact-names"))
        found = await rows(select(reports.c.hash, events.c.status, events.c.resource_title, events.c.containing_class).join(reports))
        assert sorted(map(repr, found)) == sorted(
            repr((row["report"], row["status"], row["resource_title"], row["containing_class"])) for row in recorded("events", "events")
        )
        found = await rows(select(packages.c.name, packages.c.version, packages.c.provider))
        assert set(found) == {(row["package_name"], row["version"], row["provider"]) for row in recorded("packages", "packages")}
        found = await rows(
            select(nodes.c.certname, packages.c.name)
            .select_from(nodes.join(node_packages).join(packages, packages.c.id == node_packages.c.package_id))
            .where(nodes.c.deactivated.is_(None))
        )
        assert sorted(found) == sorted((row["certname"], row["package_name"]) for row in recorded("packages", "package-inventory"))
        found = await rows(select(nodes.c.certname, catalog_inputs.c.inputs).join(catalog_inputs))
        assert {(name, json.dumps(inputs)) for name, inputs in found} == {
            (row["certname"], json.dumps(sorted(row["inputs"]))) for row in recorded("catalog-inputs", "catalog-inputs")
        }
        for table in (environments, producers):
            names = set((await connection.execute(select(table.c.name))).scalars())
            assert names == {row["name"] for row in recorded("environments", table.name)}
