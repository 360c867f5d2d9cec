"""A store whose PostgreSQL is stopped and started, in order or not, while commands come: what was acknowledged is stored, once."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.bench import store_data
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.raw_master import RawClient
from tests.support.store_process import StoreAt

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(postgresql_programs() is None, reason="PostgreSQL's server is not installed (Debian: postgresql)"),
]

NODES = 6
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


async def keep_reporting(store: StoreAt, number: int, acknowledged: Counter[str], until: asyncio.Event) -> None:
    """Send one report after the other; a store that keeps its queue refuses none."""
    client = RawClient(*await asyncio.open_unix_connection(str(store.settings.store_socket)))
    for run in itertools.count():
        if until.is_set():
            break
        command = store_data.report(number, 2)
        version = f"{number}-{run}"
        target = f"/pdb/cmd/v1?command=store_report&version=8&certname={command.certname}"
        answer = await client.ask("POST", target, json.dumps(command.payload | {"configuration_version": version}).encode())
        assert answer.status == 200, answer.text
        acknowledged[version] += 1
        await asyncio.sleep(0.02)
    await client.close()


async def until_more(acknowledged: Counter[str], count: int) -> None:
    before = acknowledged.total()
    while acknowledged.total() < before + count:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def until_status(client: RawClient, status: int) -> None:
    """Return when a query is answered so."""
    while (await client.ask("GET", "/pdb/query/v4/nodes?limit=1")).status != status:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def test_what_comes_while_postgresql_is_stopped_and_started_is_stored_once(tmp_path: Path) -> None:
    programs = postgresql_programs()
    assert programs is not None
    server = await asyncio.to_thread(lambda: PostgresqlServer(programs, **DURABLE))
    try:
        server.run_sql("CREATE DATABASE store")
        store, acknowledged, until = StoreAt(tmp_path, {"store": server.address("store")}), Counter[str](), asyncio.Event()
        async with store.child(), asyncio.timeout(150):
            client = await store.client()
            async with asyncio.TaskGroup() as group:
                for number in range(NODES):
                    group.create_task(keep_reporting(store, number, acknowledged, until))
                for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGINT):  # in order; as in a crash
                    await until_more(acknowledged, 5 * NODES)
                    await asyncio.to_thread(server.stop, how)
                    await until_status(client, 503)
                    await until_more(acknowledged, 5 * NODES)
                    await asyncio.to_thread(server.start)
                    await until_status(client, 200)
                until.set()
            while (await client.ask("GET", "/status/v1/services")).text.find('"queue_depth" : 0') < 0:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert not (store.settings.store_dir / "queue" / "discarded").exists()
            await client.close()
        with psycopg.connect(server.address("store")) as connection:
            rows = connection.execute("SELECT configuration_version, count(*) FROM reports GROUP BY 1").fetchall()
        assert Counter(dict(rows)) == acknowledged
    finally:
        await asyncio.to_thread(server.remove)
