"""Counters and measurements in the text form that Prometheus reads. Source: Prometheus' text format 0.0.4."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

MIME = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]


def _sample_line(name: str, labels: Labels, values: Labels, number: str) -> str:
    """Return `name{label="value",...} number`."""
    pairs = [f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True)]
    return f"{name}{'{' + ','.join(pairs) + '}' if pairs else ''} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Counter:
    """A count that only grows. Without labels it is shown from the start, else from `start` on."""

    def __init__(self, name: str, doc: str, *labels: str) -> None:
        self.name, self.doc, self.labels = name, doc, labels
        self._counts: dict[Labels, float] = {} if labels else {(): 0}

    def start(self, *values: str) -> None:
        """Show the count of these labels from 0 on: Prometheus sees no growth when a line begins with 1."""
        self._counts.setdefault(values, 0)

    def add(self, *values: str) -> None:
        self._counts[values] = self._counts.get(values, 0) + 1

    def lines(self) -> Iterator[str]:
        return family_lines(self.name, "counter", self.doc, self.labels, sorted(self._counts.copy().items()))


class Histogram:
    """
    The distribution of durations, in seconds; `bounds` are the upper ends of the buckets, without which only their sum and count are shown.
    Without labels it is shown from the start, else from `start` on.
    """

    def __init__(self, name: str, doc: str, bounds: tuple[float, ...], *labels: str) -> None:
        self.name, self.doc, self.bounds, self.labels = name, doc, bounds, labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self.start()

    def start(self, *values: str) -> None:
        """Show the buckets of these labels from 0 on."""
        self._counts.setdefault(values, [0] * (len(self.bounds) + 1))
        self._sums.setdefault(values, 0.0)

    def observe(self, seconds: float, *values: str) -> None:
        self.start(*values)
        counts = self._counts[values]
        counts[bisect.bisect_left(self.bounds, seconds)] += 1
        self._sums[values] += seconds

    def lines(self) -> Iterator[str]:
        yield from family_lines(self.name, "histogram" if self.bounds else "summary", self.doc, (), ())
        for values, counts in sorted(self._counts.copy().items()):
            cumulative = 0
            for end, count in zip((*(f"{bound:g}" for bound in self.bounds), "+Inf"), counts, strict=True):
                cumulative += count
                if self.bounds:
                    yield _sample_line(f"{self.name}_bucket", (*self.labels, "le"), (*values, end), f"{cumulative}")
            yield _sample_line(f"{self.name}_sum", self.labels, values, f"{self._sums[values]:.6f}")
            yield _sample_line(f"{self.name}_count", self.labels, values, f"{cumulative}")


def family_lines(name: str, kind: str, doc: str, labels: Labels, samples: Samples) -> Iterator[str]:
    """Yield the lines of one name: its description, then its numbers."""
    yield f"# HELP {name} {doc}"
    yield f"# TYPE {name} {kind}"
    for values, number in samples:
        yield _sample_line(name, labels, values, f"{number:.15g}")


def exposition(lines: Iterable[str]) -> str:
    """Return the text that Prometheus fetches."""
    return "".join(f"{line}\n" for line in lines)
