"""The progress of a preview: a bar, the rate and the remaining time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ..progress import ProgressLine

_WIDTH = 24


@dataclass(slots=True)
class PreviewProgress:
    """Counts the nodes that are done and shows how far the preview is; `total` 0: of how many is not known."""

    line: ProgressLine
    total: int
    clock: Callable[[], float] = time.monotonic
    states: Counter[str] = field(default_factory=Counter)
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def count(self, state: str) -> None:
        """Count a node that is done."""
        self.states[state] += 1
        self.line.show(self.text())

    def text(self) -> str:
        """Return the bar with its numbers."""
        done = self.states.total()
        seconds = max(self.clock() - self.began, 1e-9)
        counted = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        if not self.total:  # only who makes the preview knows
            return f"{done} {'node' if done == 1 else 'nodes'}, {done / seconds:.1f} a second ({counted})"
        share = done / self.total
        bar = "#" * int(share * _WIDTH)
        left = (self.total - done) * seconds / done if done else 0.0
        return f"[{bar:<{_WIDTH}}] {done}/{self.total} nodes, {done / seconds:.1f} a second, {left:.0f} s left ({counted})"
