"""The few threads that write reports, apart from all others, so that a slow disk does not block other requests."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from shared.errors import Unavailable

T = TypeVar("T")

log = logging.getLogger("puppet.reports")


class Writers:
    """
    A pool of `threads` that write.

    At most `queue` writes may run or wait; one counts until it has ended, also when its caller was cancelled. `delay` draws a number
    from 0 to 1.
    """

    def __init__(self, *, threads: int = 2, queue: int = 300, delay: Callable[[], float] = random.random) -> None:
        self.delay = delay
        self._room = threading.Semaphore(queue)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="report-writer")

    async def run(self, write: Callable[[], T]) -> T:
        """Return the result of `write`, which runs in one of the threads. Unavailable: too many wait."""
        if not self._room.acquire(blocking=False):
            raise Unavailable("Too many reports are pending", retry_after=30 + int(self.delay() * 270))
        future = self._pool.submit(write)
        future.add_done_callback(lambda _: self._room.release())
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_log_failure)  # the caller was cancelled
            raise


def _log_failure(future: Future[T]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        log.error("A report was not written: %r", error, exc_info=error)
