"""One compiling process as the master sees it: started, asked over a pipe, ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from shared.errors import PuppetError

from . import frames

# Isolated: neither PYTHONPATH nor the current folder may decide which code runs with the master's rights.
PYTHON = (sys.executable, "-I", "-m")
COMMAND = (*PYTHON, "master.pools.compile_worker")
# Imports take a second; on a machine whose processors are busy or whose disk is cold much longer.
START_TIMEOUT = 60.0  # seconds for a process to say that it is ready


class Worker:
    """One compiling process, used by one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.asked = 0  # how many jobs it has been given: the number of the last one, which its answer has, too
        self.in_step = True  # whether it has answered the last one
        self.spent = False  # whether it ran out of memory and ends, so that it gets no second job
        self.answered = 0  # how many jobs it has answered
        self.round = 0  # the pool's round in which it was started
        self.warning = ""  # about what it lacks

    @classmethod
    async def start(cls, start_as: tuple[int, int] | None = None, command: Sequence[str] = (), descriptors: Sequence[int] = ()) -> Worker:
        """Start a process, which inherits descriptors; raise OSError."""
        pipe = asyncio.subprocess.PIPE
        # Without extra_groups the child would keep root's groups.
        account: dict[str, Any] = {"user": start_as[0], "group": start_as[1], "extra_groups": []} if start_as is not None else {}
        return cls(
            await asyncio.create_subprocess_exec(
                *(command or COMMAND), stdin=pipe, stdout=pipe, limit=2**20, pass_fds=descriptors, **account
            )
        )

    async def set_up(self, setup: Mapping[str, Any]) -> None:
        """Wait until the process is ready with these settings; raise its error, OSError or TimeoutError."""
        async with asyncio.timeout(START_TIMEOUT):
            await self.send(dict(setup))
            message, _ = await self.next()
        if "error" in message:
            raise frames.error_of(message)
        self.warning = message.get("warning", "")

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def ask(self, job: Mapping[str, Any]) -> None:
        """Give the process its next job; BadData when it cannot be sent."""
        number = self.asked + 1
        data = frames.pack({**job, "number": number})
        self.asked, self.in_step = number, False
        await self._write(data)

    def check_answer(self, message: Mapping[str, Any]) -> None:
        """Raise PuppetError unless a message answers the last job: then the process is of no more use, as the next answer is late, too."""
        if message.get("number") != self.asked:
            raise PuppetError("A compiling process answered another question than it was asked")
        self.in_step = True

    async def send(self, message: dict[str, Any], body: bytes = b"") -> None:
        await self._write(frames.pack(message, body))

    async def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
        except RuntimeError as err:  # uvloop raises this when it has noticed the end of the process
            raise BrokenPipeError(str(err)) from err
        await self.process.stdin.drain()

    async def next(self) -> tuple[dict[str, Any], bytes]:
        assert self.process.stdout is not None
        return await frames.receive(self.process.stdout)

    async def kill(self) -> None:
        """End the process for certain."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        # Reaped in every case, otherwise a zombie remains until the master ends.
        await self.process.wait()

    async def finish(self) -> None:
        """End it by closing its input; it is idle."""
        assert self.process.stdin is not None
        # The end of its input is the signal to exit; a process that ignores it for two seconds is killed.
        self.process.stdin.close()
        try:
            # Not asyncio.timeout(), which raises no TimeoutError in a cancelled task on Python 3.11.2.
            await asyncio.wait_for(self.process.wait(), 2)
        except TimeoutError:
            await self.kill()


def start_failure(error: PuppetError | OSError | asyncio.IncompleteReadError) -> str:
    """Return why a process did not become ready; its output is in the log."""
    if isinstance(error, TimeoutError):
        return f"it was not ready after {START_TIMEOUT:g} seconds"
    if isinstance(error, PuppetError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return (
        f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else "it ended without a word to the master"
    )
