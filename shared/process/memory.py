"""Memory of a long-lived process: garbage collection, returning free memory to the system, and the end of what is allowed."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import resource
from collections.abc import Callable
from pathlib import Path

_YOUNG = 300  # objects made and not yet freed, after which the young ones are looked at: for a millisecond or a few
_MIDDLE = 4  # such looks, after which all that survived them is looked at together: 20 take up to 10 ms with a thousand clients
_SECOND = 1.0
# Seconds between two looks at everything; connections and errors leave reference cycles that only these find.
_SOON, _NOW_AND_THEN, _AT_LAST = 10, 60, 120
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of mallopt(3)
_LARGE = 256 * 1024  # bytes: a connection's TLS buffer in uvloop, of which little is ever touched; and more than what files are read in
_BODY = 4 * 1024 * 1024  # bytes: more than a catalog's JSON, and than the pieces in which Python unpacks it, of 1 MiB at most for most
_SPARE = 8 * 1024 * 1024  # bytes at the heap's end that may stay free: those pieces come and go all the time

_RESERVE = 4 * 1024 * 1024  # bytes of addresses: several of the pieces in which Python asks the system for memory
_reserves: list[mmap.mmap] = []


def use_single_malloc_arena() -> None:
    """
    Make all threads allocate memory from one heap; call it before there are any threads.

    glibc gives each thread a heap of its own, which leaves freed blocks scattered over all heaps: of a master with 20 MB in use another 30
    MB after some 200,000 requests. Python's threads hardly ever ask at the same time. What is large comes from the system and goes back
    there, however often it is asked for, and leaves no holes.
    """
    mallopt = _of_glibc("mallopt")
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_MMAP_THRESHOLD, _LARGE)
    mallopt(_M_TRIM_THRESHOLD, _SPARE)


def keep_memory_of_bodies() -> None:
    """
    Make the heap reuse the memory of one body of JSON for the next.

    By default glibc returns the free end of the heap to the system above 128 KiB, so that each catalog that is unpacked may allocate
    its pages again: 0.15 ms of 0.3 for one of 500 resources, or nothing, depending on what else lies at the end.
    """
    mallopt = _of_glibc("mallopt")
    mallopt(_M_MMAP_THRESHOLD, _BODY)
    mallopt(_M_TRIM_THRESHOLD, _SPARE)


def freeze_loaded_objects() -> None:
    """
    Tell the garbage collector that all objects loaded so far are permanent.

    It then examines new objects only, and rarely: work makes many that live until its end, and breaks its own reference cycles.
    Examining all of them stops every thread of the process.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def reserve_memory() -> None:
    """Set addresses aside, which take no memory: a process at its limit can allocate nothing, not even what it takes to report that."""
    _reserves.append(mmap.mmap(-1, _RESERVE))


def limit_memory(more: int) -> None:
    """Limit the addresses of this process to so many bytes above what it has now, with a reserve."""
    reserve_memory()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + more, hard))


def lift_memory_limit() -> None:
    """Give back what `reserve_memory` set aside, and lift the limit of addresses, for the report of a MemoryError."""
    while _reserves:
        _reserves.pop().close()  # allocates nothing; all that follows does
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def address_space() -> int:
    """Return the bytes of addresses that this process has."""
    return _statm(0)


def resident_memory() -> int:
    """Return the bytes of this process that are in memory."""
    return _statm(1)


def _statm(field: int) -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[field]) * resource.getpagesize()


async def collect_garbage_forever(deserted: Callable[[], bool], idle: Callable[[], bool], young: int = _YOUNG) -> None:
    """
    Runs until cancelled, next to an event loop that must not be blocked: it examines few objects at a time, `young` new ones.

    All that have been made since the start are looked at when it is `deserted` after somebody was there, now and then when it
    is `idle`, and at last whatever it does. What is free then goes back to the system.
    """
    trim = _of_glibc("malloc_trim")  # takes a millisecond
    gc.set_threshold(young, _MIDDLE, 5_000_000)
    used, seconds = False, 0
    while True:
        await asyncio.sleep(_SECOND)
        seconds += 1
        alone = deserted()
        used = used or not alone
        if (alone and used and seconds >= _SOON) or (seconds >= _NOW_AND_THEN and idle()) or seconds >= _AT_LAST:
            gc.collect()
            # The collection has freed blocks in the middle of the heap, which glibc returns only when asked.
            trim(0)
            used, seconds = False, 0


def _of_glibc(name: str) -> Callable[..., object]:
    """Return the function; one that does nothing, where there is another library."""
    try:
        function: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return lambda *_: None
    return function
