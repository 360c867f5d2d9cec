"""The queue in front of a real database, which is away for a while, or whose process is killed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, select, text

from shared.database.postgresql import DatabaseLimits
from shared.failpoints import VARIABLE
from shared.queue.spool import Spool
from store.commands.submission import Submission
from store.database.engine import Database
from store.database.tables import nodes, reports
from store.queue.processor import CommandProcessor, ProcessorLimits
from store.writing.writer import DatabaseWriter
from tests.support.command_queue import running
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
DATASET = ROOT / "tests" / "conformance" / "puppetdb" / "dataset.json"
QUICK = ProcessorLimits(shortest_delay=0.01, longest_delay=0.05)
LOCKS = {"sqlite": "BEGIN EXCLUSIVE", "postgresql": "LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE"}


def submissions() -> list[Submission]:
    return [
        Submission(entry["command"], entry["version"], entry["certname"], None, None, json.dumps(entry["payload"]).encode(), "identity")
        for entry in json.loads(DATASET.read_text("utf-8"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [DatabaseLimits(lock_timeout=0.05), DatabaseLimits(lock_timeout=0.1, write_timeout=0.05)], ids=["locked", "slow"]
)
async def test_the_data_set_is_stored_after_the_database_was_away(database_url: str, tmp_path: Path, limits: DatabaseLimits) -> None:
    address = make_url(database_url)
    driver = "sqlite" if address.drivername == "sqlite" else "postgresql+psycopg"
    other = create_engine(address.set(drivername=driver), isolation_level="AUTOCOMMIT" if driver == "sqlite" else None)
    database = Database.open(database_url, limits)
    async with Spool(tmp_path / "queue") as spool:
        processor = CommandProcessor(spool, DatabaseWriter(database), QUICK)
        async with running(processor):
            with other.connect() as connection:
                connection.execute(text(LOCKS[address.drivername.partition("+")[0]]))
                for submission in submissions():
                    await processor.submit(submission)
                for _ in range(2):
                    retried = processor.counts.get("retried", 0)
                    await until(lambda retried=retried: processor.counts.get("retried", 0) > retried)
                assert spool.depth == 46
                connection.close()
            await until(lambda: not spool.depth)
        counts = processor.counts
        assert (counts["processed"], counts.get("discarded", 0)) == (46, 0)
        assert counts["retried"] > 0
    async with database.reading() as connection:
        assert len((await connection.execute(select(reports.c.id))).all()) == 12
        certnames = (await connection.execute(select(nodes.c.certname))).scalars().all()
        assert {"ghost.example.com", "web1.example.com", "repfail.example.com"} < set(certnames)
    await database.close()
    other.dispose()


CHILD = """
import asyncio, itertools, json, os, sys
from pathlib import Path
from store.commands.submission import Submission
from store.database.engine import Database
from store.queue.processor import CommandProcessor
from shared.queue.spool import Spool
from store.writing.writer import DatabaseWriter

folder, url, first, report = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), json.loads(sys.stdin.read())

async def send(processor, node):
    for number in itertools.count(first):
        payload = report | {"certname": f"web{node}", "configuration_version": str(number)}
        await processor.submit(Submission("store report", 8, f"web{node}", None, None, json.dumps(payload).encode(), "identity"))
        os.write(1, f"web{node} {number}\\n".encode())

async def main():
    database = Database.open(url)
    async with Spool(folder / "queue") as spool:
        processor = CommandProcessor(spool, DatabaseWriter(database))
        await asyncio.gather(processor.run(), *(send(processor, node) for node in range(4)))

asyncio.run(main())
"""


@pytest.mark.slow
async def test_kills_at_random_moments_lose_no_report(sqlite_url: str, tmp_path: Path) -> None:
    chance = random.Random(11)
    report = next(entry["payload"] for entry in json.loads(DATASET.read_text("utf-8")) if entry["command"] == "store report")
    acknowledged: set[tuple[str, str]] = set()
    for round_ in range(3):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CHILD, str(tmp_path), sqlite_url, str(100_000 * round_)),
            env={name: value for name, value in os.environ.items() if name != VARIABLE} | {"PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(report).encode())
        process.stdin.close()
        async with asyncio.timeout(60):
            output = b"".join([await process.stdout.readline() for _ in range(chance.randint(20, 150))])
            process.kill()
            output += await process.stdout.read()
            await process.wait()
        for line in output.decode().splitlines():
            certname, number = line.split()
            acknowledged.add((certname, number))
    assert len(acknowledged) > 50
    database = Database.open(sqlite_url)
    async with Spool(tmp_path / "queue") as spool, running(CommandProcessor(spool, DatabaseWriter(database), QUICK)):
        await until(lambda: not spool.depth)
    async with database.reading() as connection:
        rows = await connection.execute(select(nodes.c.certname, reports.c.configuration_version).join_from(reports, nodes))
        assert acknowledged <= {(certname, number) for certname, number in rows}
    await database.close()
