"""What a master counts and measures of itself, as Prometheus reads it. Source: Prometheus' text format 0.0.4."""

from __future__ import annotations

import asyncio
import bisect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, Protocol

MIME = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
COMPILE_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
LAG_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
LAG_EVERY = 0.1  # seconds between two looks: a shorter block is seen now and then, a longer one for certain; each look wakes the process
WINDOW = 60.0  # seconds
OUTCOMES = ("done", "memory", "failed", "timeout", "died")  # of what compiling processes are asked
_USUAL = (  # what agents ask for at their runs
    ("catalog", "POST"),
    ("facts", "PUT"),
    ("file_bucket_file", "PUT"),
    ("file_content", "GET"),
    ("file_metadata", "GET"),
    ("node", "GET"),
    ("report", "PUT"),
)

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]


def _shown(names: Labels, values: Labels) -> str:
    """`{name="value",...}`; nothing when there are no labels."""
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Family(Protocol):
    def lines(self) -> Iterator[str]: ...


class Counter:
    """Something that happens; only upwards. Without labels it is there from the start, else by `start`."""

    def __init__(self, name: str, doc: str, *labels: str) -> None:
        self.name, self.doc, self.labels = name, doc, labels
        self._counts: dict[Labels, float] = {} if labels else {(): 0}

    def start(self, *values: str) -> None:
        """Count from 0 what has not happened yet: Prometheus sees no growth where a line begins with 1."""
        self._counts.setdefault(values, 0)

    def add(self, *values: str) -> None:
        self._counts[values] = self._counts.get(values, 0) + 1

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "counter", self.doc)
        for values, count in sorted(self._counts.copy().items()):
            yield f"{self.name}{_shown(self.labels, values)} {count:g}"


class Histogram:
    """
    How long something takes, in seconds; `bounds` are the upper ends of what is told apart. Without labels it is there from the
    start, else by `start`.
    """

    def __init__(self, name: str, doc: str, bounds: tuple[float, ...], *labels: str) -> None:
        self.name, self.doc, self.bounds, self.labels = name, doc, bounds, labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self.start()

    def start(self, *values: str) -> None:
        """Count from 0 what has not happened yet."""
        self._counts.setdefault(values, [0] * (len(self.bounds) + 1))
        self._sums.setdefault(values, 0.0)

    def observe(self, seconds: float, *values: str) -> None:
        self.start(*values)
        counts = self._counts[values]
        counts[bisect.bisect_left(self.bounds, seconds)] += 1
        self._sums[values] += seconds

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "histogram", self.doc)
        for values, counts in sorted(self._counts.copy().items()):
            so_far = 0
            for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
                so_far += count
                end = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield f"{self.name}_bucket{_shown((*self.labels, 'le'), (*values, end))} {so_far}"
            yield f"{self.name}_sum{_shown(self.labels, values)} {self._sums[values]:.6f}"
            yield f"{self.name}_count{_shown(self.labels, values)} {so_far}"


class Longest:
    """The longest of what was observed within the last one to two `WINDOW`s."""

    def __init__(self) -> None:
        self._began = 0.0
        self._before = self._now = 0.0

    def observe(self, seconds: float, at: float) -> None:
        self._go_on(at)
        self._now = max(self._now, seconds)

    def of(self, at: float) -> float:
        self._go_on(at)
        return max(self._before, self._now)

    def _go_on(self, at: float) -> None:
        if at - self._began >= WINDOW:
            self._before = self._now if at - self._began < 2 * WINDOW else 0.0
            self._began, self._now = at, 0.0


