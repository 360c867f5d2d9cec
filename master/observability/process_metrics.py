"""What Prometheus' clients tell of every process, by the same names; and which version of the program this is. Read from Linux' /proc."""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path

from shared import __version__

from .metrics import Metrics

__all__ = ["describe_process"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_DESCRIPTORS = Path("/proc/self/fd")


def describe_process(metrics: Metrics) -> None:
    """Have the process in the metrics; compiling processes are not part of it."""
    started = _start_time()
    metrics.read("process_cpu_seconds_total", "counter", "Processor seconds of this process.", lambda: [((), time.process_time())])
    metrics.read("process_resident_memory_bytes", "gauge", "Bytes of this process in memory.", lambda: [((), _pages(1) * _PAGE)])
    metrics.read("process_virtual_memory_bytes", "gauge", "Bytes of this process' address space.", lambda: [((), _pages(0) * _PAGE)])
    metrics.read("process_open_fds", "gauge", "Open file descriptors.", lambda: [((), _open_descriptors())])
    most = "File descriptors that there may be."
    metrics.read("process_max_fds", "gauge", most, lambda: [((), resource.getrlimit(resource.RLIMIT_NOFILE)[0])])
    start = "When this process was started, in seconds since the epoch."
    metrics.read("process_start_time_seconds", "gauge", start, lambda: [((), started)])
    info = (__version__, platform.python_version())
    metrics.read("puppet_build_info", "gauge", "Always 1; which version this is.", lambda: [(info, 1)], "version", "python")


def _pages(which: int) -> int:
    """The size of the address space (0) or of what is in memory (1), in pages."""
    return int(Path("/proc/self/statm").read_bytes().split()[which])


def _open_descriptors() -> int:
    """Linux 6.2 and later say the number as the size of the folder; before, its entries are counted."""
    return _DESCRIPTORS.stat().st_size or sum(1 for _ in _DESCRIPTORS.iterdir()) - 1  # without that of the listing


def _start_time() -> float:
    """Seconds since the epoch. What stands before the parenthesis in `stat` may hold spaces."""
    ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    booted = next(int(line.split()[1]) for line in Path("/proc/stat").read_bytes().splitlines() if line.startswith(b"btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")
