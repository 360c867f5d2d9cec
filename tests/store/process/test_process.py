"""The store as a process: started as a master starts it, and by itself."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_master import RawClient
from tests.support.store_process import StoreAt

pytestmark = pytest.mark.slow

FACTS = {"certname": "web1", "environment": "production", "producer_timestamp": "2026-01-01T00:00:00Z", "producer": "m", "values": {"a": 1}}


async def submit(client: RawClient, values: dict[str, Any], *, wait: str = "") -> int:
    target = "/pdb/cmd/v1?command=replace_facts&version=5&certname=web1" + (f"&secondsToWaitForCompletion={wait}" if wait else "")
    return (await client.ask("POST", target, json.dumps({**FACTS, "values": values}).encode())).status


async def facts(client: RawClient) -> dict[str, Any]:
    rows = json.loads((await client.ask("GET", "/pdb/query/v4/nodes/web1/facts")).body)
    return {row["name"]: row["value"] for row in rows}


async def test_a_child_of_a_master_keeps_what_it_acknowledged_when_it_is_killed_and_ends_with_its_input(tmp_path: Path) -> None:
    store = StoreAt(tmp_path)
    async with store.child() as process:
        client = await store.client()
        assert await submit(client, {"a": 1, "big": 2**60}, wait="20") == 200
        assert await facts(client) == {"a": 1, "big": 2**60}
        assert await submit(client, {"a": 2}) == 200
        process.kill()
        await client.close()
        await process.wait()
    async with store.child() as process:
        client = await store.client()
        async with asyncio.timeout(20):
            while await facts(client) != {"a": 2}:  # noqa: ASYNC110  # another process writes them
                await asyncio.sleep(0.02)
        export = await client.ask("GET", "/pdb/admin/v1/archive")
        for command in ({"command": "clean", "payload": []}, {"command": "delete", "payload": {"certname": "web1"}}):
            done = await client.ask("POST", "/pdb/admin/v1/cmd", json.dumps({**command, "version": 1}).encode())
            assert done.status == 200
        assert (await client.ask("GET", "/pdb/query/v4/nodes/web1")).status == 404
        assert (await client.ask("POST", "/pdb/admin/v1/archive", export.body, Content_Type="application/gzip")).status == 200
        async with asyncio.timeout(20):
            while (await client.ask("GET", "/pdb/query/v4/nodes/web1")).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert json.loads((await client.ask("GET", "/pdb/admin/v1/summary-stats")).body)["nodes"] == 1
        assert b"puppet_store_num_nodes 1\n" in (await client.ask("GET", "/metrics")).body
        metric = "/metrics/v2/read/puppetlabs.puppetdb.population:name=num-nodes"
        assert b'"value":{"Value":1}' in (await client.ask("GET", metric)).body
        await client.close()
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 20) == 0
    assert not store.settings.store_socket.exists()
    assert store.settings.store_dir.stat().st_mode & 0o077 == 0


async def test_a_store_by_itself_lets_requests_end_when_it_is_stopped_and_needs_a_database(tmp_path: Path) -> None:
    store = StoreAt(tmp_path, {"store_port": "0"})
    async with store.alone("--verbose") as process:
        client = await store.client()
        assert (await client.ask("GET", "/pdb/meta/v1/version")).status == 200
        assert store.settings.store_pidfile.read_text() == f"{process.pid}\n"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0
        await client.close()
        log, _ = await process.communicate()
    assert b"Serving the store at" in log and b"Caught SIGTERM; stopping" in log
    assert not store.settings.store_pidfile.exists()
    async with StoreAt(tmp_path, {"store": "none"}).alone() as process:
        assert await process.wait() != 0


async def test_a_database_that_is_away_is_waited_for(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    store = StoreAt(tmp_path, {"store": "postgresql://nobody@127.0.0.1:1/none"})
    async with store.child() as process:
        client = RawClient(*await asyncio.open_unix_connection(str(store.settings.store_socket)))
        assert (await client.ask("GET", "/status/v1/simple")).text == "starting"
        refused = await client.ask("GET", "/pdb/query/v4/nodes")
        assert (refused.status, refused.text) == (503, "PuppetDB is currently down. Try again later.")
        assert await submit(client, {"a": 1}) == 200
        assert len(list((store.settings.store_dir / "queue").glob("*.commands"))) == 1  # it waits there
        await client.close()
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 20) == 0
