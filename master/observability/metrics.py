"""The counters and measurements of a master."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from httpd.metrics import Counter, Histogram, Samples, exposition, family_lines

REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
COMPILE_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
LAG_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
LAG_EVERY = 0.1  # seconds between two measurements: a shorter block may be missed; each measurement wakes the process
WINDOW = 60.0  # seconds
OUTCOMES = ("done", "memory", "failed", "timeout", "died")  # of the requests to compiling processes
_USUAL_REQUESTS = (  # the requests of agents at their runs
    ("catalog", "POST"),
    ("facts", "PUT"),
    ("file_bucket_file", "PUT"),
    ("file_content", "GET"),
    ("file_metadata", "GET"),
    ("node", "GET"),
    ("report", "PUT"),
)


class LongestInWindow:
    """The longest duration that was observed within the last one to two `WINDOW`s of a clock that only grows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window_start = 0.0
        self._in_last_window = self._in_window = 0.0

    def observe(self, seconds: float, at: float) -> None:
        self._advance(at)
        self._in_window = max(self._in_window, seconds)

    def of(self, at: float) -> float:
        self._advance(at)
        return max(self._in_last_window, self._in_window)

    def samples(self) -> Samples:
        """Return the duration as the metrics read it."""
        return [((), self.of(self._clock()))]

    def _advance(self, at: float) -> None:
        if at - self._window_start >= WINDOW:
            self._in_last_window = self._in_window if at - self._window_start < 2 * WINDOW else 0.0
            self._window_start, self._in_window = at, 0.0


class ProcessorWaits:
    """Seconds that the thread which made this object was ready and had no processor; 0 when the kernel does not count them."""

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


class Metrics:
    """
    All counters and measurements of one master; `clock` returns monotonic seconds. Labels have few values, independent of peers' data.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.requests = Counter("puppet_requests_total", "Requests answered.", "indirection", "method", "status")
        self.latency = Histogram("puppet_request_seconds", "Seconds to an answer.", REQUEST_SECONDS, "indirection", "method")
        self.compiles = Histogram(
            "puppet_compile_seconds", "Seconds for a catalog or listing, without the wait for a process.", COMPILE_SECONDS, "outcome"
        )
        self.ca = Counter("puppet_ca_actions_total", "What the CA did or refused.", "action", "result")
        self.lag = Histogram("puppet_loop_lag_seconds", "Seconds that the event loop was late.", LAG_SECONDS)
        for indirection, method in _USUAL_REQUESTS:
            self.latency.start(indirection, method)
            for status in ("200", "500", "503"):
                self.requests.start(indirection, method, status)
        for outcome in OUTCOMES:
            self.compiles.start(outcome)
        self._families = [family.lines for family in (self.requests, self.latency, self.compiles, self.ca, self.lag)]
        self.longest_lag, self.longest_block, self.longest_busy = LongestInWindow(clock), LongestInWindow(clock), LongestInWindow(clock)
        for what, longest, doc in (
            ("lag", self.longest_lag, "Seconds that the event loop was late at most, in the last minute or two."),
            ("block", self.longest_block, "The same without the time in which it waited for a processor."),
            ("busy", self.longest_busy, "The same, only the time in which it had a processor."),
        ):
            self.read(f"puppet_loop_{what}_longest_seconds", "gauge", doc, longest.samples)

    def read(self, name: str, kind: Literal["gauge", "counter"], doc: str, samples: Callable[[], Samples], *labels: str) -> None:
        """Add numbers from another object: `samples` returns pairs of the values of `labels` and a number."""
        self._families.append(lambda: family_lines(name, kind, doc, labels, samples()))

    def count_answer(self, indirection: str, method: str, status: int, seconds: float) -> None:
        """Count a request that has ended; `status` is 0 when no response was sent."""
        known = method if method in _METHODS else "other"
        self.requests.add(indirection, known, str(status) if status else "none")
        self.latency.observe(seconds, indirection, known)

    def start_ca(self, actions: Iterable[str]) -> None:
        """Show the counts of a CA's actions from 0 on."""
        for action in actions:
            for result in ("done", "refused"):
                self.ca.start(action, result)

    def count_decision(self, entry: Mapping[str, object]) -> None:
        """Count an entry of the CA's audit."""
        self.ca.add(str(entry["action"]), "refused" if str(entry["result"]).startswith("refused") else "done")

    def text(self) -> str:
        """Return the text that Prometheus fetches."""
        return exposition(line for lines in self._families for line in lines())

    async def watch_loop(self, waits: Callable[[], float] | None = None, busy: Callable[[], float] = time.thread_time) -> None:
        """
        Run until cancelled: measure how late the event loop is, and how much of that is due to this process.

        Args:
            waits: Returns the seconds that the loop's thread has waited for a processor; None: the kernel's count is read.
            busy: Returns the seconds that this thread has had a processor.
        """
        kernel = ProcessorWaits()
        waited = waits or kernel
        waited_before, now, busy_before = waited(), self._clock(), busy()
        try:
            while True:
                await asyncio.sleep(LAG_EVERY)
                due, now, waited_after, busy_after = now + LAG_EVERY, self._clock(), waited(), busy()
                late = max(0.0, now - due)
                self.lag.observe(late)
                self.longest_lag.observe(late, now)
                self.longest_block.observe(max(0.0, late - (waited_after - waited_before)), now)
                self.longest_busy.observe(min(late, busy_after - busy_before), now)
                waited_before, busy_before = waited_after, busy_after
        finally:
            kernel.close()


_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})
