"""What a run of pytest has found: outcomes, reasons of skips, and how long each test took; kept as JSON between the stages of a gate."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Results:
    """
    `seconds` has the time of each test by its id, setup and teardown included.

    `unmarked` has that of the tests that should be short (not marked slow, and not left to the full run), without teardown and without the
    setup of what they share with others.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    unmarked: dict[str, float] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write them to a file, which is made with its folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {"outcomes": self.outcomes, "skips": self.skips, "seconds": self.seconds, "unmarked": self.unmarked}
        path.write_text(json.dumps(stored))

    @classmethod
    def read(cls, path: Path) -> Results:
        """Return what was written."""
        stored = json.loads(path.read_text())
        return cls(Counter(stored["outcomes"]), Counter(stored["skips"]), stored["seconds"], stored["unmarked"])

    def add(self, other: Results) -> None:
        """Take in the results of another run, of other tests."""
        self.outcomes += other.outcomes
        self.skips += other.skips
        self.seconds |= other.seconds
        self.unmarked |= other.unmarked

    def closing_line(self, seconds: float) -> str:
        """Return the line that pytest would end with, had it run all of these tests at once."""
        counts = [f"{self.outcomes[each]} {each}" for each in ("failed", "passed", "skipped", "error") if self.outcomes[each]]
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f" {', '.join(counts) or 'no tests ran'} in {seconds:.2f}s ({hours}:{minutes:02}:{rest:02}) ".center(80, "=")
