"""Threads that do not run ahead of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from shared.process import threads
from shared.process.threads import PacedThreads


async def test_threads_wait_for_a_loop_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_STUCK", 60)
    loop = asyncio.get_running_loop()
    done, both = [], threading.Event()

    def work(number: int) -> None:
        done.append(number)
        if len(done) == 2:
            both.set()

    with PacedThreads(loop, 2, "paced") as pool:
        asked = [loop.run_in_executor(pool, work, number) for number in range(20)]
        assert both.wait(10)
        time.sleep(0.05)  # noqa: ASYNC251  # the loop is at something else
        assert len(done) == 2
        await asyncio.gather(*asked)
    assert sorted(done) == list(range(20))


async def test_threads_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_STUCK", 0.01)
    loop = asyncio.get_running_loop()
    with PacedThreads(loop, 2, "paced") as pool:
        assert [pool.submit(str, number).result(10) for number in range(20)] == [str(number) for number in range(20)]


def test_threads_outlive_their_loop() -> None:
    loop = asyncio.new_event_loop()
    with PacedThreads(loop, 1, "paced") as pool:
        assert loop.run_until_complete(loop.run_in_executor(pool, int, "1")) == 1
        loop.close()
        assert [pool.submit(int, "2").result(10) for _ in range(5)] == [2] * 5


async def test_what_fails_in_a_thread_fails_here_and_the_thread_goes_on() -> None:
    loop = asyncio.get_running_loop()
    with PacedThreads(loop, 1, "paced") as pool:
        for _ in range(5):
            with pytest.raises(ValueError, match="x"):
                await loop.run_in_executor(pool, int, "x")
        assert await loop.run_in_executor(pool, int, "3") == 3
