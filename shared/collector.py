"""The garbage collector of a long-lived process."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable

_YOUNG = 300  # objects made and not yet gone, after which the young ones are looked at: for a millisecond or a few
_ALL_EVERY = 60.0  # seconds between two looks at everything; connections and errors leave circles that only these find


def settle() -> None:
    """
    Tell the garbage collector that what is loaded now stays.

    It then looks at new objects only, and seldom: work makes many that live until its end, and breaks its own circles. Looking
    at all of them stops every thread of the process.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def collecting(idle: Callable[[], bool]) -> None:
    """
    Runs until cancelled, beside an event loop that must not be held up: few objects are looked at at a time.

    Only while it is `idle`, or never is for as long again, are all that have been made since the start. What is free then goes
    back to the system: threads leave it in pieces, of which a busy process has some 10 MiB after 100,000 requests.
    """
    trim = _trim()
    gc.set_threshold(_YOUNG, 20, 1_000_000)
    while True:
        await asyncio.sleep(_ALL_EVERY)
        for _ in range(int(_ALL_EVERY * 10)):
            if idle():
                break
            await asyncio.sleep(0.1)
        gc.collect()
        trim(0)


def _trim() -> Callable[[int], object]:
    """glibc's malloc_trim, which takes a millisecond; nothing elsewhere."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return lambda pad: None


__all__ = ["collecting", "settle"]
