"""A program ends with all that it started, also when who starts it is cancelled before it knows of the program."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from shared.programs import run_bounded, start_program
from tests.support.processes import until_ended
from tests.support.waiting import until

PIPES: dict[str, Any] = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}


async def test_a_program_that_is_just_being_started_ends_with_its_children_when_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started, go_on = asyncio.create_subprocess_exec, asyncio.Event(), asyncio.Event()

    async def start_slowly(*argv: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*argv, **options)
        started.set()
        await go_on.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    pid = tmp_path / "pid"
    caller = asyncio.create_task(start_program("/bin/sh", "-c", f"sleep 300 & echo $! > {pid}.new; mv {pid}.new {pid}; wait", **PIPES))
    await started.wait()
    await until(pid.exists)
    async with asyncio.timeout(60):
        caller.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await until_ended(int(pid.read_text()))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_program_may_have_ended_before_its_input_is_written(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec

    async def start_and_see_it_end(*argv: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*argv, **options)
        assert process.stdin is not None
        async with asyncio.timeout(60):
            while not process.stdin.is_closing():  # noqa: ASYNC110  # nothing tells of it
                await asyncio.sleep(0.01)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_see_it_end)
    run = run_bounded(["/bin/echo", "done"], timeout=60, most=100, environ={}, what="try", stdin=b"nobody reads this")
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(run) == b"done\n"


async def test_a_program_that_cannot_be_started_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await start_program(str(tmp_path / "none"), **PIPES)


async def test_a_program_leads_a_session_of_its_own() -> None:
    process = await start_program("/bin/sleep", "300", **PIPES)
    try:
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
