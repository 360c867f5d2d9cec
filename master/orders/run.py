"""Runs that were ordered: they are sent to agents, so many at the same time, and followed until their reports."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from shared.errors import BadRequest, Unavailable
from shared.models.report import Report
from shared.names import valid_certname
from shared.orders import MAX_LINE, MAX_LINES, RunLines, RunOrder
from shared.process.supervision import wait_for_event

from .waiting import WaitingAgents

HEARTBEAT: Final = 5.0
"""Seconds after which whoever follows is told that the runs are still under way."""
MAX_CONCURRENCY: Final = 1000
LONGEST: Final = 7 * 86400.0  # seconds, of a timeout
_MAX_ERRORS: Final = 100  # of a report
_MAX_EVENTS: Final = 10_000  # that nobody has read yet; further lines of runs come with the reports
_MEMBERS: Final = frozenset({"nodes", "query", "all", "noop", "tags", "environment", "concurrency", "timeout", "follow", "log"})

STARTED, ABSENT, ENDED, TIMEOUT = "started", "absent", "ended", "timeout"
CHANGED, UNCHANGED, FAILED, PENDING = "changed", "unchanged", "failed", "pending"


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """
    The request for runs.

    Attributes:
        names, query, all: Which nodes; one of them is set.
        concurrency: How many runs are under way at the same time.
        timeout: Seconds that a run may take.
        follow: Seconds for which the report of a node that does not wait is awaited; 0: it is not.
    """

    order: RunOrder
    names: tuple[str, ...] = ()
    query: str | None = None
    all: bool = False
    concurrency: int = 20
    timeout: float = 600.0
    follow: float = 0.0

    @classmethod
    def of(cls, data: Any, number: str) -> RunQuestion:
        """Return the request in a body; the order gets the given id. Raise BadRequest for an invalid one."""
        if not isinstance(data, Mapping) or not data.keys() <= _MEMBERS:
            raise BadRequest(f"The body is an object with these members: {', '.join(sorted(_MEMBERS))}")
        names, query, is_all = data.get("nodes"), data.get("query"), data.get("all", False)
        if not isinstance(is_all, bool) or not isinstance(query, str | None):
            raise BadRequest("query is a text, all is true or false")
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise BadRequest("nodes is a list of certnames")
        if sum((bool(names), query is not None, is_all)) != 1:
            raise BadRequest("Say which nodes: one of nodes, query and all")
        order = RunOrder.of({"id": number, **{name: data[name] for name in ("noop", "tags", "environment", "log") if name in data}})
        concurrency, timeout, follow = data.get("concurrency", 20), data.get("timeout", 600), data.get("follow", 0)
        if type(concurrency) is not int or not 1 <= concurrency <= MAX_CONCURRENCY:
            raise BadRequest(f"concurrency is a number from 1 to {MAX_CONCURRENCY}")
        if (
            type(timeout) not in (int, float)
            or type(follow) not in (int, float)
            or not (1 <= timeout <= LONGEST and 0 <= follow <= LONGEST)
        ):
            raise BadRequest(f"timeout and follow are seconds, {LONGEST:.0f} at most")
        certnames = tuple(dict.fromkeys(valid_certname(name) for name in names or ()))
        return cls(order, certnames, query, is_all, concurrency, timeout, follow)


class FollowedRuns(Protocol):
    """The runs of one order."""

    def events(self, nodes: Sequence[str]) -> AsyncGenerator[dict[str, Any]]:
        """Yield what happens to the nodes, in plain data (docs/run.md), until all runs have ended; raise Unavailable."""


@dataclass(eq=False, repr=False)
class OrderedRuns:
    """
    The runs of one order.

    Args:
        has_left: Returns whether nobody follows any more; then no further run begins.
        clock: Returns monotonic seconds.
    """

    agents: WaitingAgents
    question: RunQuestion
    has_left: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    _running: dict[str, float] = field(default_factory=dict, init=False)  # deadlines by node
    _expected: dict[str, float] = field(default_factory=dict, init=False)
    _followed: dict[str, float] = field(default_factory=dict, init=False)
    _todo: deque[str] = field(default_factory=deque, init=False)
    _events: deque[dict[str, Any]] = field(default_factory=deque, init=False)
    _told: dict[str, int] = field(default_factory=dict, init=False)  # lines of the log that were told, by node
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def events(self, nodes: Sequence[str]) -> AsyncGenerator[dict[str, Any]]:
        """
        Yield what happens to the nodes, in plain data (docs/run.md), until all runs have ended.

        Raises:
            Unavailable: The master stops.
        """
        self._todo.extend(nodes)
        self.agents.observe(self)
        try:
            while True:
                self._woken.clear()
                self._advance()
                while self._events:
                    yield self._events.popleft()
                if not (self._todo or self._running or self._expected or self._followed) or self.has_left():
                    return
                if self.agents.is_closed:
                    raise Unavailable("The master stops; runs that have begun go on", retry_after=30)
                if not await wait_for_event(self._woken, HEARTBEAT):
                    yield {"running": len(self._running), "waiting": len(self._todo) + len(self._expected) + len(self._followed)}
        finally:
            self.agents.forget(self)

    def _advance(self) -> None:
        """Send orders as far as may be, and give up what takes too long."""
        now, question = self.clock(), self.question
        for node in [node for node, deadline in self._running.items() if now >= deadline]:
            del self._running[node]
            self._events.append({"node": node, "state": TIMEOUT})
        for node in [node for node, deadline in self._expected.items() if now >= deadline or not self.agents.is_expected(node)]:
            del self._expected[node]
            self._leave(node)
        for node in [node for node, deadline in self._followed.items() if now >= deadline]:
            del self._followed[node]
            self._events.append({"node": node, "state": TIMEOUT})
        while self._todo and len(self._running) < question.concurrency and not self.has_left():
            node = self._todo.popleft()
            if self.agents.send(node, question.order, question.timeout):
                self._running[node] = now + question.timeout
                self._events.append({"node": node, "state": STARTED})
            elif self.agents.is_expected(node):
                self._expected[node] = now + question.timeout
            else:
                self._leave(node)

    def _leave(self, node: str) -> None:
        """Leave a node that does not wait to itself."""
        self._events.append({"node": node, "state": ABSENT})
        if self.question.follow:
            self._followed[node] = self.clock() + self.question.follow

    # --- what the table of waiting agents tells

    def came(self, node: str, last: str) -> None:
        """Order a node that waits now, if it did not before."""
        if self._expected.pop(node, None) is not None or self._followed.pop(node, None) is not None:
            self._todo.appendleft(node)
            self._woken.set()

    def ended(self, node: str, order: str) -> None:
        """Take up that a run has ended without a report."""
        if order == self.question.order.id and self._running.pop(node, None) is not None:
            self._events.append({"node": node, "state": ENDED})
            self._woken.set()

    def reported(self, report: Report) -> None:
        """Take up the report of a run."""
        node = report.host
        is_ours = report.job_id == self.question.order.id and self._running.pop(node, None) is not None
        if is_ours or self._followed.pop(node, None) is not None:
            if self.question.order.log and (lines := lines_of(report, self._told.get(node, 0))):
                self._events.append({"node": node, "lines": lines})
            self._events.append({"node": node, **result_of(report)})
            self._woken.set()

    def logged(self, node: str, lines: RunLines) -> bool:
        """Tell what a run has logged; lines that are sent twice are told once."""
        if lines.order != self.question.order.id or node not in self._running:
            return False
        told = self._told.get(node, 0)
        if lines.first <= told < lines.first + len(lines.lines) and len(self._events) < _MAX_EVENTS:
            self._events.append({"node": node, "lines": lines.lines[told - lines.first :]})
            self._told[node] = lines.first + len(lines.lines)
            self._woken.set()
        return True


def lines_of(report: Report, first: int = 0) -> list[tuple[str, str, str]]:
    """Return level, source and message of the lines of a report's log from a number on, the first ones of them."""
    return [(log.level, log.source, log.message[:MAX_LINE]) for log in report.logs[first : first + 10 * MAX_LINES]]


