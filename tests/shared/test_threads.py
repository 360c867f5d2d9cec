"""Threads that do not run ahead of the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from types import SimpleNamespace

import pytest

from shared.process import threads
from shared.process.threads import PacedThreads


async def test_threads_wait_for_a_loop_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_STUCK", 60)
    loop = asyncio.get_running_loop()
    done: list[int] = []
    found: list[bool] = []  # whether there was a permit when a thread asked for one
    asked_again = threading.Event()

    class Permits(queue.SimpleQueue):
        def get(self, block=True, timeout=None):
            found.append(not self.empty())
            if len(found) == 4:
                asked_again.set()
            return super().get(block, timeout)

    monkeypatch.setattr(threads, "queue", SimpleNamespace(SimpleQueue=Permits, Empty=queue.Empty))
    with PacedThreads(loop, 2, "paced") as pool:
        asked = [loop.run_in_executor(pool, done.append, number) for number in range(20)]
        assert asked_again.wait(60)  # the loop is at something else
        assert (found, len(done)) == ([True, True, False, False], 2)
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
