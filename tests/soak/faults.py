"""What goes wrong around a master, one thing at a time, and back to normal."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path

from master.observability.health import LOOK_EVERY
from tests.bench.costs import family
from tests.soak.proxy import Proxy
from tests.support.processes import MasterProcess

SOURCE = Path(__file__).parent / "clock.c"
MS_REMOUNT, MNT_DETACH = 32, 2  # of mount(2)
_LIBC = ctypes.CDLL(None, use_errno=True)
ROOM = 8 * 2**30  # octets at most of a small disk; a tmpfs takes memory only for what is in it
HOUR = 3600
CUT = "^[^:]*: (?!RunFailed)"  # a connection that ended, never an answer
FULL = "answered 50[37]|is full|No space left"


def clock_of(port: int) -> float:
    """The time that a master has, in seconds since 1970, as its listener for metrics says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return parsedate_to_datetime(answer.headers["Date"]).timestamp()


def _check(result: int, path: Path) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A tmpfs in this process's own mount namespace, which is full at will."""

    folder: Path

    def mount(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._mount(ROOM)
        (self.folder / ".first").write_bytes(b"x")  # a size of nothing would be no limit

    def unmount(self) -> None:
        _check(_LIBC.umount2(os.fsencode(self.folder), MNT_DETACH), self.folder)

    def fill(self) -> None:
        """Nothing more can be written: its size becomes what is in it."""
        for _ in range(100):
            held = os.statvfs(self.folder)
            used = (held.f_blocks - held.f_bfree) * held.f_frsize
            try:
                self._mount(used, MS_REMOUNT)
            except OSError:
                continue  # somebody has written meanwhile
            if os.statvfs(self.folder).f_bavail == 0:
                return
        raise RuntimeError(f"{self.folder} could not be filled")

    def empty(self) -> None:
        self._mount(ROOM, MS_REMOUNT)

    def _mount(self, size: int, flags: int = 0) -> None:
        done = _LIBC.mount(b"bunraku-soak", os.fsencode(self.folder), b"tmpfs", flags, f"size={size}".encode())
        _check(done, self.folder)


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of a master's processes: the real one and some seconds. Monotonic time is left alone, as by a real step."""

    file: Path
    library: Path

    @classmethod
    def build(cls, folder: Path) -> Clock | None:
        """None without a C compiler."""
        made = cls(folder / "clock", folder / "clock.so")
        compiler = shutil.which("cc")
        if compiler is None:
            return None
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(made.library), str(SOURCE)], check=True)
        made.step(0)
        return made

    @property
    def environ(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "BUNRAKU_SOAK_CLOCK": str(self.file)}

    def step(self, seconds: int) -> None:
        """From now on. Written in place: it is mapped."""
        fd = os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(fd, seconds.to_bytes(8, sys.byteorder, signed=True), 0)
        finally:
            os.close(fd)


Injected = Callable[[float], AbstractAsyncContextManager[None]]  # takes the seconds that it will go on


@dataclass(frozen=True, slots=True)
class Fault:
    """
    `costs`: a pattern of failures that may be because of it, as long as it goes on and `lasting` seconds after; without one nobody
    may notice it.
    """

    name: str
    rows: str
    injected: Injected
    costs: str = ""
    lasting: float = 0.0


@dataclass(slots=True)
class Faults:
    """All that can be done to this master here."""

    process: MasterProcess
    proxy: Proxy
    chance: random.Random
    disks: list[SmallDisk] = field(default_factory=list)
    clock: Clock | None = None
    killed: int = 0
    stepped: int = 0  # times that the master was seen to have another time
    happened: list[tuple[Fault, float, float]] = field(default_factory=list)  # from, until

    def all(self) -> list[Fault]:
        found = [
            Fault("compiling processes killed", "R-20", self.workers_killed),
            Fault("connections cut in the middle", "R-29, R-31", self.connections_cut, CUT),
            Fault("HUP", "R-24", self.reloaded),
        ]
        if self.disks:
            found.append(Fault("disks full", "R-05, R-25", self.disks_full, FULL, lasting=LOOK_EVERY))  # until the next look
        if self.clock:
            found.append(Fault("clock an hour ahead", "R-28", lambda seconds: self.clock_off(HOUR)))
            found.append(Fault("clock an hour back", "R-28", lambda seconds: self.clock_off(-HOUR)))
        return found

    @asynccontextmanager
    async def workers_killed(self, seconds: float) -> AsyncIterator[None]:
        """One of them, at work or not."""
        workers = family(self.process.pid)[1:]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.chance.choice(workers), signal.SIGKILL)
                self.killed += 1
        yield

    @asynccontextmanager
    async def connections_cut(self, seconds: float) -> AsyncIterator[None]:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.proxy.cut_some(0.2, self.chance)
            await asyncio.sleep(0.1)
        yield

    @asynccontextmanager
    async def reloaded(self, seconds: float) -> AsyncIterator[None]:
        os.kill(self.process.pid, signal.SIGHUP)
        yield

    @asynccontextmanager
    async def disks_full(self, seconds: float) -> AsyncIterator[None]:
        try:
            for disk in self.disks:
                await asyncio.to_thread(disk.fill)
            yield
        finally:
            for disk in self.disks:
                await asyncio.to_thread(disk.empty)

    @asynccontextmanager
    async def clock_off(self, seconds: int) -> AsyncIterator[None]:
        assert self.clock is not None
        try:
            self.clock.step(seconds)
            yield
            off = await asyncio.to_thread(clock_of, int(self.process.settings["metrics_port"])) - time.time()
            self.stepped += abs(off - seconds) < HOUR / 2
        finally:
            self.clock.step(0)

    async def happen(self, every: float) -> None:
        """One after the other, each for half of `every` seconds."""
        for fault in self.all():
            began = time.monotonic()
            async with fault.injected(every / 2):
                await asyncio.sleep(max(0.0, began + every / 2 - time.monotonic()))
            self.happened.append((fault, began, time.monotonic()))
            await asyncio.sleep(max(0.0, began + every - time.monotonic()))

    def excuse(self, what: str, began: float, ended: float, grace: float) -> Fault | None:
        """A fault that may have been the reason for a failure that began and ended then."""
        for fault, start, end in self.happened:
            if fault.costs and began <= end + fault.lasting + grace and ended >= start and re.search(fault.costs, what):
                return fault
        return None