def result_of(report: Report) -> dict[str, Any]:
    """Return the result of a run in plain data."""
    resources, time_metric = report.metrics.get("resources"), report.metrics.get("time")
    bits = max(report.exit_bits, 0)
    pending = report.noop_pending or (resources is not None and bool(report.noop) and resources.number("out_of_sync") > 0)
    if report.status == FAILED or bits & 4 or report.cached_catalog_status == "on_failure":
        state = FAILED
    elif bits & 2 or report.status == CHANGED:
        state = CHANGED
    else:
        state = PENDING if pending else UNCHANGED
    numbers = {name: int(resources.number(name)) if resources else 0 for name in ("total", "changed", "failed", "out_of_sync")}
    return {
        "state": state,
        "changed": bool(bits & 2),
        "noop": bool(report.noop),
        "resources": numbers,
        "seconds": float(time_metric.number("total")) if time_metric else 0.0,
        "environment": report.environment or "",
        "errors": list(_errors(report)) if state == FAILED else [],
    }


def _errors(report: Report) -> list[str]:
    """Return the errors in a report's log; without any the names of the resources that failed."""
    logged = [
        log.message if log.source == "Puppet" else f"{log.source}: {log.message}"
        for log in report.logs
        if log.level in ("err", "alert", "emerg", "crit")
    ]
    failed = [f"{status.resource} failed" for status in report.resource_statuses.values() if status.failed or status.failed_to_restart]
    return [text[:MAX_LINE] for text in (logged or failed)[:_MAX_ERRORS]]
