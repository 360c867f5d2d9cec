"""Short computations of many requests, spread over iterations of the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SHARE = 0.003  # seconds of one iteration


class LoopTurns:
    """
    Gives requests turns to compute in the event loop itself, which for a task of a millisecond takes less time than a thread.

    Hundreds may have arrived at the same moment. Those for which an iteration has no time left compute in a later one, in their order, so
    that others get the loop in between.

    Args:
        seconds: The share of an iteration; the last computation that begins in it may exceed it.
        clock: Seconds, as of time.monotonic.
    """

    def __init__(self, seconds: float = SHARE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self.clock = clock
        self._began: float | None = None  # when the first computation of this iteration began

    async def take(self) -> None:
        """Return when the caller may compute until it waits for something."""
        while self._began is not None and self.clock() - self._began >= self.seconds:  # noqa: ASYNC110  # what is waited for is another iteration
            await asyncio.sleep(0)
        if self._began is None:
            self._began = self.clock()
            asyncio.get_running_loop().call_soon(self._end_iteration)

    def _end_iteration(self) -> None:
        self._began = None
