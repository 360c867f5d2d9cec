"""The store of facts, catalogs and reports as a child process: started with its master, started again when it ends, ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from shared.process.log import NOTICE
from shared.settings import MasterSettings

log = logging.getLogger("puppet.master")

COMMAND = (sys.executable, "-I", "-m", "store.process.child")
START_TIMEOUT = 60.0  # seconds for the process to listen
OPEN_TIMEOUT = 20.0  # seconds that the master waits for that before it listens itself
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before the process starts again
STEADY = 60.0  # seconds: a process that ran so long starts again after the shortest pause
PATIENCE = 10.0  # seconds without the process in which requests wait for it; afterwards they fail at once
GRACE = 5.0  # seconds for an orderly end, after the drain_timeout of its requests


StoreState = Literal["starting", "listening", "ended"]
"""
starting: the first process neither listens nor has ended yet. listening: requests are answered. ended: the process has ended, or could
not be started, or another one does not listen yet.
"""


@dataclass(slots=True)
class StoreProcess:
    """
    Keeps the store process running. The master continues even if it fails.

    The process gets its settings over its standard input, and ends when that is closed, which the kernel does when the master is killed.

    Attributes:
        state: Whether requests are answered now.
        problem: Why they are not, in the state `ended`; else ''.
        starts: How often the process has been started.
    """

    settings: MasterSettings
    command: Sequence[str] = COMMAND
    clock: Callable[[], float] = time.monotonic
    shortest_pause: float = SHORTEST_PAUSE
    grace: float = GRACE
    state: StoreState = field(default="starting", init=False)
    problem: str = field(default="", init=False)
    starts: int = field(default=0, init=False)
    _silent_since: float = field(init=False)
    _state_changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._silent_since = self.clock()

    def _enter(self, state: StoreState, problem: str = "") -> None:
        """Change the state, and wake all tasks that wait for it."""
        if self.state == "listening":
            self._silent_since = self.clock()
        self.state, self.problem = state, problem
        self._state_changed.set()
        self._state_changed = asyncio.Event()

    async def _wait_for(self, *states: StoreState) -> None:
        while self.state not in states:
            await self._state_changed.wait()

    async def wait_until_open(self) -> None:
        """Wait until the store answers or could not be started, so that the first agents find it; no longer than OPEN_TIMEOUT."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wait_for("listening", "ended"), OPEN_TIMEOUT)

    async def wait_until_listening(self) -> None:
        """Return when the process listens; raise ConnectionError when it has not done so for `PATIENCE` seconds."""
        if self.state == "listening":
            return
        try:
            async with asyncio.timeout(max(0.0, self._silent_since + PATIENCE - self.clock())):
                await self._wait_for("listening")
        except TimeoutError as err:
            raise ConnectionError(f"the store does not run: {self.problem or 'it has not started yet'}") from err

    async def keep_running(self) -> None:
        """Run until cancelled: start the process, and start it again when it has ended; end it at last."""
        pause = self.shortest_pause
        while True:
            began = self.clock()
            self._enter("ended", await self._run_once())
            log.error("The store has ended: %s; it starts again in %g seconds", self.problem, pause)
            await asyncio.sleep(pause)
            pause = self.shortest_pause if self.clock() - began >= STEADY else min(pause * 2, LONGEST_PAUSE)

    async def _run_once(self) -> str:
        """Run the process until it ends; return how it ended."""
        pipe = asyncio.subprocess.PIPE
        self.starts += 1
        try:
            # A session of its own: what a terminal sends to the master's group is the master's to act on.
            process = await asyncio.create_subprocess_exec(*self.command, stdin=pipe, stdout=pipe, start_new_session=True)
        except OSError as err:
            return f"it could not be started: {err.strerror or err}"
        try:
            if not await self._hand_over(process):
                return f"it did not listen within {START_TIMEOUT:g} seconds" if process.returncode is None else _end_of(process)
            self._enter("listening")
            log.log(NOTICE if self.starts > 1 else logging.INFO, "The store runs as process %d", process.pid)
            await process.wait()
            return _end_of(process)
        finally:
            await self._end(process)

    async def _hand_over(self, process: asyncio.subprocess.Process) -> bool:
        """Give the process its settings; return whether it listens in time."""
        assert process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT):
                process.stdin.write(self.settings.model_dump_json().encode() + b"\n")
                await process.stdin.drain()
                if await process.stdout.readline():
                    return True
                await process.wait()
        except (TimeoutError, OSError):
            pass
        return False

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """End the process for certain: by closing its input, and after a time by force."""
        assert process.stdin is not None
        process.stdin.close()
        try:
            # Not asyncio.timeout(), which raises no TimeoutError in a cancelled task on Python 3.11.2.
            await asyncio.wait_for(process.wait(), self.settings.drain_timeout + self.grace)
        except TimeoutError:
            log.warning("The store did not stop in time and is killed; all acknowledged commands are on the disk")
            process.kill()
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()


def _end_of(process: asyncio.subprocess.Process) -> str:
    code = process.returncode or 0
    return f"it was killed by signal {-code}" if code < 0 else f"its exit code is {code}; see its log"
