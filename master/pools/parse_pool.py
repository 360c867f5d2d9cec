"""
The pool of parsing processes: bytes in, JSON of plain data out, each within an enforced budget of processor time.

`body_parser` decides which bodies come here. A process is killed when its budget is used up. Only frames of JSON come back, from which the
master makes the instances.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Self, TypeVar

from shared.data import plainjson
from shared.errors import BadData, PuppetError, Unavailable
from shared.indirector.core import Indirection, M
from shared.indirector.termini import StoredBodies
from shared.settings import MasterSettings
from shared.wire.dialects import Dialect
from shared.wire.formats import Format

from ..observability.metrics import Metrics
from . import frames
from .parse_worker import FREE_TIME, NO_MEMORY, TIME_A_MIB, TOO_MUCH, seconds_for

log = logging.getLogger("puppet.parser")

T = TypeVar("T")

COMMAND = (sys.executable, "-I", "-m", "master.pools.parse_worker")
START = 60.0  # seconds for a process to say that it is ready
# The budget is processor time; the deadline only catches a process that does nothing at all.
SLOWEST = 6  # how many times its budget of processor time a message may take on a machine with other work
_STEP = 2**20


class _Ended(Exception):
    """A parsing process ended in the middle of a message."""


class ParserProcess:
    """One parsing process, used by one thread at a time. All methods block."""

    def __init__(self, seconds: float, memory: int) -> None:
        self._limit = seconds * SLOWEST
        # Not asyncio's: it is used from threads, which block on its pipes.
        self._process = subprocess.Popen([*COMMAND, str(seconds), str(memory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._ready = False

    def ask(self, question: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the answer; _Ended when the process ended or had to be killed."""
        try:
            if not self._ready:
                self._receive(time.monotonic() + START)
                self._ready = True
            # One deadline for sending and receiving: a process that hangs reads nothing either.
            end = time.monotonic() + self._limit
            self._send(frames.pack_before(dict(question), len(body)), end)
            self._send(body, end)
            return self._receive(end)
        except (OSError, TimeoutError) as err:
            raise _Ended from err

    def _send(self, data: bytes, end: float) -> None:
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        # A blocking write to a full pipe could not be ended by the deadline.
        os.set_blocking(pipe, False)
        view = memoryview(data)
        while view:
            _wait(pipe, select.POLLOUT, end)
            try:
                view = view[os.write(pipe, view[:_STEP]) :]
            except BlockingIOError:
                continue

    def _receive(self, end: float) -> tuple[dict[str, Any], bytes]:
        size, more = frames.HEAD.unpack(self._read(frames.HEAD.size, end))
        message: dict[str, Any] = plainjson.loads_trusted(self._read(size, end))
        return message, self._read(more, end) if more else b""

    def _read(self, size: int, end: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        pieces: list[bytes] = []
        while size:
            _wait(pipe, select.POLLIN, end)
            piece = os.read(pipe, min(size, _STEP))
            if not piece:
                raise _Ended
            pieces.append(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def kill(self) -> None:
        """End the process from another thread; the waiting caller gets an error."""
        self._process.kill()

    def end(self) -> int:
        """End the process for certain; return the signal that had ended it, negative, or its exit code."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            # The closed pipe ends an idle one at once; one that computes is killed.
            return self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _wait(pipe: int, event: int, end: float) -> None:
    poll = select.poll()
    poll.register(pipe, event)
    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        raise TimeoutError


class ParsePool:
    """
    The pool that parses bodies, in up to `size` processes that are started when they are needed.

    `ended` counts processes that were replaced, by reason.

    Args:
        seconds: Processor time for one body.
        memory: Bytes for one process beyond its size at the start.
        queue: How many bodies may wait.
    """

    def __init__(self, *, size: int, seconds: float, memory: int, queue: int) -> None:
        self.size = size
        self.seconds = seconds
        self.memory = memory
        self.queue = queue
        self.ended: Counter[str] = Counter({"time": 0, "memory": 0, "died": 0})
        self.waiting = 0
        self._idle: list[ParserProcess] = []
        self._busy: set[ParserProcess] = set()
        self._lock = Lock()
        self._closed = False
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="parser")

    @classmethod
    def of(cls, settings: MasterSettings) -> Self:
        return cls(
            size=settings.parse_workers,
            seconds=settings.parse_time,
            memory=settings.parse_memory,
            queue=settings.parse_queue,
        )

    def describe(self, metrics: Metrics) -> None:
        """Add the numbers of the processes to the metrics."""
        metrics.read("puppet_bodies_waiting", "gauge", "Bodies pending for a parsing process.", lambda: [((), self.waiting)])
        metrics.read(
            "puppet_parsers_replaced_total",
            "counter",
            "Parsing processes that were replaced.",
            lambda: [((reason,), count) for reason, count in sorted(self.ended.items())],
            "reason",
        )

    async def load(self, indirection: Indirection[M], body: bytes, dialect: Dialect, form: Format) -> M:
        """
        Return the instance in a body.

        Raises:
            BadData: It is invalid, or takes more time or memory than it may. Unavailable: Too many wait.
        """
        question = {"dialect": dialect.name, "format": form.name, "escaped": False}
        return await self._ask(question, body, indirection.model.from_data)

    async def load_escaped(self, indirection: Indirection[M], body: bytes, dialect: Dialect, form: Format) -> M | None:
        """Return as `load` the instance in a body whose octets are percent-encoded; None for `null`."""
        question = {"dialect": dialect.name, "format": form.name, "escaped": True}
        return await self._ask(question, body, lambda data: None if data is None else indirection.model.from_data(data))

    async def stored(self, place: StoredBodies[M], key: str, body: bytes) -> M:
        """Return the instance in the body of a key, which is YAML or JSON; BadData: it holds none."""
        return await self._ask({"stored": place.suffix, "name": key}, body, place.indirection.model.from_data)

    async def catalog_request(self, body: bytes) -> dict[str, Any]:
        """Return what a body of /puppet/v4/catalog says; BadRequest: it is none."""
        request: dict[str, Any] = await self._ask({"catalog_request": True}, body, lambda data: data)
        return request

    async def _ask(self, question: Mapping[str, Any], body: bytes, make: Callable[[Any], T]) -> T:
        """Return what `make` makes, in a thread, of the plain data that a process has found in a body."""
        if self.waiting >= self.queue:
            raise Unavailable(f"{self.waiting} messages are pending", retry_after=30)
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, lambda: make(plainjson.loads_trusted(self._ask_process(question, body))))
        finally:
            self.waiting -= 1

    def _ask_process(self, question: Mapping[str, Any], body: bytes) -> bytes:
        """Have a process answer; blocks, for as long as the budget allows at most."""
        process = self._take_process()
        try:
            message, data = process.ask(question, body)
        except _Ended as err:
            raise self._failure(process, seconds_for(question, len(body), self.seconds)) from err
        except BaseException:
            self._drop(process, "died")
            raise
        if message.get("last"):
            self._drop(process, "memory")
        else:
            with self._lock:
                self._busy.discard(process)
                self._idle.append(process)
        if "error" in message:
            raise frames.error_of(message)
        return data

    def _take_process(self) -> ParserProcess:
        with self._lock:
            if self._closed:
                raise Unavailable("The master is stopping")
            process = self._idle.pop() if self._idle else ParserProcess(self.seconds, self.memory)
            self._busy.add(process)
            return process

    def _drop(self, process: ParserProcess, reason: str) -> int:
        with self._lock:
            self._busy.discard(process)
        self.ended[reason] += 1
        return process.end()

    def _failure(self, process: ParserProcess, seconds: float) -> PuppetError:
        with self._lock:
            self._busy.discard(process)
        code = process.end()
        if self._closed:
            return Unavailable("The master is stopping")
        # SIGPROF is the process' own timer; SIGKILL is ours, from the deadline.
        if code in (-signal.SIGPROF, -signal.SIGKILL):
            self.ended["time"] += 1
            limit = "the setting parse_time" if seconds == self.seconds else f"{FREE_TIME:g} seconds and {TIME_A_MIB:g} for each MiB"
            return BadData(f"The message takes more than {seconds:.3g} seconds to be parsed", hint=f"The limit is {limit}.")
        if code in (NO_MEMORY, -signal.SIGABRT, -signal.SIGSEGV):  # what libraries in Rust do without memory
            self.ended["memory"] += 1
            return BadData(TOO_MUCH)
        self.ended["died"] += 1
        log.error("A parsing process ended with %s", code)
        return PuppetError("The message could not be parsed: its process ended", hint="See the master's log.")

    async def close(self) -> None:
        """End all processes, also those at work."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for process in busy:
            process.kill()
        await asyncio.gather(*(asyncio.to_thread(process.end) for process in idle))
        self._threads.shutdown(wait=False)
