"""The store as a child process of a master, played by small programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from master.service import store_process
from master.service.store_process import StoreProcess
from shared.settings import Conf, MasterSettings, load
from tests.support.waiting import until

LISTENS = "import sys, json, os; s = json.loads(sys.stdin.readline()); open(s['vardir'] + '/pids', 'a').write(f'{os.getpid()} '); "
READY = LISTENS + "print('ready', flush=True); "


@pytest.fixture
def settings(tmp_path: Path) -> MasterSettings:
    flags = {"confdir": str(tmp_path), "vardir": str(tmp_path), "rundir": str(tmp_path), "drain_timeout": "1", "store": "sqlite"}
    return load(MasterSettings, section="master", flags=flags, conf=Conf())


def process(settings: MasterSettings, code: str) -> StoreProcess:
    return StoreProcess(settings, [sys.executable, "-I", "-S", "-c", code], shortest_pause=0.01, grace=0.1)


def pids(settings: MasterSettings) -> list[int]:
    path = settings.vardir / "pids"
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def running(store: StoreProcess, *, starts: int) -> AsyncIterator[None]:
    """Run the block once the store has been started so often and its last process says that it listens."""
    task = asyncio.create_task(store.keep_running())
    try:
        await until(lambda: len(pids(store.settings)) >= starts and store.starts >= starts)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def test_all_settings_reach_the_store_as_they_are(settings: MasterSettings) -> None:
    assert MasterSettings.model_validate(json.loads(settings.model_dump_json())).model_dump() == settings.model_dump()


@pytest.mark.slow
async def test_the_store_ends_with_its_master(settings: MasterSettings) -> None:
    async with running(process(settings, READY + "sys.stdin.read(); open(s['vardir'] + '/end', 'w')"), starts=1):
        (pid,) = pids(settings)
        assert is_alive(pid)
    assert (settings.vardir / "end").exists() and not is_alive(pid)


@pytest.mark.slow
async def test_a_store_that_does_not_end_is_killed(settings: MasterSettings) -> None:
    async with running(process(settings, READY + "import time; time.sleep(60)"), starts=1):
        (pid,) = pids(settings)
    assert not is_alive(pid)


@pytest.mark.slow
async def test_a_store_that_dies_is_started_again_and_the_reason_is_known(
    settings: MasterSettings, caplog: pytest.LogCaptureFixture
) -> None:
    store = process(settings, READY + "os.kill(os.getpid(), 9)")
    async with running(store, starts=3):
        pass
    assert "The store has ended: it was killed by signal 9; it starts again in 0.02 seconds" in caplog.text


@pytest.mark.slow
async def test_a_store_that_cannot_start_is_tried_again(settings: MasterSettings) -> None:
    store = process(settings, LISTENS + "sys.exit(3)")
    async with running(store, starts=2):
        pass
    assert store.problem == "its exit code is 3; see its log"


async def test_a_program_that_is_missing_is_said(settings: MasterSettings) -> None:
    store = StoreProcess(settings, ["/nonexistent/program"], shortest_pause=60)
    task = asyncio.create_task(store.keep_running())
    await until(lambda: store.problem)
    task.cancel()
    assert store.problem == "it could not be started: No such file or directory"


@pytest.mark.slow
async def test_who_waits_for_a_store_hears_of_each_of_its_states(settings: MasterSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    store = process(settings, READY + "sys.stdin.read(1)")
    assert (store.state, store.problem) == ("starting", "")
    async with running(store, starts=1):
        await store.wait_until_open()
        assert (store.state, store.problem) == ("listening", "")
        await store.wait_until_listening()
        store.command = ["/nonexistent/program"]
        os.kill(pids(settings)[0], signal.SIGKILL)
        await until(lambda: "could not be started" in store.problem)
        assert store.state == "ended"
        await store.wait_until_open()
        monkeypatch.setattr(store_process, "PATIENCE", 0.0)
        with pytest.raises(ConnectionError, match="the store does not run: it could not be started"):
            await store.wait_until_listening()
