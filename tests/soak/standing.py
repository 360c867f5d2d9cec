"""What may not grow in a master that runs: measured from outside, and compared between an early and a late time."""

from __future__ import annotations

import asyncio
import contextlib
import re
import statistics
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.costs import family, memory_of
from tests.kept import temporary_files
from tests.processes import MasterProcess

GROWTH = 0.05
EVERY = 1.0  # seconds between two samples
ASKING = 10.0  # seconds for the metrics
SLACK = {"PSS, MiB": 0.0, "descriptors": 2.0, "threads": 1.0, "tasks": 2.0, "temporary files": 1.0}  # pieces that are no growth

Sample = dict[str, float]


def metrics(port: int) -> dict[str, float]:
    """Numbers without labels by their name."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ASKING) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(puppet_\w+) (\S+)$", text, re.MULTILINE)}


def standing(process: MasterProcess, port: int) -> Sample:
    """All processes of a master together. A process that has just gone counts no more."""
    counts = {"descriptors": 0.0, "threads": 0.0}
    for pid in family(process.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            counts["descriptors"] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
            counts["threads"] += len(list(Path(f"/proc/{pid}/task").iterdir()))
    return {
        "PSS, MiB": memory_of(process.pid)[1],
        **counts,
        "tasks": metrics(port)["puppet_tasks"],
        "temporary files": float(len(temporary_files(process.root))),
    }


@dataclass(slots=True)
class Watch:
    """Samples of a master, by the moment they were taken at."""

    process: MasterProcess
    port: int
    samples: list[tuple[float, Sample]] = field(default_factory=list)

    async def keep(self, say: Callable[[Sample], None]) -> None:
        """Runs until cancelled. A process that goes while it is looked at spoils one sample; the next is a second away."""
        while True:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                sample = await asyncio.to_thread(standing, self.process, self.port)
                self.samples.append((time.monotonic(), sample))
                say(sample)
            await asyncio.sleep(EVERY)

    def tenths(self, since: float) -> tuple[Sample, Sample]:
        """The medians of the first tenth of all samples since then and of the last."""
        taken = [sample for moment, sample in self.samples if moment >= since]
        size = max(1, len(taken) // 10)
        return medians(taken[:size]), medians(taken[-size:])


def medians(samples: Sequence[Sample]) -> Sample:
    return {what: statistics.median(sample[what] for sample in samples) for what in SLACK}


def grown(before: Sample, after: Sample, growth: float = GROWTH) -> list[str]:
    """What there is more of than may be."""
    return [what for what, slack in SLACK.items() if after[what] > before[what] + max(before[what] * growth, slack)]
