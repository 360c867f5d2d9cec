"""Threads that do not run ahead of the event loop."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_STUCK = 1.0  # seconds after which a thread no longer waits for the loop


class PacedThreads(ThreadPoolExecutor):
    """
    A pool of threads, each of which waits until the event loop has taken its last result.

    Otherwise the threads would produce hundreds of results during one iteration of the loop. The next iteration would have to handle all
    of them, during which hundreds more would be produced: the loop would be blocked for as long as there is much to do.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._loop = loop
        self._permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(threads):
            self._permits.put(None)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(self._paced, fn, args, kwargs)

    def _paced(self, fn: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]) -> T:
        try:
            # A loop that stands still must not stop the threads for ever, for instance while the process ends.
            self._permits.get(timeout=_STUCK)
        except queue.Empty:
            return fn(*args, **kwargs)
        try:
            return fn(*args, **kwargs)
        finally:
            try:
                self._loop.call_soon_threadsafe(self._permits.put, None)
            except RuntimeError:  # the loop has ended
                self._permits.put(None)
