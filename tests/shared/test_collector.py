"""When a process with an event loop looks at its garbage."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from shared import collector


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def collected_after(looks: list[bool], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What is left of `looks` at whether the loop is idle when all is collected for the first time."""
    done = asyncio.Event()

    def collect() -> int:
        done.set()
        return 0

    monkeypatch.setattr(collector, "_ALL_EVERY", 0.5)
    monkeypatch.setattr("gc.collect", collect)
    task = asyncio.create_task(collector.collecting(lambda: looks.pop(0)))
    await asyncio.wait_for(done.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return looks


async def test_all_is_looked_at_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await collected_after([False, False, True, False], monkeypatch) == [False]


async def test_a_process_that_never_rests_looks_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await collected_after([False] * 6, monkeypatch) == [False]
    assert gc.get_threshold()[2] > 1000
