"""Every long task of a whole master is killed: each failure is heard of, and the master serves on or ends with a reason."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ca.tasks import CHANGE_CA, DECIDE_AGAIN
from httpd.tasks import ACCEPT, COUNT_TURNS, HANDSHAKE
from master.observability.longtasks import (
    DRAIN_STATE_QUEUE,
    FOLLOW_CODE,
    HEAR_OTHER_MASTERS,
    LOOK_AT_CODE,
    MASTER_TASKS,
    NOTIFY_SYSTEMD,
    REFRESH_CRL,
    RELOAD,
    REMOVE_OLD_REPORTS,
    RENEW_CRL,
    RETIRE_WORKER,
    RUN_STORE,
    SEND_ORDERS,
)
from master.process import TASK_FAILED, exit_code, until_signalled
from master.wiring import running
from shared.process.supervision import Supervisor
from shared.process.systemd import Notifier
from shared.settings import MasterSettings, load
from tests.support.waiting import until

SHARED = (HEAR_OTHER_MASTERS, LOOK_AT_CODE, FOLLOW_CODE, SEND_ORDERS, DRAIN_STATE_QUEUE, REMOVE_OLD_REPORTS)
"""Of masters that share their state."""
SHORT = {HANDSHAKE, CHANGE_CA, RETIRE_WORKER}  # many at a time, each for a moment: `spawn`


class Saboteur(Supervisor):
    """Has each task fail at its first starts, as by an error that nobody foresaw."""

    def __init__(self, failures: dict[str, int], pause: float = 0.0) -> None:
        super().__init__(MASTER_TASKS, pause=lambda task, failures: pause)
        self.to_come = failures
        self.starts: dict[str, int] = {}

    def start(self, name: str, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        async def sabotaged() -> None:
            self.starts[name] = self.starts.get(name, 0) + 1
            if self.to_come.get(name, 0) > 0:
                self.to_come[name] -= 1
                raise ValueError(f"sabotage of {name}")
            await work()

        super().start(name, sabotaged)


@dataclass
class Manager:
    """A service manager that listens for what a master tells it."""

    socket: socket.socket
    messages: list[str] = field(default_factory=list)

    def hear(self) -> list[str]:
        while True:
            try:
                self.messages.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return self.messages


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "20000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        yield Manager(listening)


def settings_below(root: Path, **more: str) -> MasterSettings:
    flags = {name: str(root / name) for name in ("confdir", "vardir", "rundir", "logdir")}
    flags |= {"certname": "localhost", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0", "compile_workers": "1", **more}
    return load(MasterSettings, section="master", flags=flags)


@pytest.mark.slow
async def test_R_41_each_long_task_that_dies_is_logged_counted_and_starts_again(
    tmp_path: Path, manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    long = {task.name: task for task in MASTER_TASKS if task.name not in SHORT}
    here = set(long) - {REFRESH_CRL, RUN_STORE, *SHARED}
    secret = tmp_path / "secret"
    secret.write_text("of the web hook, which has a task")
    secret.chmod(0o600)
    settings = settings_below(tmp_path, deploy_hook_secret=str(secret))
    settings.cadir.mkdir(parents=True)
    (settings.cadir / "master.lock").write_text("99999")  # of a master that was killed
    supervisor = Saboteur(dict.fromkeys(here, 1))
    serving = asyncio.create_task(until_signalled(settings, lambda: settings, supervisor))
    try:
        await until(lambda: all(supervisor.starts.get(name) == (1 if long[name].ends else 2) for name in here))
        await until(lambda: supervisor.is_sound)
    except AssertionError:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        raise
    assert {name: supervisor.failures[name] for name in here} == dict.fromkeys(here, 1)
    sabotaged = [str(record.exc_info[1]) for record in caplog.records if record.exc_info and record.levelno == logging.ERROR]
    assert sorted(sabotaged) == sorted(f"sabotage of {name}" for name in here)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(serving, 60) == 0


@pytest.mark.slow
async def test_R_41_the_same_on_a_master_that_is_no_ca_and_has_a_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(settings_below(tmp_path / "ca")):
        pass  # for the certificates
    ssl = str(tmp_path / "ca" / "confdir" / "ssl")
    supervisor = Saboteur({REFRESH_CRL: 1, RUN_STORE: 1})
    settings = settings_below(tmp_path / "other", ssldir=ssl, ca="false", ca_server="localhost", ca_port="1", store="sqlite")
    (Path(ssl) / "crl.pem").write_bytes((Path(ssl) / "ca" / "ca_crl.pem").read_bytes())
    async with running(settings, supervisor):
        await until(lambda: supervisor.starts == {**supervisor.starts, REFRESH_CRL: 2, RUN_STORE: 2})
    for name in (REFRESH_CRL, RUN_STORE):
        assert supervisor.failures[name] == 1
        assert f"The task '{name}' failed" in caplog.text


@pytest.mark.slow
async def test_R_41_the_same_on_a_master_that_shares_its_state(
    tmp_path: Path, empty_postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Saboteur(dict.fromkeys(SHARED, 1))
    async with running(settings_below(tmp_path, state=empty_postgresql_url, state_report_ttl="14d"), supervisor):
        await until(lambda: supervisor.starts == {**supervisor.starts, **dict.fromkeys(SHARED, 2)})
    for name in SHARED:
        assert f"The task '{name}' failed" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("name", [task.name for task in MASTER_TASKS if task.essential])
async def test_R_41_a_master_that_cannot_go_on_ends_with_a_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    settings = settings_below(tmp_path)
    serving = until_signalled(settings, lambda: settings, Saboteur({name: 1000}))
    assert await asyncio.wait_for(serving, 60) == TASK_FAILED
    assert f"The task '{name}' failed 6 times in succession" in caplog.text


@pytest.mark.slow
async def test_R_41_the_failures_of_all_tasks_are_in_the_metrics_from_the_start(tmp_path: Path) -> None:
    async with running(settings_below(tmp_path)) as master:
        text = master.metrics.text()
    assert [line for line in text.splitlines() if line.startswith("puppet_task_failures_total{")] == [
        f'puppet_task_failures_total{{task="{task.name}"}} 0' for task in MASTER_TASKS
    ]


async def test_R_41_systemd_hears_nothing_while_nobody_accepts_connections(manager: Manager) -> None:
    supervisor = Supervisor(MASTER_TASKS, pause=lambda task, failures: 60.0)
    notifier = Notifier()
    fails, looks = asyncio.Event(), itertools.count()
    last_look = 0

    def is_sound() -> bool:
        nonlocal last_look
        last_look = next(looks)
        return supervisor.is_sound

    async def accept() -> None:
        await fails.wait()
        raise ValueError("nobody foresaw it")

    supervisor.start(ACCEPT, accept)
    supervisor.start(NOTIFY_SYSTEMD, lambda: notifier.watch(is_sound))
    await until(lambda: manager.hear().count("WATCHDOG=1") >= 2)
    fails.set()
    await until(lambda: not supervisor.is_sound)
    manager.hear().clear()
    looked = last_look
    await until(lambda: last_look >= looked + 2)
    assert manager.hear() == []
    await supervisor.stop(ACCEPT, NOTIFY_SYSTEMD)


def test_only_those_tasks_are_essential_without_which_nobody_is_served() -> None:
    assert {task.name for task in MASTER_TASKS if task.essential} == {ACCEPT, COUNT_TURNS}
    assert {RELOAD, RENEW_CRL, DECIDE_AGAIN} <= {task.name for task in MASTER_TASKS}


def test_R_41_an_error_that_ends_the_whole_master_is_in_its_log(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> int:
        raise ValueError("nobody foresaw it")

    assert exit_code(fail) == TASK_FAILED
    assert "Traceback" in caplog.text and "nobody foresaw it" in caplog.text


def test_no_two_tasks_have_one_name() -> None:
    assert len({task.name for task in MASTER_TASKS}) == len(MASTER_TASKS)
