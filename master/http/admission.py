"""How many requests are worked on at once, and how many may wait; the rest is told to come back at a random time."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from shared.errors import Unavailable


class Admission:
    """
    At most `active` requests of a lane inside `slot` and `queued` waiting for one, first come first served; `each` of one client,
    so that a single host, however slow it sends, cannot take all of them. What takes long by its nature has a lane of its own:
    a report does not wait for the catalogs of all other agents, nor anything for a slow disk of reports.

    `delay(most)` gives the seconds of Retry-After, random up to `most`, so that the agents turned away do not come back together.
    """

    def __init__(self, active: int, queued: int, each: int, most: int, delay: Callable[[int], int]) -> None:
        self.queued = queued
        self.each = each
        self.most = most
        self.delay = delay
        self.waiting = 0
        self._lanes: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(active))
        self._of: Counter[str] = Counter()

    @asynccontextmanager
    async def slot(self, client: str, lane: str = "") -> AsyncIterator[None]:
        """One of the slots of a lane; Unavailable when too many wait already, or this client has too many."""
        slots = self._lanes[lane]
        if self._of[client] >= self.each:
            raise Unavailable(f"{client} has {self.each} requests under way already", retry_after=self.delay(min(self.most, 60)))
        if slots.locked() and self.waiting >= self.queued:
            raise Unavailable("Too many requests are waiting", retry_after=self.delay(self.most))
        self._of[client] += 1
        try:
            self.waiting += 1
            try:
                await slots.acquire()
            finally:
                self.waiting -= 1
            try:
                yield
            finally:
                slots.release()
        finally:
            self._of[client] -= 1
            if not self._of[client]:
                del self._of[client]
