"""
The agents that wait at this master for an order.

Each holds one request. An agent that waits costs a future and a timer beside its connection, and no processor time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from httpd.metrics import Samples
from shared.errors import Conflict, Unavailable
from shared.models.report import Report
from shared.orders import RunLines, RunOrder

from ..observability.metrics import Metrics

RETURN: Final = 180.0
"""Seconds in which an agent that has stopped waiting is expected back: it runs, or connects again."""
START: Final = 90.0
"""Seconds after the start of a master in which all agents are expected: they come back spread over a minute."""
MAX_OBSERVERS: Final = 100
FULL_RETRY: Final = 1800  # seconds after which an agent that finds no place asks again
STOP_RETRY: Final = 60  # seconds over which agents come back to a master that stops


class OrderObserver(Protocol):
    """Is told about nodes, from the event loop; it must not block."""

    def came(self, node: str, last: str) -> None:
        """A node waits now; `last` is the order that it has carried out last."""

    def ended(self, node: str, order: str) -> None:
        """A node waits again, whose run by this order has ended."""

    def reported(self, report: Report) -> None:
        """A node has reported."""

    def logged(self, node: str, lines: RunLines) -> bool:
        """A node's run has logged lines; return whether they are wanted."""


@dataclass(slots=True, eq=False)
class _Waiter:
    answer: asyncio.Future[RunOrder | None]
    has_left: Callable[[], bool]


@dataclass(eq=False, repr=False)
class WaitingAgents:
    """
    The agents that wait, by certname, and whoever orders them to run.

    Args:
        most: Returns how many agents may wait: connections for runs and all else have to remain.
        clock: Returns monotonic seconds.
    """

    most: Callable[[], int]
    clock: Callable[[], float] = time.monotonic
    _waiting: dict[str, _Waiter] = field(default_factory=dict, init=False)
    _left: dict[str, float] = field(default_factory=dict, init=False)  # since when nodes that waited no longer do
    _sent: dict[str, tuple[RunOrder, float]] = field(default_factory=dict, init=False)  # orders under way, until a time
    _observers: list[OrderObserver] = field(default_factory=list, init=False)
    is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._began = self._swept = self.clock()

    async def wait(self, node: str, last: str, seconds: float, has_left: Callable[[], bool]) -> RunOrder | None:
        """
        Return the next order for a node, or None after some seconds.

        Args:
            last: The id of the last order that the node has carried out; '' for none. Without it an order that was lost is sent again.
            has_left: Returns whether the node's connection has ended.
        Raises:
            Conflict: The node waits over another connection now.
            Unavailable: The master stops, or too many agents wait.
        """
        if self.is_closed:
            raise Unavailable("The master stops", retry_after=STOP_RETRY)
        order, until = self._sent.get(node, (None, 0.0))
        if order is not None:
            if order.id != last and self.clock() < until:
                return order  # its answer was lost
            del self._sent[node]
            for observer in self._observers:
                observer.ended(node, order.id)
        if previous := self._waiting.pop(node, None):
            previous.answer.set_exception(Conflict(f"{node} waits over another connection"))
        elif len(self._waiting) >= self.most():
            raise Unavailable("Too many agents wait for orders", retry_after=FULL_RETRY)
        loop = asyncio.get_running_loop()
        waiter = self._waiting[node] = _Waiter(loop.create_future(), has_left)
        self._left.pop(node, None)
        for observer in self._observers:
            observer.came(node, last)
        timer = loop.call_later(seconds, _answer_nothing, waiter.answer)
        try:
            return await waiter.answer
        finally:
            timer.cancel()
            if self._waiting.get(node) is waiter:
                self._forget(node)

    def send(self, node: str, order: RunOrder, seconds: float) -> bool:
        """Send an order, which is sent again within so many seconds if it was lost; return whether the node waited for one."""
        waiter = self._waiting.get(node)
        if waiter is None or waiter.answer.done():
            return False
        self._forget(node)
        if waiter.has_left():
            waiter.answer.set_result(None)
            return False
        self._sent[node] = order, self.clock() + seconds
        waiter.answer.set_result(order)
        return True

    def is_expected(self, node: str) -> bool:
        """Return whether a node that does not wait now is likely to wait soon."""
        now = self.clock()
        return now < self._began + START or now < self._left.get(node, -RETURN) + RETURN or now < self._sent.get(node, (None, 0.0))[1]

    @property
    def nodes(self) -> list[str]:
        """The certnames of the agents that wait."""
        return list(self._waiting)

    def _forget(self, node: str) -> None:
        del self._waiting[node]
        now = self.clock()
        if now >= self._swept + RETURN:
            self._swept = now
            self._left = {name: since for name, since in self._left.items() if now < since + RETURN}
            self._sent = {name: sent for name, sent in self._sent.items() if now < sent[1]}
        self._left[node] = now

    def reported(self, report: Report) -> None:
        """Take note of a report, from whichever run."""
        order, _ = self._sent.get(report.host, (None, 0.0))
        if order is not None and order.id == report.job_id:
            del self._sent[report.host]
            self._left[report.host] = self.clock()
        for observer in self._observers:
            observer.reported(report)

    def logged(self, node: str, lines: RunLines) -> bool:
        """Take note of what an ordered run has logged; return whether somebody wants to know."""
        return any(observer.logged(node, lines) for observer in self._observers)

    def observe(self, observer: OrderObserver) -> None:
        """Tell an observer from now on; raise Unavailable when there are many."""
        if len(self._observers) >= MAX_OBSERVERS:
            raise Unavailable("Too many orders are under way", retry_after=STOP_RETRY)
        self._observers.append(observer)

    def forget(self, observer: OrderObserver) -> None:
        self._observers.remove(observer)

    def close(self) -> None:
        """Send all agents away, which come back spread over a minute; no order is taken any more."""
        self.is_closed = True
        for waiter in self._waiting.values():
            if not waiter.answer.done():
                waiter.answer.set_exception(Unavailable("The master stops", retry_after=STOP_RETRY))

    def describe(self, metrics: Metrics) -> None:
        """Describe how many agents wait."""

        def waiting() -> Samples:
            return [((), len(self._waiting))]

        metrics.read("puppet_waiting_agents", "gauge", "Agents that wait for an order to run.", waiting)


def _answer_nothing(answer: asyncio.Future[RunOrder | None]) -> None:
    if not answer.done():
        answer.set_result(None)
