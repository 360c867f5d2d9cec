"""
The health of a master: conditions that are checked at intervals, and the states of services that follow from them.

A request for a status reads the results of the last checks and causes no work. The states are those of puppetserver's status API.
Source: protocol reference 3.16.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from httpd.metrics import Samples
from shared.errors import PuppetError
from shared.process.log import NOTICE

from .metrics import Metrics

log = logging.getLogger("puppet.master")

State = Literal["running", "error", "unknown", "stopping", "starting"]

COMPILING = ("jruby-metrics", "master", "server")  # the services that answer with catalogs, by the names that agents and tools probe
SERVICES = ("ca", *COMPILING, "puppet-profiler", "status-service")
LOOK_EVERY = 10.0  # seconds between two checks of a condition
SOONER = 2.0  # seconds to the next one while it does not hold, so that agents come back soon after the cause is gone
PATIENCE = 60.0  # seconds that the next check may take, until the condition counts as unknown


@dataclass(frozen=True, slots=True)
class Condition:
    """
    A condition that services need.

    Attributes:
        name: A short name for the metrics.
        alert: What is wrong when it does not hold, for clients that read the status; names no path and no host.
        services: The services that do not work without it; empty: it causes a warning only.
        problem: Returns what exactly is wrong, for the log, '' when it holds; a PuppetError or OSError means that it does not hold.
    """

    name: str
    alert: str
    services: tuple[str, ...]
    problem: Callable[[], Awaitable[str]]


@dataclass(slots=True)
class _Verdict:
    """The result of a condition's last check, and the time `at` of it."""

    problem: str | None = None  # None: it has not been checked yet
    at: float = 0.0


class Health:
    """
    The conditions of one master.

    Args:
        every: Seconds between two checks of each condition.
        patience: Seconds that a check may take.
        clock: Returns monotonic seconds.
    """

    def __init__(self, *, every: float = LOOK_EVERY, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self.every = every
        self.patience = patience
        self.clock = clock
        self.conditions: dict[str, Condition] = {}
        self._verdicts: dict[str, _Verdict] = {}
        self.details: Callable[[], Mapping[str, object]] = dict  # of the status service, for clients that read the status

    def add(self, conditions: Iterable[Condition]) -> None:
        """Add conditions; must be called before `watch`."""
        for condition in conditions:
            self.conditions[condition.name] = condition
            self._verdicts[condition.name] = _Verdict()

    def note(self, name: str, problem: str) -> None:
        """Set the problem of a condition between two checks, '' when it holds, and log a change."""
        verdict = self._verdicts.get(name)
        if verdict is None:
            return
        before, verdict.problem, verdict.at = verdict.problem, problem, self.clock()
        if problem and problem != before:
            log.error("%s: %s", self.conditions[name].alert, problem)
        elif before and not problem:
            log.log(NOTICE, "Recovered: %s", self.conditions[name].alert)

    def state(self, service: str) -> State:
        """Return the state of a service from its conditions."""
        return worst(self._state(condition.name) for condition in self.conditions.values() if service in condition.services)

    def alerts(self, service: str) -> list[tuple[str, Literal["error", "warning"]]]:
        """Return the alerts of a service with their severity; a problem that stops no service is a warning of the status service."""
        failed = [condition for condition in self.conditions.values() if self._state(condition.name) in ("error", "unknown")]
        alerts: list[tuple[str, Literal["error", "warning"]]] = [
            (condition.alert, "error") for condition in failed if service in condition.services
        ]
        if service == "status-service":
            alerts += [(condition.alert, "warning") for condition in failed if not condition.services]
        return alerts

    async def watch(self) -> None:
        """Run until cancelled: check each condition every `every` seconds, sooner if it does not hold; one that hangs delays no other."""
        async with asyncio.TaskGroup() as group:
            for condition in self.conditions.values():
                group.create_task(self._check_repeatedly(condition), name=f"look at {condition.name}")

    async def check(self, condition: Condition) -> None:
        """Check one condition now."""
        try:
            problem = await condition.problem()
        except (PuppetError, OSError) as err:
            problem = str(err)
        except Exception as err:  # the outermost frame of a check, which must not end the others
            log.exception("Could not look at the condition %s", condition.name)
            problem = f"the check failed: {err}"
        self.note(condition.name, problem)

    def describe(self, metrics: Metrics) -> None:
        """Add services and conditions to the metrics."""

        def services() -> Samples:
            return [((service,), float(self.state(service) == "running")) for service in SERVICES]

        def conditions() -> Samples:
            return [((name,), float(self._state(name) == "running")) for name in self.conditions]

        metrics.read("puppet_service_running", "gauge", "1 for a service that works, else 0.", services, "service")
        metrics.read("puppet_condition_met", "gauge", "1 if a condition of the services is met, else 0.", conditions, "condition")

    async def _check_repeatedly(self, condition: Condition) -> None:
        while True:
            await self.check(condition)
            await asyncio.sleep(min(self.every, SOONER) if self._verdicts[condition.name].problem else self.every)

    def _state(self, name: str) -> State:
        verdict = self._verdicts[name]
        if verdict.problem is None:
            return "starting"
        if self.clock() - verdict.at > self.every + self.patience:
            return "unknown"
        return "error" if verdict.problem else "running"


_STATES_WORST_FIRST: Sequence[State] = ("error", "unknown", "stopping", "starting")


def worst(states: Iterable[State]) -> State:
    """Return the worst of the states; running when there are none."""
    present = set(states)
    return next((state for state in _STATES_WORST_FIRST if state in present), "running")
