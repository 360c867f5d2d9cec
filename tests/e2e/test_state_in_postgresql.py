"""A whole master whose state is in PostgreSQL: what a run costs there, and what happens while it is away."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

from shared.state.database import StateDatabase
from shared.state.tables import bucket_files, facts, reports
from tests.support.postgresql import PostgresqlServer
from tests.support.raw_master import RawClient
from tests.support.waiting import until
from tests.support.wired_site import ENV, V3, WiredSite, wired_site

pytestmark = pytest.mark.slow

NAME = "agent1.test"


@pytest.fixture
async def site(tmp_path: Path, state_url: str) -> AsyncIterator[WiredSite]:
    async with wired_site(tmp_path, state=state_url, node_cache_terminus="write_only_postgresql") as made:
        yield made


async def send_report(client: RawClient, number: int) -> int:
    text = {"host": NAME, "time": f"2026-11-20T21:48:{number:02d}Z", "status": "unchanged", "configuration_version": number}
    answer = await client.ask("PUT", f"{V3}/report/{NAME}{ENV}", json.dumps(text).encode(), Content_Type="application/json")
    return answer.status


async def run_of_agent(site: WiredSite, client: RawClient, number: int, **changed: object) -> None:
    answer = await site.catalog(client, NAME, {"colour": "green", **changed})
    assert answer.status == 200 and NAME in answer.text
    assert await send_report(client, number) == 200


async def test_a_run_takes_one_request_for_facts_node_and_report_each(site: WiredSite, statements: list[str]) -> None:
    client = await site.client(NAME)
    await run_of_agent(site, client, 1)  # the tables are made
    for number, changed in enumerate(({}, {"colour": "red"}), 2):
        statements.clear()
        await run_of_agent(site, client, number, **changed)
        of_run = [statement.split()[2] for statement in statements]
        assert sorted(of_run) == ["state_facts", "state_nodes", "state_reports"]


async def test_runs_go_on_while_the_database_is_away_and_nothing_is_lost(site: WiredSite, postgresql: PostgresqlServer) -> None:
    client = await site.client(NAME)
    await run_of_agent(site, client, 1)
    content = b"a file that is replaced"
    value = hashlib.sha256(content).hexdigest()
    bucket = f"{V3}/file_bucket_file/sha256/{value}/etc/motd{ENV}"
    postgresql.stop()
    try:
        for number in (2, 3):
            await run_of_agent(site, client, number, uptime=number)
        assert (await client.ask("HEAD", bucket)).status == 404
        assert (await client.ask("PUT", bucket, content, Content_Type="application/octet-stream")).status == 200
        assert (await client.ask("GET", bucket, Accept="application/octet-stream")).body == content
        await site.master.health.check(site.master.health.conditions["state"])
        status = json.loads((await client.ask("GET", "/status/v1/services/status-service")).body)
        state = status["status"]["state_database"]
        assert state["away_since"] and [state["pending"][kind]["entries"] for kind in ("reports", "files")] == [2, 1]
        assert {"severity": "warning", "message": "The database of the masters' state is away"} in status["active_alerts"]
        assert status["state"] == "running"
        assert 'puppet_state_pending_entries{kind="reports"} 2' in site.master.metrics.text()
    finally:
        postgresql.start()
    await until(lambda: 'puppet_state_pending_entries{kind="reports"} 0' in site.master.metrics.text())
    await until(lambda: 'puppet_state_pending_entries{kind="files"} 0' in site.master.metrics.text())
    await run_of_agent(site, client, 4)
    database = StateDatabase.open(site.settings.state, keep_alive=False)
    bodies = database.transact(lambda connection: connection.scalars(select(reports.c.body).order_by(reports.c.received)).all())
    assert [number for body in bodies for number in range(1, 5) if f"configuration_version: {number}\n".encode() in body] == [1, 2, 3, 4]
    assert database.transact(lambda connection: connection.scalar(select(bucket_files.c.value))) == value
    assert b"green" in (database.transact(lambda connection: connection.scalar(select(facts.c.body))) or b"")


async def test_the_master_starts_while_the_database_is_away(tmp_path: Path, state_url: str, postgresql: PostgresqlServer) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "routes.yaml").write_text("master: {certificate: {terminus: file}}")  # its agents have to enrol
    postgresql.stop()
    try:
        async with wired_site(tmp_path, state=state_url) as site:
            client = await site.client(NAME)
            await run_of_agent(site, client, 1)
    finally:
        postgresql.start()
