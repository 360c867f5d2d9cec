"""Programs in a session of their own, which ends as a whole: none of its processes outlives who started it."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any


async def start_program(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """
    Start a program that leads a session, and so a process group; OSError when it cannot be started.

    Who is cancelled meanwhile leaves nothing behind: asyncio itself would kill the program alone, and wait for what the program may have
    started by then.

    Args:
        options: See `asyncio.create_subprocess_exec`.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, start_new_session=True, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(starting)
        raise


async def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """End a program that is just being started."""
    try:
        process = await starting
    except OSError:
        return
    kill_group(process.pid)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            await emptied(stream)
    await process.wait()


def kill_group(pid: int) -> None:
    """Kill a process group that this process started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # gone already, or what is left runs as another user


async def emptied(stream: asyncio.StreamReader) -> None:
    """What a killed program still has in a pipe is thrown away: while one is too full to be read from, its end is not seen either."""
    while await stream.read(65536):
        pass
