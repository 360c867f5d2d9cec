"""Admission of requests: a bounded number is worked on, a bounded number waits, the rest is rejected with a random time to come back."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from shared.errors import Unavailable


class Admission:
    """
    Limit the number of active requests.

    In each lane at most `active` requests are worked on and others wait, first come first served. Long requests have a lane of their
    own: a report does not wait for the catalogs of all other agents, nor anything for a slow disk of reports.

    Args:
        active: The requests of one lane that are worked on at the same time.
        queued: The requests that may wait, in all lanes together.
        per_client: The requests of one client, so that a single host, however slow it sends, cannot take all slots.
        max_retry_delay: The most seconds in a Retry-After header.
        delay: Returns the seconds of Retry-After, random up to the given maximum, so that refused agents do not return together.

    Attributes:
        active: The requests that are worked on, in all lanes together.
        waiting: The requests that wait for one of those to end.
    """

    def __init__(self, active: int, queued: int, per_client: int, max_retry_delay: int, delay: Callable[[int], int]) -> None:
        self.queued = queued
        self.per_client = per_client
        self.max_retry_delay = max_retry_delay
        self.delay = delay
        self.active = 0
        self.waiting = 0
        self._lanes: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(active))
        self._requests_by_client: Counter[str] = Counter()

    @asynccontextmanager
    async def slot(self, client: str, lane: str = "") -> AsyncIterator[None]:
        """Hold a slot of `lane` while the block runs; raise Unavailable when too many requests wait, or this client has too many."""
        slots = self._lanes[lane]
        if self._requests_by_client[client] >= self.per_client:
            raise Unavailable(
                f"{client} has {self.per_client} requests under way already", retry_after=self.delay(min(self.max_retry_delay, 60))
            )
        if slots.locked() and self.waiting >= self.queued:
            raise Unavailable("Too many requests are waiting", retry_after=self.delay(self.max_retry_delay))
        self._requests_by_client[client] += 1
        try:
            self.waiting += 1
            try:
                await slots.acquire()
            finally:
                self.waiting -= 1
            self.active += 1
            try:
                yield
            finally:
                self.active -= 1
                slots.release()
        finally:
            self._requests_by_client[client] -= 1
            if not self._requests_by_client[client]:
                del self._requests_by_client[client]