class ProcessorWaits:
    """Seconds that the thread which made it could have run and had no processor. 0 where the kernel does not count them."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1

    def __call__(self) -> float:
        return int(os.pread(self._descriptor, 100, 0).split()[1]) / 1e9 if self._descriptor >= 0 else 0.0

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Read:
    """Numbers that somebody else keeps; they are looked at when they are asked for."""

    def __init__(self, name: str, kind: str, doc: str, labels: Labels, samples: Callable[[], Samples]) -> None:
        self.name, self.kind, self.doc, self.labels, self.samples = name, kind, doc, labels, samples

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.kind, self.doc)
        for values, number in self.samples():
            yield f"{self.name}{_shown(self.labels, values)} {number:.15g}"


def _head(name: str, kind: str, doc: str) -> Iterator[str]:
    yield f"# HELP {name} {doc}"
    yield f"# TYPE {name} {kind}"


class Metrics:
    """All that one master counts and measures. Labels take few values, whatever peers send."""

    def __init__(self) -> None:
        self.requests = Counter("puppet_requests_total", "Requests answered.", "indirection", "method", "status")
        self.latency = Histogram("puppet_request_seconds", "Seconds to an answer.", REQUEST_SECONDS, "indirection", "method")
        self.compiles = Histogram(
            "puppet_compile_seconds", "Seconds for a catalog or listing, the wait for a process left out.", COMPILE_SECONDS, "outcome"
        )
        self.ca = Counter("puppet_ca_actions_total", "What the CA did or refused.", "action", "result")
        self.lag = Histogram("puppet_loop_lag_seconds", "Seconds that the event loop was late.", LAG_SECONDS)
        for indirection, method in _USUAL:
            self.latency.start(indirection, method)
            for status in ("200", "500", "503"):
                self.requests.start(indirection, method, status)
        for outcome in OUTCOMES:
            self.compiles.start(outcome)
        self._families: list[_Family] = [self.requests, self.latency, self.compiles, self.ca, self.lag]
        self.longest_lag, self.longest_block, self.longest_busy = Longest(), Longest(), Longest()
        self.read(
            "puppet_loop_lag_longest_seconds",
            "gauge",
            "Seconds that the event loop was late at most, in the last minute or two.",
            lambda: [((), self.longest_lag.of(time.monotonic()))],
        )
        self.read(
            "puppet_loop_block_longest_seconds",
            "gauge",
            "The same without the time in which it waited for a processor.",
            lambda: [((), self.longest_block.of(time.monotonic()))],
        )
        self.read(
            "puppet_loop_busy_longest_seconds",
            "gauge",
            "The same, only the time in which it had a processor.",
            lambda: [((), self.longest_busy.of(time.monotonic()))],
        )

    def read(self, name: str, kind: Literal["gauge", "counter"], doc: str, samples: Callable[[], Samples], *labels: str) -> None:
        """Have numbers that somebody else keeps in the text: `samples` gives the values of `labels`, and the number."""
        self._families.append(_Read(name, kind, doc, labels, samples))

    def answered(self, indirection: str, method: str, status: int, seconds: float) -> None:
        """One request has its answer."""
        known = method if method in _METHODS else "other"
        self.requests.add(indirection, known, str(status) if status else "none")
        self.latency.observe(seconds, indirection, known)

    def start_ca(self, actions: Iterable[str]) -> None:
        """Count the actions of a CA from 0."""
        for action in actions:
            for result in ("done", "refused"):
                self.ca.start(action, result)

    def decided(self, entry: Mapping[str, object]) -> None:
        """One entry of the CA's audit."""
        self.ca.add(str(entry["action"]), "refused" if str(entry["result"]).startswith("refused") else "done")

    def text(self) -> str:
        """What Prometheus fetches."""
        return "".join(f"{line}\n" for family in self._families for line in family.lines())

    async def watch_loop(self, waits: Callable[[], float] | None = None) -> None:
        """
        Runs until cancelled: measures how late the event loop is, and for how much of that its process is to blame.

        Args:
            waits: the seconds that the loop's thread has waited for a processor; None: as the kernel tells them.
        """
        kernel = ProcessorWaits()
        waited = waits or kernel
        before, now, busy_before = waited(), time.monotonic(), time.thread_time()
        try:
            while True:
                await asyncio.sleep(LAG_EVERY)
                due, now, after, busy = now + LAG_EVERY, time.monotonic(), waited(), time.thread_time()
                late = max(0.0, now - due)
                self.lag.observe(late)
                self.longest_lag.observe(late, now)
                self.longest_block.observe(max(0.0, late - (after - before)), now)
                self.longest_busy.observe(min(late, busy - busy_before), now)
                before, busy_before = after, busy
        finally:
            kernel.close()


_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})
