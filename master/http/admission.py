"""How many requests are worked on at once, and how many may wait; the rest is told to come back at a random time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from shared.errors import Unavailable


class Admission:
    """
    At most `active` requests inside `slot` and `queued` waiting for one, first come first served.

    `delay(most)` gives the seconds of Retry-After, random up to `most`, so that the agents turned away do not come back together.
    """

    def __init__(self, active: int, queued: int, most: int, delay: Callable[[int], int]) -> None:
        self.queued = queued
        self.most = most
        self.delay = delay
        self.waiting = 0
        self._slots = asyncio.Semaphore(active)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One of the slots; Unavailable when too many wait already."""
        if self._slots.locked() and self.waiting >= self.queued:
            raise Unavailable("Too many requests are waiting", retry_after=self.delay(self.most))
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._slots.release()
