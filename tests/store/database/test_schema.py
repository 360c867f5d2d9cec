"""The tables of the store's database, created and migrated."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, select, text

from shared.database.schema import UnknownSchema
from store.database import schema
from store.database.engine import Database
from store.database.schema import SCHEMA
from store.database.tables import facts, metadata
from tests.support.postgresql import PostgresqlServer
from tests.support.store_first_tables import create_first_tables

DESCRIPTIONS = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name <> 'alembic_version'",
    "postgresql": """
        SELECT format('%s.%s %s %s %s', c.table_name, c.column_name, c.data_type, c.is_nullable, c.column_default)
            FROM information_schema.columns c WHERE c.table_schema = 'public' AND c.table_name <> 'alembic_version'
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
        UNION ALL SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass
    """,
}


def described(connection: Connection) -> list[list[str]]:
    """All columns, keys and indexes of the database, in no order and without their layout."""
    texts = connection.scalars(text(DESCRIPTIONS[connection.dialect.name]))
    return sorted(sorted(re.sub(r"[\s()]+", " ", part).strip() for part in line.split(",")) for line in texts)


async def description(url: str, *, by_scripts: bool) -> list[list[str]]:
    database = Database.open(url)
    try:
        if by_scripts:
            await database.write(create_first_tables)
        await database.migrate()
        return await database.write(described)
    finally:
        await database.close()


async def test_the_scripts_make_the_same_tables_as_the_program_on_sqlite(tmp_path: Path) -> None:
    migrated = await description(f"sqlite:///{tmp_path / 'a.sqlite'}", by_scripts=True)
    assert migrated == await description(f"sqlite:///{tmp_path / 'b.sqlite'}", by_scripts=False)
    assert len(migrated) > len(metadata.tables)


@pytest.mark.slow
async def test_the_scripts_make_the_same_tables_as_the_program_on_postgresql(empty_postgresql_url: str) -> None:
    migrated = await description(empty_postgresql_url, by_scripts=True)
    database = Database.open(empty_postgresql_url)
    try:
        await database.write(lambda connection: connection.execute(text("DROP SCHEMA public CASCADE")))
        await database.write(lambda connection: connection.execute(text("CREATE SCHEMA public")))
    finally:
        await database.close()
    assert migrated == await description(empty_postgresql_url, by_scripts=False)
    assert len(migrated) > len(metadata.tables)


async def test_a_start_brings_older_tables_up_to_date(empty_database_url: str) -> None:
    database = Database.open(empty_database_url)
    try:
        await database.migrate()
        newest = await database.write(described)
        await database.write(lambda connection: connection.execute(text("DROP INDEX ix_reports_end_time")))
        await database.write(lambda connection: connection.execute(text("ALTER TABLE parameter_sets DROP COLUMN sealed")))
        await database.write(lambda connection: SCHEMA.set_version(connection, "001"))
        assert await database.write(described) != newest
        await database.migrate()
        assert await database.write(described) == newest
    finally:
        await database.close()


@pytest.mark.slow
async def test_facts_survive_the_move_into_rows_of_their_own(empty_database_url: str) -> None:
    values = {"os": '{"family": "Debian"}', "large": json.dumps("x" * 2_000_000), "größe": "1"}
    database = Database.open(empty_database_url)

    def before(connection: Connection) -> None:
        create_first_tables(connection)
        SCHEMA.upgrade(connection, "002")
        as_json = "CAST(:value AS jsonb)" if connection.dialect.name == "postgresql" else ":value"
        for node in (1, 2):
            connection.execute(text("INSERT INTO nodes (id, certname) VALUES (:node, :name)"), {"node": node, "name": f"web{node}"})
            rows = [{"node": node, "name": name, "value": value} for name, value in values.items()]
            connection.execute(text(f"INSERT INTO facts (node_id, name, value) VALUES (:node, :name, {as_json})"), rows)

    try:
        await database.write(before)
        await database.migrate()
        async with database.reading() as connection:
            stored = (await connection.execute(select(facts.c.node_id, facts.c.name, facts.c.value))).all()
        assert sorted(map(tuple, stored)) == sorted((node, name, json.loads(value)) for node in (1, 2) for name, value in values.items())
        await database.write(lambda connection: connection.execute(text("DELETE FROM nodes WHERE id = 1")))
        async with database.reading() as connection:
            assert set(await connection.scalars(select(facts.c.node_id))) == {2}
    finally:
        await database.close()


def test_the_head_is_the_newest_script() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA.newest]


async def test_two_processes_may_migrate_at_once_and_again(empty_database_url: str) -> None:
    databases = [Database.open(empty_database_url) for _ in range(2)]
    try:
        await asyncio.gather(*(database.migrate() for database in databases))
        await databases[0].migrate()
        assert (
            await databases[0].write(lambda connection: connection.scalar(text("SELECT version_num FROM alembic_version"))) == SCHEMA.newest
        )
    finally:
        for database in databases:
            await database.close()


async def test_tables_of_a_newer_version_are_left_alone(empty_database_url: str) -> None:
    database = Database.open(empty_database_url)
    try:
        await database.migrate()
        await database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '999'")))
        before = await database.write(described)
        with pytest.raises(UnknownSchema, match="a newer version of this program"):
            await database.migrate()
        assert await database.write(described) == before
    finally:
        await database.close()


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_no_tables_are_made_in_a_database_that_lacks_characters(encoding: str, postgresql: PostgresqlServer) -> None:
    postgresql.run_sql(f"CREATE DATABASE lacking ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    database = Database.open(postgresql.address("lacking"))
    try:
        with pytest.raises(UnknownSchema, match=f"has the encoding {encoding}, .* CREATE DATABASE … ENCODING 'UTF8'"):
            await database.migrate()
    finally:
        await database.close()
        postgresql.run_sql("DROP DATABASE lacking")


async def test_tables_of_somebody_else_are_left_alone(empty_database_url: str) -> None:
    database = Database.open(empty_database_url)
    try:
        await database.write(lambda connection: connection.execute(text("CREATE TABLE facts (id INTEGER)")))
        with pytest.raises(UnknownSchema, match="use another one"):
            await database.migrate()
    finally:
        await database.close()
