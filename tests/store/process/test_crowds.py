"""A store as a process under much at once: answers of hundreds of thousands of rows, a thousand nodes in the same second."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert

from store.database.bulk import BulkInsert
from store.database.engine import Database
from store.database.tables import environments, facts, factsets, nodes
from tests.bench import store_data
from tests.support.raw_master import RawClient
from tests.support.store_process import StoreAt
from tests.support.waiting import until

pytestmark = pytest.mark.slow

NODES, FACTS = 100, 2000
MEBIBYTE = 2**20
CROWD = 1000  # nodes
AWAY = (OSError, EOFError, TimeoutError)


def fill(connection: Connection) -> None:
    """Store many facts."""
    connection.execute(insert(environments), [{"id": 1, "name": "production"}])
    numbers = range(1, NODES + 1)
    connection.execute(insert(nodes), [{"id": number, "certname": f"web{number}"} for number in numbers])
    times = {"received": 0, "producer_timestamp": 0, "environment_id": 1, "hash": "0"}
    connection.execute(insert(factsets), [{"node_id": number, **times} for number in numbers])
    for number in numbers:
        rows = [{"node_id": number, "name": f"fact_{index}", "value": f"{index} " + "x" * 80} for index in range(FACTS)]
        BulkInsert(facts).insert(connection, rows)


def memory(pid: int, name: str) -> int:
    """Return a number of bytes from the status of a process: VmRSS, or VmHWM, the most that this has been."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


async def received(store: StoreAt, target: str) -> tuple[int, int]:
    """Return the bytes of an answer and its rows, without holding it in memory."""
    reader, writer = await asyncio.open_unix_connection(str(store.settings.store_socket))
    writer.write(f"GET {target} HTTP/1.1\r\nHost: store\r\nConnection: close\r\n\r\n".encode())
    size = rows = 0
    rest = b""
    while block := await asyncio.wait_for(reader.read(MEBIBYTE), 60):
        size += len(block)
        rows += (rest + block).count(b'"certname":')
        rest = block[-len(b'"certname"') :]
    writer.close()
    return size, rows


async def test_an_answer_of_many_rows_takes_bounded_memory(tmp_path: Path, database: Database, database_url: str) -> None:
    store = StoreAt(tmp_path, {"store": database_url})
    async with store.child() as process:
        await (await store.client()).close()
        await database.write(fill)
        await received(store, "/pdb/query/v4/facts?limit=5000")
        before = memory(process.pid, "VmRSS")
        size, rows = await received(store, "/pdb/query/v4/facts")
        assert rows == NODES * FACTS and size > 25 * MEBIBYTE
        assert memory(process.pid, "VmHWM") - before < 6 * MEBIBYTE


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process have a connection for each node, and the store that it starts, too."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 3 * CROWD:
        pytest.skip(f"{before[1]} open files are too few for {CROWD} connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3 * CROWD, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def send_run(store: StoreAt, number: int) -> int:
    """Send what a run of a node says, each command until it is acknowledged; return how often one was refused."""
    refused = 0
    for command in (store_data.facts(number, 0), store_data.report(number, 1)):
        target = f"/pdb/cmd/v1?command={command.name.replace(' ', '_')}&version={command.version}&certname={command.certname}"
        while True:
            try:
                client = RawClient(*await asyncio.open_unix_connection(str(store.settings.store_socket)), timeout=60)
                answer = await client.ask("POST", target, json.dumps(command.payload).encode())
                await client.close()
            except AWAY:
                answer = None
            if answer is not None and answer.status == 200:
                break
            assert answer is None or answer.status == 503, answer
            refused += 1
            await asyncio.sleep(0.2)
    return refused


async def count(client: RawClient, entity: str) -> int:
    query = f'["from","{entity}",["extract",[["function","count"]]]]'
    answer = await client.ask("POST", "/pdb/query/v4", json.dumps({"query": query}).encode(), Content_Type="application/json")
    return int(json.loads(answer.body)[0]["count"])


async def queue_depth(client: RawClient) -> int:
    status = json.loads((await client.ask("GET", "/status/v1/services")).body)["puppetdb-status"]["status"]
    return int(status["queue_depth"])


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_nodes_that_report_at_once_are_all_stored(tmp_path: Path) -> None:
    store = StoreAt(tmp_path)
    async with store.child() as process, asyncio.timeout(240):
        client = await store.client()
        descriptors = Path(f"/proc/{process.pid}/fd")
        await send_run(store, CROWD)  # what is opened once
        before = len(list(descriptors.iterdir()))
        await asyncio.gather(*(send_run(store, number) for number in range(CROWD)))
        while [await count(client, entity) for entity in ("factsets", "reports")] != [CROWD + 1] * 2:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        while await queue_depth(client):  # noqa: ASYNC110  # a command whose acknowledgement was lost is there twice
            await asyncio.sleep(0.2)
        assert not (store.settings.store_dir / "queue" / "discarded").exists()
        await until(lambda: len(list(descriptors.iterdir())) <= before + 2)
        await client.close()
