"""A process that is killed at any step loses no command that it acknowledged, nor the order of a node's commands."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.failpoints import VARIABLE
from shared.queue.spool import Spool
from store.queue.processor import CommandProcessor, ProcessorLimits
from tests.support.command_queue import FakeWriter, running
from tests.support.waiting import until

pytestmark = pytest.mark.works_with("The built-in store", "a queue whose process is killed")

ROOT = Path(__file__).parents[3]
QUICK = ProcessorLimits(shortest_delay=0.001, longest_delay=0.01)

CHILD = """
import asyncio, itertools, os, sys
from pathlib import Path
from shared.failpoints import VARIABLE, failpoint
from store.queue.processor import CommandProcessor
from shared.queue.spool import Spool
from tests.support.command_queue import FakeWriter, submission
from tests.support.waiting import until

folder, point, first, nodes = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
database = os.open(folder / "database", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

class Writer(FakeWriter):
    async def write(self, commands):
        failpoint("database.writing")
        await super().write(commands)
        for certname, number in self.batches[-1]:
            os.write(database, f"{certname} {number}\\n".encode())
        failpoint("database.written")

async def send(processor, node):
    for number in itertools.count(first):
        if number == first + 3 and point:
            os.environ[VARIABLE] = point + "=kill"
        payload = b"nojson" if point == "queue.discarding" and number > first + 3 else None
        await processor.submit(submission(f"web{node}", number, payload=payload))
        if payload is None:
            os.write(1, f"web{node} {number}\\n".encode())

async def main():
    async with Spool(folder / "queue") as spool:
        processor = CommandProcessor(spool, Writer())
        await asyncio.gather(processor.run(), *(send(processor, node) for node in range(nodes)))

asyncio.run(main())
"""


async def start(folder: Path, point: str = "", first: int = 0, nodes: int = 1) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, str(folder), point, str(first), str(nodes)),
        env={name: value for name, value in os.environ.items() if name != VARIABLE} | {"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )


def keys(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, number = line.split()
        yield name, int(number)


async def store_the_rest(folder: Path) -> list[tuple[str, int]]:
    """Carry out what is left in the queue, and return all that was ever stored, in its order."""
    writer = FakeWriter()
    async with Spool(folder / "queue") as spool, running(CommandProcessor(spool, writer, QUICK)):
        await until(lambda: spool.depth == 0)
    assert sorted(path.name for path in (folder / "queue").iterdir() if path.is_file()) == ["lock"]
    return [*keys((folder / "database").read_text()), *writer.stored]


def check_stored(stored: list[tuple[str, int]], acknowledged: list[tuple[str, int]]) -> None:
    assert set(acknowledged) <= set(stored)
    for node in {name for name, _ in acknowledged}:
        numbers = list(dict.fromkeys(number for name, number in stored if name == node))
        assert numbers == sorted(numbers)


POINTS = [
    "queue.written",
    "queue.synced",
    "queue.renamed",
    "queue.added",
    "queue.reading",
    "database.writing",
    "database.written",
    "queue.removing",
    "queue.discarding",
]


@pytest.mark.slow
@pytest.mark.parametrize("point, nodes", [(point, 4) for point in POINTS] + [("database.writing", 1), ("queue.removing", 1)])
async def test_a_kill_at_any_step_loses_nothing(tmp_path: Path, point: str, nodes: int) -> None:
    process = await start(tmp_path, point, nodes=nodes)
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == -signal.SIGKILL
    acknowledged = list(keys(output.decode()))
    assert len(acknowledged) >= 3
    check_stored(await store_the_rest(tmp_path), acknowledged)


@pytest.mark.slow
async def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(3)
    acknowledged: list[tuple[str, int]] = []
    for round_ in range(4):
        process = await start(tmp_path, first=100_000 * round_, nodes=5)
        assert process.stdout is not None
        async with asyncio.timeout(60):
            output = b"".join([await process.stdout.readline() for _ in range(chance.randint(20, 150))])
            process.kill()
            rest, _ = await process.communicate()
        acknowledged += keys((output + rest[: rest.rfind(b"\n") + 1]).decode())

    assert len(acknowledged) > 50
    check_stored(await store_the_rest(tmp_path), acknowledged)
