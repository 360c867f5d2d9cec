"""What a command costs, and whether that is good enough."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


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
