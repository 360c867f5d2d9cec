"""Threads that keep pace with the event loop."""

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
    Threads that are not further ahead of the event loop than one result each.

    Otherwise they do hundreds of things while the loop is at one. All of these have to be gone on with in its next turn, which
    is a long one, in which they do hundreds more: the loop is held up for as long as there is much to do.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._loop = loop
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(threads):
            self._room.put(None)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(self._paced, fn, args, kwargs)

    def _paced(self, fn: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]) -> T:
        try:
            self._room.get(timeout=_STUCK)
        except queue.Empty:
            return fn(*args, **kwargs)
        try:
            return fn(*args, **kwargs)
        finally:
            try:
                self._loop.call_soon_threadsafe(self._room.put, None)
            except RuntimeError:  # the loop has ended
                self._room.put(None)


__all__ = ["PacedThreads"]
