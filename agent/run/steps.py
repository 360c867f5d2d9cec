"""The steps of a run as somebody who watches sees them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from shared.failpoints import failpoint


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """One step that has ended; `detail` is a few words for people."""

    name: str
    seconds: float
    detail: str = ""


StepObserver = Callable[[FinishedStep], None]


def _ignore_step(step: FinishedStep) -> None:
    return


class Steps:
    """Times the steps of one run: for the observer, and (`metrics`) for the report."""

    def __init__(self, observer: StepObserver | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.metrics: dict[str, float] = {}
        self._observer = observer or _ignore_step
        self._clock = clock
        self._began = clock()

    @contextmanager
    def step(self, name: str, *, metric: str = "") -> Iterator[ActiveStep]:
        """
        Time what is inside; it is a step even when it fails.

        Args:
            metric: Its name among the report's times; taken several times, it adds up.
        """
        active = ActiveStep()
        began = self._clock()
        failpoint(f"agent.{name}")
        try:
            yield active
        except BaseException:
            active.detail = active.detail or "failed"
            raise
        finally:
            seconds = self._clock() - began
            if metric:
                self.metrics[metric] = self.metrics.get(metric, 0.0) + seconds
            self._observer(FinishedStep(name, seconds, active.detail))
        failpoint(f"agent.{name}-done")

    def total(self) -> float:
        """Seconds since this was made."""
        return self._clock() - self._began


@dataclass(slots=True)
class ActiveStep:
    """A step under way; `detail` may be set meanwhile."""

    detail: str = field(default="")
