"""A process whose end nobody waited for, or a connection that nobody closed, is seen by the test that left it behind."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.awaited import connections, started_processes, unawaited
from tests.support.waiting import turns


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


async def test_a_connection_is_named_until_its_loop_has_closed_it() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        transport, protocol = await loop.connect_accepted_socket(asyncio.Protocol, ours)
        named = [f"{ours.getsockname()} to {ours.getpeername()} of {protocol!r}"]
        assert connections(loop) == named
        transport.close()
        assert connections(loop) == named
        await turns(1)
        assert connections(loop) == []
