"""
What asyncio's loops leave behind when they are closed: processes whose ends nobody waited for, and connections that nobody closed.

The garbage collector would blame the test that it happens to run in.
"""

from __future__ import annotations

import asyncio
import asyncio.selector_events
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

StartProcess = Callable[..., Coroutine[Any, Any, asyncio.subprocess.Process]]
Started = list[tuple[asyncio.AbstractEventLoop, asyncio.subprocess.Process, str]]


@contextmanager
def started_processes() -> Iterator[Started]:
    """Note each process that is started within the block, with its loop and command."""
    started: Started = []
    start: StartProcess = asyncio.create_subprocess_exec

    async def start_and_note(*argv: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*argv, **options)
        started.append((asyncio.get_running_loop(), process, " ".join(map(str, argv))))
        return process

    asyncio.create_subprocess_exec = start_and_note
    try:
        yield started
    finally:
        asyncio.create_subprocess_exec = start


def unawaited(started: Started) -> list[str]:
    """Return the commands of those whose loop is closed, and did not hear of their end before."""
    return [command for loop, process, command in started if loop.is_closed() and process.returncode is None]


@contextmanager
def closed_loops() -> Iterator[list[str]]:
    """Note each connection that outlives its loop, when the loop is closed within the block."""
    left: list[str] = []
    selector_loop = asyncio.selector_events.BaseSelectorEventLoop
    close = selector_loop.close

    def note_and_close(loop: Any) -> None:
        left.extend(connections(loop))
        close(loop)

    selector_loop.close = note_and_close  # type: ignore[method-assign]
    try:
        yield left
    finally:
        selector_loop.close = close  # type: ignore[method-assign]


def connections(loop: Any) -> list[str]:
    """Return the connections of a loop that are open, or whose close the loop did not come to carry out."""
    return [
        f"{transport.get_extra_info('sockname')} to {transport.get_extra_info('peername')} of {transport._protocol!r}"
        for transport in list(loop._transports.values())
        if transport._sock is not None
    ]
