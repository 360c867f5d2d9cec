"""The metrics that Prometheus' clients have for every process, by the same names, and the version. Source: Linux' /proc."""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path

from shared import __version__
from shared.process.memory import address_space, resident_memory

from .metrics import Metrics

_DESCRIPTORS = Path("/proc/self/fd")


def describe_process(metrics: Metrics) -> None:
    """Add this process to the metrics, without its compiling processes."""
    started = _start_time()
    metrics.read("process_cpu_seconds_total", "counter", "Processor seconds of this process.", lambda: [((), time.process_time())])
    metrics.read("process_resident_memory_bytes", "gauge", "Bytes of this process in memory.", lambda: [((), resident_memory())])
    metrics.read("process_virtual_memory_bytes", "gauge", "Bytes of this process' address space.", lambda: [((), address_space())])
    metrics.read("process_open_fds", "gauge", "Open file descriptors.", lambda: [((), _open_descriptors())])
    limit_doc = "File descriptors that there may be."
    metrics.read("process_max_fds", "gauge", limit_doc, lambda: [((), resource.getrlimit(resource.RLIMIT_NOFILE)[0])])
    start = "When this process was started, in seconds since the epoch."
    metrics.read("process_start_time_seconds", "gauge", start, lambda: [((), started)])
    info = (__version__, platform.python_version())
    metrics.read("puppet_build_info", "gauge", "Always 1; which version this is.", lambda: [(info, 1)], "version", "python")


def _open_descriptors() -> int:
    """Return the number of open descriptors: the size of the folder since Linux 6.2, before that the number of its entries."""
    return _DESCRIPTORS.stat().st_size or sum(1 for _ in _DESCRIPTORS.iterdir()) - 1  # without that of the listing


def _start_time() -> float:
    """Return when this process started, in seconds since the epoch. The name in parentheses in `stat` may hold spaces."""
    ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    booted = next(int(line.split()[1]) for line in Path("/proc/stat").read_bytes().splitlines() if line.startswith(b"btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")
