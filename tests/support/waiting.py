"""Waiting for what can be observed: a condition is looked at again and again, and only a fault reaches the deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

WITHIN = 60.0  # seconds


def _pauses() -> Iterator[float]:
    """Return the seconds between two looks: short ones first."""
    pause = 0.0005
    while True:
        pause = min(2 * pause, 0.02)
        yield pause


async def until(holds: Callable[[], object], within: float = WITHIN) -> None:
    """Return when a condition holds; the event loop goes on meanwhile."""
    deadline, pauses = time.monotonic() + within, _pauses()
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about within {within:g} seconds"
        await asyncio.sleep(next(pauses))


def wait_until(holds: Callable[[], object], within: float = WITHIN, describe: Callable[[], str] = lambda: "") -> None:
    """Block until a condition holds; `describe` returns what there is to know when it never does."""
    deadline, pauses = time.monotonic() + within, _pauses()
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about within {within:g} seconds {describe()}"
        time.sleep(next(pauses))


async def turns(number: int) -> None:
    """Let the event loop turn so many times: whatever waits for nothing else goes as far as it can."""
    for _ in range(number):
        await asyncio.sleep(0)


def advance(seconds: float) -> None:
    """Set the clock of the running event loop ahead: deadlines and pauses within these seconds pass now. Its time stays ahead."""
    loop = asyncio.get_running_loop()
    now, at = loop.time() + seconds, time.monotonic()
    loop.time = lambda: now + time.monotonic() - at


async def until_late(task: asyncio.Task[Any], seconds: float) -> None:
    """Return when a task has ended, whose deadline is so many seconds away: they pass as soon as it has set it."""
    for pause in _pauses():
        if task.done():
            return
        advance(seconds)
        await asyncio.sleep(pause)
