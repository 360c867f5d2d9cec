"""What the processing of commands has done since the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

QueueEvent = Literal["seen", "processed", "fatal", "retried", "discarded", "ignored"]
"""
What is counted of commands: taken from the queue, carried out, invalid or impossible to store, tried again, moved to the folder
`discarded`, left out because the queue has a newer one.
"""

QueueMeasure = Literal["processing-time", "queue-time", "message-persistence-time"]
"""What is measured of commands: their part of a transaction, the time in the queue, the time until they are acknowledged."""


@dataclass(slots=True)
class QueueStatistics:
    """The counts of events, and the seconds that commands took, all of them together."""

    _counts: dict[QueueEvent, int] = field(default_factory=dict)
    _seconds: dict[QueueMeasure, float] = field(default_factory=dict)

    def count(self, event: QueueEvent, commands: int = 1) -> None:
        """Count an event of so many commands."""
        self._counts[event] = self._counts.get(event, 0) + commands

    def add_seconds(self, measure: QueueMeasure, seconds: float) -> None:
        """Add the time that a command took, or several together."""
        self._seconds[measure] = self._seconds.get(measure, 0.0) + seconds

    def counts(self) -> Mapping[QueueEvent, int]:
        """Return how many commands each event has happened to; one that never happened may be missing."""
        return dict(self._counts)

    def seconds(self) -> Mapping[QueueMeasure, float]:
        """Return the sum of each time; divided by the number of commands it is the mean."""
        return dict(self._seconds)
