"""Orders of masters that share their state: each sends those for agents that wait at it, and one follows them all."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from shared.data import plainjson
from shared.errors import Unavailable
from shared.models.report import Report
from shared.orders import RunLines
from shared.process.supervision import wait_for_event
from shared.state.database import StateAway, StateDatabase

from . import rows
from .rows import ASKED, HERE, OVER, SENT, OpenOrder
from .run import ABSENT, ENDED, STARTED, TIMEOUT, RunQuestion, lines_of, result_of
from .waiting import START, STOP_RETRY, WaitingAgents

log = logging.getLogger("puppet.run")

BEAT: Final = 5.0
"""Seconds between two looks at the rows, for notices that were lost, and signs of life."""
FOUND: Final = 4.0
"""Seconds in which all masters have said which nodes wait at them."""
LATE: Final = 3.0
"""Seconds after which a node that waits again without a report has not run: its report may reach the rows later than its request."""
_MAX_RESULTS: Final = 10_000
_GLANCE: Final = 0.5  # seconds between two looks whether somebody follows
_GATHERING: Final = 0.2  # seconds in which notices are taken together


@dataclass(eq=False, repr=False)
class SharedOrders:
    """
    A master's part in the orders of all masters.

    Args:
        agents: Those that wait here.
        clock: Returns monotonic seconds.
    """

    database: StateDatabase
    agents: WaitingAgents
    clock: Callable[[], float] = time.monotonic
    _open: Mapping[str, OpenOrder] = field(default_factory=dict, init=False)
    _results: deque[tuple[str, str, dict[str, Any], tuple[str, ...]]] = field(default_factory=deque, init=False)
    _ended: dict[tuple[str, str], float] = field(default_factory=dict, init=False)
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _followers: list[asyncio.Event] = field(default_factory=list, init=False)
    _is_away: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.agents.observe(self)

    async def hear(self) -> None:
        """Have the rows looked at now, because they have changed."""
        self._woken.set()
        for follower in self._followers:
            follower.set()

    async def keep_sending(self) -> None:
        """Send orders and store results, forever."""
        while True:
            self._woken.clear()
            try:
                await self._look()
                self._is_away = False
            except StateAway as err:
                if not self._is_away:
                    log.error("Orders of other masters are not sent, and results not stored: %s", err)
                self._is_away = True
            await wait_for_event(self._woken, BEAT)
            await asyncio.sleep(_GATHERING)

    async def _look(self) -> None:
        while self._results:
            await self._store(*self._results[0])
            self._results.popleft()
        for (number, node), at in list(self._ended.items()):
            if self.clock() >= at + LATE:
                await self._store(number, node, {"state": ENDED}, (SENT,))
                del self._ended[number, node]
        self._open = await self.database.run(rows.read_open)
        waiting = set(self.agents.nodes)
        for number, opened in self._open.items():
            states = opened.nodes.items()
            if known := [node for node, state in states if state == ASKED and (node in waiting or self.agents.is_expected(node))]:
                await self.database.run(partial(rows.note_here, number=number, nodes=known))
            # A node that waits again, and has not carried the order out, did not get it.
            if lost := [node for node, state in states if state == SENT and node in waiting and (number, node) not in self._ended]:
                await self.database.run(partial(rows.give_back, number=number, nodes=lost))
            if ready := sorted(node for node, state in states if node in waiting and (state != SENT or node in lost)):
                await self._send(number, opened, ready)

    async def _store(self, number: str, node: str, result: dict[str, Any], states: tuple[str, ...]) -> None:
        await self.database.run(partial(rows.note_result, number=number, node=node, result=result, states=states))

    async def _send(self, number: str, opened: OpenOrder, nodes: Sequence[str]) -> None:
        taken = await self.database.run(partial(rows.take, number=number, nodes=nodes))
        left = [node for node in taken if not self.agents.send(node, opened.order, 0)]
        if left:
            await self.database.run(partial(rows.give_back, number=number, nodes=left))

    # --- what the table of waiting agents tells

    def came(self, node: str, last: str) -> None:
        """Look for an order for a node that waits here now."""
        for number, opened in self._open.items():
            if node in opened.nodes:
                if number == last:
                    self._ended[number, node] = self.clock()
                self._woken.set()

    def ended(self, node: str, order: str) -> None:
        """Nothing: `came` knows the order, too."""

    def reported(self, report: Report) -> None:
        """Store the result of a run that was ordered, or of one that is followed."""
        node = report.host
        if report.job_id:
            self._note(report.job_id, report, (SENT,))
        for number, opened in self._open.items():
            if opened.follow and opened.nodes.get(node) == ASKED:
                self._note(number, report, (ASKED,))

    def logged(self, node: str, lines: RunLines) -> bool:
        """Nothing: who follows may be at another master, and gets all lines with the report."""
        return False

    def _note(self, number: str, report: Report, states: tuple[str, ...]) -> None:
        if len(self._results) >= _MAX_RESULTS:
            log.error("The result of %s cannot be stored: the database of the masters' state is away", report.host)
            return
        opened = self._open.get(number)
        lines = {"lines": lines_of(report)} if opened is not None and opened.order.log else {}
        self._results.append((number, report.host, lines | result_of(report), states))
        self._woken.set()

    # --- who follows

    def follow(self, changed: asyncio.Event) -> None:
        self._followers.append(changed)

    def unfollow(self, changed: asyncio.Event) -> None:
        self._followers.remove(changed)


@dataclass(eq=False, repr=False)
class SharedRuns:
    """The runs of one order at all masters; for `has_left` and `clock` see `OrderedRuns`."""

    shared: SharedOrders
    question: RunQuestion
    has_left: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    _started: dict[str, float] = field(default_factory=dict, init=False)
    _absent: set[str] = field(default_factory=set, init=False)
    _over: set[str] = field(default_factory=set, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _began: float = field(default=0.0, init=False)
    _moved: float = field(default=0.0, init=False)

    async def events(self, nodes: Sequence[str]) -> AsyncGenerator[dict[str, Any]]:
        """Yield what happens to the nodes, as `OrderedRuns.events` does; raise Unavailable."""
        number, database = self.question.order.id, self.shared.database
        await database.run(partial(rows.begin, question=self.question, nodes=nodes))
        self._began = self._moved = alive = self.clock()
        self.shared.follow(self._changed)
        try:
            while len(self._over) < len(nodes) and not self.has_left():
                self._changed.clear()
                states = await database.run(partial(rows.read_states, number=number))
                for event in self._events(states):
                    yield event
                given_up = []
                for node, state in list(self._overdue(states)):
                    yield {"node": node, "state": state}
                    if state == ABSENT and self.question.follow:
                        self._absent.add(node)
                    else:
                        given_up.append(node)
                if given_up:
                    self._over.update(given_up)
                    await database.run(partial(rows.give_up, number=number, nodes=given_up))
                if self.shared.agents.is_closed:
                    raise Unavailable("The master stops; runs that have begun go on", retry_after=STOP_RETRY)
                if self.clock() >= alive + BEAT:
                    alive = self.clock()
                    await database.run(partial(rows.keep_alive, number=number))
                    yield {"running": len(self._started), "waiting": len(nodes) - len(self._over) - len(self._started)}
                if len(self._over) < len(nodes):
                    await self._wait()
        finally:
            self.shared.unfollow(self._changed)
            with suppress(StateAway):  # it ends by itself
                await database.run(partial(rows.end, number=number))

    async def _wait(self) -> None:
        """Wait for changes of the rows, for a while; return as soon as nobody follows, since others send orders until these end."""
        for _ in range(int(BEAT / _GLANCE)):
            if await wait_for_event(self._changed, _GLANCE) or self.has_left():
                break
        await asyncio.sleep(_GATHERING)

    def _events(self, states: Mapping[str, tuple[str, str | None]]) -> Iterator[dict[str, Any]]:
        """Yield what is new in the rows: the ends of runs first, since others begin in their place."""
        for node, (state, result) in sorted(states.items(), key=lambda item: (item[1][0] != OVER, item[0])):
            if state == SENT and node not in self._started:
                self._started[node] = self._moved = self.clock()
                yield {"node": node, "state": STARTED}
            elif state in (ASKED, HERE):
                self._started.pop(node, None)  # it did not get the order
            elif state == OVER and node not in self._over:
                self._moved = self.clock()
                self._started.pop(node, None)
                self._over.add(node)
                event = plainjson.loads((result or "{}").encode())
                if lines := event.pop("lines", ()):
                    yield {"node": node, "lines": lines}
                yield {"node": node, **event}

    def _overdue(self, states: Mapping[str, tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
        """Yield the nodes that no master has, once, and those that are waited for no longer."""
        now, question = self.clock(), self.question
        is_stuck = len(self._started) < question.concurrency and now >= self._moved + START
        for node, (state, _) in states.items():
            if node in self._over:
                continue
            if state == SENT and now >= self._started[node] + question.timeout:
                del self._started[node]
                yield node, TIMEOUT
            elif node in self._absent:
                if now >= self._began + question.follow:
                    yield node, TIMEOUT
            elif (state == ASKED and now >= self._began + FOUND) or (state == HERE and is_stuck):
                yield node, ABSENT
