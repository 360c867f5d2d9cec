"""Programs in a session of their own, which ends as a whole: none of its processes outlives the caller."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import PuppetError


async def start_program(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """
    Start a program that leads a session, and so a process group; OSError when it cannot be started.

    A cancelled caller leaves no process behind: asyncio itself would kill the program alone, and wait for what the program may have
    started by then.

    Args:
        options: See `asyncio.create_subprocess_exec`.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, start_new_session=True, **options))
    try:
        # Cancelling the start itself could leave a process that nobody knows.
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
    """Discard the rest of a killed program's output: as long as a pipe is full, its end is not seen either."""
    while await stream.read(65536):
        pass


async def run_bounded(
    argv: Sequence[str],
    *,
    timeout: float,
    most: int,
    environ: Mapping[str, str],
    what: str,
    stdin: bytes | None = None,
    folder: str = "/",
) -> bytes:
    """
    Return the standard output of a program that ends with 0 within `timeout` seconds and `most` bytes.

    It runs in `folder`, and in a process group of its own, which is killed whole on any way out. Raises PuppetError `Failed to <what>: …`.
    """
    code, output, text = await run_output(argv, timeout=timeout, most=most, environ=environ, what=what, stdin=stdin, folder=folder)
    if code != 0:
        raise PuppetError(f"Failed to {what}: Execution of '{' '.join(argv)}' returned {code}: {text[:500]}")
    return output


async def run_output(
    argv: Sequence[str],
    *,
    timeout: float,
    most: int,
    environ: Mapping[str, str],
    what: str,
    stdin: bytes | None = None,
    folder: str = "/",
) -> tuple[int, bytes, str]:
    """Do the same as run_bounded for any exit code: return it, the standard output, and the beginning of standard error."""
    try:
        process = await start_program(
            *argv,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environ),
            cwd=folder,
            limit=2**16,
        )
    except OSError as err:
        raise PuppetError(f"Failed to {what}: {argv[0]}: {err.strerror}") from err
    assert process.stdout is not None and process.stderr is not None
    try:
        async with asyncio.timeout(timeout), asyncio.TaskGroup() as group:
            # Feeding and reading at the same time: a program may answer before it has read everything.
            group.create_task(_feed(process, stdin))
            complaint = group.create_task(_bounded(process.stderr, 4096))
            printed = group.create_task(_bounded(process.stdout, most, on_overflow=lambda: kill_group(process.pid)))
            await _exited(process)
            kill_group(process.pid)  # a child left behind would keep the pipes open
            code = await process.wait()
    except TimeoutError:
        raise PuppetError(f"Failed to {what}: {argv[0]} did not end within {timeout:g} seconds") from None
    finally:
        kill_group(process.pid)
        await emptied(process.stdout)
        await emptied(process.stderr)
        await process.wait()
    output, overflown = printed.result()
    if overflown:
        raise PuppetError(f"Failed to {what}: {argv[0]} printed more than {most} bytes")
    return code, output, complaint.result()[0].decode("utf-8", "replace").strip()


async def _exited(process: asyncio.subprocess.Process) -> None:
    """
    Until the program itself has ended.

    `process.wait()` alone may also wait for the ends of its pipes, which a child left behind keeps open (CPython before 3.13).
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel that has none
        await process.wait()
        return
    try:
        loop.add_reader(fd, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def _feed(process: asyncio.subprocess.Process, stdin: bytes | None) -> None:
    if process.stdin is None or stdin is None:
        return
    try:
        if not process.stdin.is_closing():  # uvloop refuses to write to what is closed
            process.stdin.write(stdin)
            await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # a program may end without reading its input
    finally:
        process.stdin.close()


async def _bounded(stream: asyncio.StreamReader, most: int, *, on_overflow: Callable[[], None] | None = None) -> tuple[bytes, bool]:
    """Return a stream to its end, with its first `most` bytes, and whether there were more."""
    output = bytearray()
    overflown = False
    while chunk := await stream.read(65536):
        # Read to the end even after the limit: a full pipe would keep the program from ending.
        if len(output) + len(chunk) <= most and not overflown:
            output += chunk
        elif not overflown:
            overflown = True
            if on_overflow:
                on_overflow()
    return bytes(output), overflown
