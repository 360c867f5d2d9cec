"""A store on a file system that is full: it refuses commands, keeps those that it has taken, and goes on when there is room."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.raw_master import RawAnswer, RawClient
from tests.support.store_process import ROOT, StoreAt, ending

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root may mount a small file system"),
]

SIZE = 112  # MiB of the file system, of which the queue leaves 64 to the database
MOUNT = 'mount -t tmpfs -o size="$1"m none "$0" && echo && exec sleep infinity'
LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""
LARGE = 3 * 2**20  # bytes of a fact


@dataclass
class SmallDisk:
    """The file system of a store's data. Only the processes beside `pid` see it under its name; here it is below /proc."""

    store: StoreAt
    pid: int

    @property
    def folder(self) -> Path:
        return Path(f"/proc/{self.pid}/root{self.store.settings.store_dir}")

    @property
    def wrapper(self) -> tuple[str, ...]:
        """The words before a command that shall see the file system."""
        return ("nsenter", f"--target={self.pid}", "--mount", f"--wd={ROOT}")

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.folder / "ballast").open("ab", buffering=0) as file:
            for size in (2**20, 4096):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    pass
        assert os.statvfs(self.folder).f_bavail == 0

    def make_room(self) -> None:
        (self.folder / "ballast").unlink()

    @asynccontextmanager
    async def locked_database(self) -> AsyncIterator[None]:
        """Let nobody write into the database; SQLite follows the links of /proc, so that the lock is another process's."""
        words = (*self.wrapper, sys.executable, "-c", LOCK, str(self.store.settings.store_dir / "store.sqlite"))
        process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        async with ending(process):
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), 10) == b"\n"
            yield


@asynccontextmanager
async def small_disk(store: StoreAt) -> AsyncIterator[SmallDisk]:
    """Mount a small file system for the data of a store; it ends with the process that holds it."""
    store.settings.store_dir.mkdir(parents=True)
    words = ("unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, str(store.settings.store_dir), str(SIZE))
    holder = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    async with ending(holder):
        assert holder.stdout is not None
        assert await asyncio.wait_for(holder.stdout.readline(), 10) == b"\n"
        yield SmallDisk(store, holder.pid)


async def submit(client: RawClient, number: int, size: int = 1) -> RawAnswer:
    name = f"web{number}"
    payload = {"certname": name, "environment": "production", "producer_timestamp": "2026-01-01T00:00:00Z", "producer": "m"}
    body = json.dumps({**payload, "values": {"fact": "x" * size}}).encode()
    return await client.ask("POST", f"/pdb/cmd/v1?command=replace_facts&version=5&certname={name}", body)


async def stored(client: RawClient) -> set[str]:
    answer = await client.ask("GET", "/pdb/query/v4/nodes")
    assert answer.status == 200, answer.text
    return {row["certname"] for row in json.loads(answer.body)}


async def until_stored(client: RawClient, *numbers: int) -> None:
    async with asyncio.timeout(40):
        while await stored(client) != {f"web{number}" for number in numbers}:  # noqa: ASYNC110  # another process stores them
            await asyncio.sleep(0.05)


async def test_a_full_disk_refuses_commands_until_there_is_room(tmp_path: Path) -> None:
    store = StoreAt(tmp_path)
    async with small_disk(store) as disk, store.child(*disk.wrapper):
        client = await store.client()
        assert (await submit(client, 1)).status == 200
        await until_stored(client, 1)
        disk.fill()
        refused = await submit(client, 2)
        assert (refused.status, "is full" in refused.text) == (507, True)
        assert await stored(client) == {"web1"}
        disk.make_room()
        assert (await submit(client, 2)).status == 200
        await until_stored(client, 1, 2)
        await client.close()


@pytest.mark.parametrize("is_killed", [False, True], ids=["it goes on", "it is killed and starts again"])
async def test_commands_that_a_full_disk_keeps_from_the_database_wait_for_room(tmp_path: Path, is_killed: bool) -> None:
    store = StoreAt(tmp_path)
    async with small_disk(store) as disk:
        async with store.child(*disk.wrapper):
            client = await store.client()
            async with disk.locked_database():
                for number in range(4):
                    assert (await submit(client, number, LARGE)).status == 200
                disk.fill()
            async with asyncio.timeout(40):
                while b"Commands cannot be stored at the moment" not in (store.folder / "log").read_bytes():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert (await submit(client, 4)).status == 507
            assert await stored(client) == set()
            if not is_killed:
                disk.make_room()
                await until_stored(client, 0, 1, 2, 3)
            await client.close()
        async with store.child(*disk.wrapper):
            if is_killed:
                disk.make_room()
            client = await store.client()
            await until_stored(client, 0, 1, 2, 3)
            assert (await submit(client, 4)).status == 200
            await until_stored(client, 0, 1, 2, 3, 4)
            assert not (disk.folder / "queue" / "discarded").exists()
            await client.close()
