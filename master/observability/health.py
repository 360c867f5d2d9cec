"""
What of the master works: conditions that are looked at now and then, and the states of services that follow from them.

A request for a status reads what the last look said and causes no work. Source of the states, those of puppetserver's status API:
protocol reference 3.16.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.errors import PuppetError
from shared.process.log import NOTICE

from .metrics import Metrics, Samples

__all__ = ["COMPILING", "SERVICES", "Condition", "Health", "State"]

log = logging.getLogger("puppet.master")

State = Literal["running", "error", "unknown", "stopping", "starting"]

COMPILING = ("jruby-metrics", "master", "server")  # the services that answer with catalogs, by the names that agents and tools probe
SERVICES = ("ca", *COMPILING, "puppet-profiler", "status-service")
EVERY = 10.0  # seconds between two looks at a condition
PATIENCE = 60.0  # seconds without an end of the next look; then it is not known any more whether the condition holds


@dataclass(frozen=True, slots=True)
class Condition:
    """
    Something that services need.

    Attributes:
        name: short, for the metrics.
        alert: what is wrong where it does not hold, for whoever asks for the status: names no path and no host.
        services: those that do not work without; empty: it only costs an alert.
        problem: says what exactly is wrong, for the log, '' where nothing is; PuppetError and OSError say so, too.
    """

    name: str
    alert: str
    services: tuple[str, ...]
    problem: Callable[[], Awaitable[str]]


@dataclass(slots=True)
class _Verdict:
    """What is known of a condition since `at`."""

    problem: str | None = None  # None: nobody has looked yet
    at: float = 0.0


class Health:
    """
    The conditions of one master.

    Args:
        every: seconds between two looks at each condition. patience: seconds for that. clock: monotonic, in seconds.
    """

    def __init__(self, *, every: float = EVERY, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self.every = every
        self.patience = patience
        self.clock = clock
        self.conditions: dict[str, Condition] = {}
        self._verdicts: dict[str, _Verdict] = {}

    def add(self, conditions: Iterable[Condition]) -> None:
        """Have these looked at as well; before `watch`."""
        for condition in conditions:
            self.conditions[condition.name] = condition
            self._verdicts[condition.name] = _Verdict()

    def note(self, name: str, problem: str) -> None:
        """Tell what a condition has come to between two looks; '' where nothing is wrong. Changes are logged."""
        verdict = self._verdicts.get(name)
        if verdict is None:
            return
        before, verdict.problem, verdict.at = verdict.problem, problem, self.clock()
        if problem and problem != before:
            log.error("%s: %s", self.conditions[name].alert, problem)
        elif before and not problem:
            log.log(NOTICE, "This is over: %s", self.conditions[name].alert)

    def state(self, service: str) -> State:
        """The state of a service, of which nothing is wrong beside these conditions."""
        return worst(self._state(each.name) for each in self.conditions.values() if service in each.services)

    def alerts(self, service: str) -> list[tuple[str, Literal["error", "warning"]]]:
        """What to tell of a service to whoever asks, and how bad it is; what stops no service is told of the status service."""
        failed = [each for each in self.conditions.values() if self._state(each.name) in ("error", "unknown")]
        found: list[tuple[str, Literal["error", "warning"]]] = [(each.alert, "error") for each in failed if service in each.services]
        if service == "status-service":
            found += [(each.alert, "warning") for each in failed if not each.services]
        return found

    async def watch(self) -> None:
        """Runs until cancelled: looks at each condition every `every` seconds; one whose look hangs delays no other."""
        async with asyncio.TaskGroup() as group:
            for condition in self.conditions.values():
                group.create_task(self._watch(condition), name=f"look at {condition.name}")

    async def look(self, condition: Condition) -> None:
        """Look at one condition now."""
        try:
            problem = await condition.problem()
        except (PuppetError, OSError) as err:
            problem = str(err)
        except Exception as err:  # the outermost frame of a look, which must not end the others
            log.exception("Could not look at the condition %s", condition.name)
            problem = f"that could not be found out: {err}"
        self.note(condition.name, problem)

    def describe(self, metrics: Metrics) -> None:
        """Have services and conditions in the metrics."""

        def services() -> Samples:
            return [((service,), float(self.state(service) == "running")) for service in SERVICES]

        def conditions() -> Samples:
            return [((name,), float(self._state(name) == "running")) for name in self.conditions]

        metrics.read("puppet_service_running", "gauge", "1 for a service that works, else 0.", services, "service")
        metrics.read("puppet_condition_met", "gauge", "1 for what the services need and is so, else 0.", conditions, "condition")

    async def _watch(self, condition: Condition) -> None:
        while True:
            await self.look(condition)
            await asyncio.sleep(self.every)

    def _state(self, name: str) -> State:
        verdict = self._verdicts[name]
        if verdict.problem is None:
            return "starting"
        if self.clock() - verdict.at > self.every + self.patience:
            return "unknown"
        return "error" if verdict.problem else "running"


_WORST: Sequence[State] = ("error", "unknown", "stopping", "starting")


def worst(states: Iterable[State]) -> State:
    """The state of all services together, or of one with several conditions."""
    present = set(states)
    return next((state for state in _WORST if state in present), "running")
