"""Waiting for what can be observed: a condition is looked at again and again, and only a fault reaches the deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

WITHIN = 60.0  # seconds
PAUSE = 0.01  # seconds between two looks


async def until(holds: Callable[[], object], within: float = WITHIN) -> None:
    """Return when a condition holds; the event loop goes on meanwhile."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about within {within:g} seconds"
        await asyncio.sleep(PAUSE)


def wait_until(holds: Callable[[], object], within: float = WITHIN, describe: Callable[[], str] = lambda: "") -> None:
    """Block until a condition holds; `describe` returns what there is to know when it never does."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about within {within:g} seconds {describe()}"
        time.sleep(PAUSE)


async def turns(number: int) -> None:
    """Let the event loop turn so many times: whatever waits for nothing else goes as far as it can."""
    for _ in range(number):
        await asyncio.sleep(0)


def advance(seconds: float) -> None:
    """Set the clock of the running event loop ahead: deadlines and pauses within these seconds pass now. Its time stays ahead."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds
