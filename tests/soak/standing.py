"""What may not grow in a master that runs: measured from outside, at moments when nobody is connected, early and late."""

from __future__ import annotations

import asyncio
import contextlib
import re
import statistics
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.costs import family
from tests.support.kept import temporary_files
from tests.support.processes import MasterProcess

GROWTH = 0.05
ASKING = 10.0  # seconds for the metrics
QUIET = 15.0  # seconds until nobody is connected any more
LOOKS = 3  # samples each time
BETWEEN = 0.5  # seconds from one to the next
# What is counted, and how many pieces more are no growth.
SLACK = {
    "memory of all processes, MiB": 0.0,
    "memory of the front, MiB": 0.0,
    "descriptors": 2.0,
    "threads": 1.0,
    "tasks": 2.0,
    "temporary files": 0.0,
}

Sample = dict[str, float]


def metrics(port: int) -> dict[str, float]:
    """Numbers without labels by their name."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ASKING) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(puppet_\w+) (\S+)$", text, re.MULTILINE)}


def standing(process: MasterProcess, port: int) -> Sample:
    """All processes of a master together; one that has just gone counts no more."""
    found = dict.fromkeys(SLACK, 0.0)
    for pid in family(process.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found["memory of all processes, MiB"] += own_memory(pid)
            found["descriptors"] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
            found["threads"] += len(list(Path(f"/proc/{pid}/task").iterdir()))
    found["memory of the front, MiB"] = own_memory(process.pid)
    found["tasks"] = metrics(port)["puppet_tasks"]
    found["temporary files"] = len(temporary_files(process.root))
    return found


def own_memory(pid: int) -> float:
    """MiB of one process that are of no file, pages that it shares with its own in part; those of libraries count by who else has them."""
    told = dict(re.findall(r"^(Pss_\w+):\s+(\d+) kB$", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE))
    return (int(told["Pss_Anon"]) + int(told["Pss_Shmem"])) / 1024


@dataclass(slots=True)
class Watch:
    """Samples of a master, each by the moment it was taken at, of moments when nobody is connected: they can be compared."""

    process: MasterProcess
    port: int
    samples: list[tuple[float, Sample]] = field(default_factory=list)
    crowded: int = 0  # times that somebody was still there

    async def look(self) -> Sample:
        """When all have gone, to be called when nobody new comes; the last of a few samples."""
        deadline = time.monotonic() + QUIET
        while (await asyncio.to_thread(metrics, self.port))["puppet_connections"]:
            if time.monotonic() > deadline:
                self.crowded += 1
                break
            await asyncio.sleep(0.1)
        for _ in range(LOOKS):
            await asyncio.sleep(BETWEEN)
            self.samples.append((time.monotonic(), await asyncio.to_thread(standing, self.process, self.port)))
        return self.samples[-1][1]

    def tenths(self, since: float) -> tuple[Sample, Sample]:
        """The medians of the first tenth of all samples since then and of the last."""
        taken = [sample for moment, sample in self.samples if moment >= since]
        size = max(LOOKS, len(taken) // 10)
        return medians(taken[:size]), medians(taken[-size:])


def medians(samples: Sequence[Sample]) -> Sample:
    return {what: statistics.median(sample[what] for sample in samples) for what in SLACK}


def grown(before: Sample, after: Sample, growth: float = GROWTH) -> list[str]:
    """What there is more of than may be."""
    return [what for what, slack in SLACK.items() if after[what] > before[what] + max(before[what] * growth, slack)]
