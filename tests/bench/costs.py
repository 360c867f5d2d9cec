"""What a command costs, and whether that is good enough."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
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


def median(costs: list[Cost], what: Callable[[Cost], float]) -> float:
    return statistics.median(map(what, costs))


def family(pid: int) -> list[int]:
    """A process and its children."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def memory_of(pid: int) -> tuple[float, float]:
    """MiB of a process and its children: resident, and with shared pages shared out (PSS)."""
    resident = proportional = 0.0
    for each in family(pid):
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
