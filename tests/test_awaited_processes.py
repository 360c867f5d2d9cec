"""A process whose end nobody waited for is seen by the test that started it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.awaited import started_processes, unawaited


@dataclass
class FakeProcess:
    returncode: int | None


@pytest.mark.parametrize("returncode, named", [(0, []), (-9, []), (None, ["sleep 60"])])
def test_a_process_that_nobody_waited_for_is_named(returncode: int | None, named: list[str]) -> None:
    process: Any = FakeProcess(returncode)
    loop = asyncio.new_event_loop()
    started = [(loop, process, "sleep 60")]
    assert unawaited(started) == []
    loop.close()
    assert unawaited(started) == named


def test_each_process_is_noted() -> None:
    async def start() -> None:
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 3")
        await process.wait()

    with started_processes() as started:
        asyncio.run(start())
    assert [(process.returncode, command) for _, process, command in started] == [(3, "sh -c exit 3")]
