"""The origins of the last catalogs: the cache, or a compilation and the reason for it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from .metrics import Metrics

MEMORY = "memory"
NEW = "new"
ORIGINS = (MEMORY, NEW, "code", "node", "files", "answers")
"""
Answered from memory; compiled because no earlier catalog of the node is there, or because something has changed since then: the code, what
it read of the node (facts, classification), data or templates, what a PuppetDB answered.
"""
LAST = 1000
"""The number of catalogs in `CatalogOrigins.last`."""
MAX_REASONS = 50
"""Different reasons that are counted; further ones are counted together."""
OTHERS = ("", "others")

Reason = tuple[str, str]
"""A place in the code, '' when there is none, and why a catalog in which it had a part is compiled each time."""


@dataclass(frozen=True, slots=True)
class LastCatalogs:
    """
    The last catalogs.

    Attributes:
        origins: How many there are by origin.
        uncacheable: How many of them cannot be answered from memory the next time.
        reasons: Why not, the most frequent first, each with the number of catalogs.
    """

    origins: dict[str, int]
    uncacheable: int
    reasons: list[tuple[Reason, int]]

    @property
    def total(self) -> int:
        return sum(self.origins.values())


class CatalogOrigins:
    """
    Counts catalogs by origin, and those that cannot be answered from memory the next time by reason.

    Attributes:
        total: How many catalogs there were.
    """

    def __init__(self) -> None:
        self.total = 0
        self._origins: Counter[str] = Counter()
        self._reasons: Counter[Reason] = Counter()
        self._last: deque[tuple[str, tuple[Reason, ...]]] = deque(maxlen=LAST)

    def note(self, origin: str, reasons: Sequence[Reason]) -> None:
        """Count a catalog; `reasons` are those for which the next one must be compiled, none when it may come from the cache."""
        self.total += 1
        self._origins[origin] += 1
        counted = tuple(dict.fromkeys(self._counted(reason) for reason in reasons))
        self._reasons.update(counted)
        self._last.append((origin, counted))

    def _counted(self, reason: Reason) -> Reason:
        return reason if reason in self._reasons or len(self._reasons) < MAX_REASONS else OTHERS

    def last(self) -> LastCatalogs:
        """Return the results of the last catalogs."""
        reasons = Counter(reason for _, reasons in self._last for reason in reasons)
        return LastCatalogs(
            dict(Counter(origin for origin, _ in self._last)), sum(bool(reasons) for _, reasons in self._last), reasons.most_common()
        )

    def describe(self, metrics: Metrics) -> None:
        """Add the counts to the metrics."""
        metrics.read(
            "puppet_catalogs_total",
            "counter",
            "Catalogs by where they came from: memory, or why they were compiled.",
            lambda: [((origin,), self._origins[origin]) for origin in ORIGINS],
            "origin",
        )
        metrics.read(
            "puppet_catalogs_uncacheable_total",
            "counter",
            "Catalogs that are compiled each time, by the code that makes it so; one may have several reasons.",
            lambda: [(reason, count) for reason, count in sorted(self._reasons.items())],
            "place",
            "reason",
        )
