"""What a command costs, and whether that is good enough."""

from __future__ import annotations

import os
import statistics
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command: seconds of wall and processor time, MiB of memory at most; its exit code."""

    wall: float
    cpu: float
    peak: float
    code: int


def cost_of(argv: list[str], environ: dict[str, str]) -> Cost:
    """Run a command, its output thrown away, and say what it cost, with its children."""
    null = os.open(os.devnull, os.O_RDWR)
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    os.close(null)
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))


def verdict(value: float, must: float, aim: float) -> str:
    return "aim met" if value <= aim else "must met" if value <= must else "MISSED"


BLOCK = (0.050, 0.010)  # seconds that the event loop of a master's front must not be held up, and those that are the aim


@dataclass(frozen=True, slots=True)
class Blocks:
    """
    For how many seconds the event loop of a master was held up at most: with its waits for a processor, without them, and only
    what it computed itself. The second counts waits for the interpreter, too, whose holder may wait for a processor in its turn.
    """

    lag: float
    block: float
    busy: float

    @classmethod
    def read(cls, port: int) -> Blocks:
        """Of the last minute; `port` is the master's `metrics_port`, on this machine."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        found = dict(line.split(" ", 1) for line in lines if line.startswith("puppet_loop_"))
        return cls(*(float(found[f"puppet_loop_{what}_longest_seconds"]) for what in ("lag", "block", "busy")))

    @classmethod
    def worst(cls, all: Sequence[Blocks]) -> Blocks:
        """What was read again and again, not more than a minute apart."""
        return cls(max(each.lag for each in all), max(each.block for each in all), max(each.busy for each in all))

    def __str__(self) -> str:
        must, aim = BLOCK
        found = f"{self.block * 1000:.0f} ms (must {must * 1000:.0f}, aim {aim * 1000:.0f}): {verdict(self.block, must, aim)}"
        return f"{found}; computing {self.busy * 1000:.0f} ms, with waits for a processor {self.lag * 1000:.0f} ms"


def median(costs: list[Cost], what: Callable[[Cost], float]) -> float:
    return statistics.median(map(what, costs))


def family(pid: int) -> list[int]:
    """A process and its children."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def memory_of(pid: int) -> tuple[float, float]:
    """MiB of a process and its children: resident, and with shared pages shared out (PSS)."""
    return _memory(family(pid))


def memory_of_all(pid: int) -> float:
    """MiB of a process and all below it, with shared pages shared out (PSS)."""
    return _memory(descendants(pid))[1]


def _memory(pids: list[int]) -> tuple[float, float]:
    resident = proportional = 0.0
    for each in pids:
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Rss":
                resident += int(value.split()[0]) / 1024
            elif name == "Pss":
                proportional += int(value.split()[0]) / 1024
    return resident, proportional


def processor_seconds(pid: int) -> float:
    """What a process that lives has used up, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    return [pid, *(each for child in family(pid)[1:] for each in descendants(child))]


def processor_seconds_of_all(pid: int) -> float:
    """What a process and all below it have used up, with those that have ended and were waited for."""
    ticks = 0
    for each in descendants(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(") ")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
