"""The steps of a run, timed for observers and for the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from shared.failpoints import failpoint


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step that has ended; `detail` is a few words for people."""

    name: str
    seconds: float
    detail: str = ""


StepObserver = Callable[[FinishedStep], None]


class Steps:
    """The steps of one run. Each is timed for the observer, and in `metrics` for the report."""

    def __init__(self, observer: StepObserver | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.metrics: dict[str, float] = {}
        self._observer = observer
        self._clock = clock
        self._began = clock()

    @contextmanager
    def step(self, name: str, *, metric: str = "") -> Iterator[ActiveStep]:
        """
        Time the code within this block as a step, also when it fails.

        Args:
            metric: The step's name among the report's times; the seconds of several steps with one name add up.
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
            if self._observer is not None:
                self._observer(FinishedStep(name, seconds, active.detail))
        failpoint(f"agent.{name}-done")

    def total(self) -> float:
        """Return the seconds since this object was made."""
        return self._clock() - self._began


@dataclass(slots=True)
class ActiveStep:
    """A step that has not ended; `detail` may be set until then."""

    detail: str = field(default="")
