"""A store as a process: below a folder, as a master starts it, and by itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shared.settings import Conf, MasterSettings, load
from tests.support.raw_master import RawClient

ROOT = Path(__file__).parents[2]
CHILD = ("-m", "store.process.child")
ALONE = ("-c", "import sys; from store.cli import main; sys.exit(main(sys.argv[1:]))")


@dataclass
class StoreAt:
    """A store below a folder: its options, and its process once it has been started."""

    folder: Path
    flags: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places = {name: str(self.folder / name) for name in ("confdir", "vardir", "logdir", "rundir")}
        self.flags = {**places, "user": "root", "store": "sqlite", "drain_timeout": "5", "certname": "localhost"} | self.flags

    @property
    def settings(self) -> MasterSettings:
        return load(MasterSettings, section="master", flags=self.flags, conf=Conf())

    @asynccontextmanager
    async def child(self, *wrapper: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """
        Start the store as a master does; it is killed at the end, if it still runs. What it logs is in the file `log`.

        Args:
            wrapper: A command that becomes the store: what follows its words.
        """
        with (self.folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(*wrapper, sys.executable, *CHILD), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, cwd=ROOT
            )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(self.settings.model_copy(update={"daemonize": False}).model_dump_json().encode() + b"\n")
        async with ending(process):
            assert await asyncio.wait_for(process.stdout.readline(), 30) == b"ready\n"
            yield process

    @asynccontextmanager
    async def alone(self, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start the store by itself, in the foreground."""
        words = [word for name, value in self.flags.items() for word in (f"--{name}", value)]
        command = [sys.executable, *ALONE, *words, "--no-daemonize", *options]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=ROOT)
        async with ending(process):
            yield process

    async def client(self) -> RawClient:
        """Return a connection to the store's socket, once its database is open."""
        async with asyncio.timeout(30):
            while True:
                try:
                    client = RawClient(*await asyncio.open_unix_connection(str(self.settings.store_socket)))
                except (FileNotFoundError, ConnectionRefusedError):
                    await asyncio.sleep(0.05)
                    continue
                try:
                    if (await client.ask("GET", "/status/v1/simple")).status == 200:
                        return client
                except (OSError, EOFError):  # it has been killed in this moment
                    pass
                await client.close()
                await asyncio.sleep(0.05)


@asynccontextmanager
async def ending(process: asyncio.subprocess.Process) -> AsyncIterator[None]:
    """Kill a process at the end, if it still runs."""
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
