"""Processes that asyncio started, and whether somebody waited for their ends: the loop hears of none otherwise."""

from __future__ import annotations

import asyncio
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
