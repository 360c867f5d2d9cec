"""What a run of the tests leaves behind when it is killed: nothing. Each test here starts a small run of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.guard import FOLDERS, PREFIX, descendants, end, running

ROOT = Path(__file__).parents[1]
SECONDS = 120.0  # the most that any of this takes; longer is a hang

# Tells us its processes and folders, then waits to be killed; what it has started waits, too. All are children of a shell, in a session of
# their own, and those of root are in a chroot on a mount as well.
INNER = '''
import json, os, socket, subprocess, sys, tempfile
from pathlib import Path
from tests.support.processes import clean_environment

CHILD = "sleep 1000 & echo $$ $!; wait"
DAEMON = """
import os, sys
if os.fork() or os.setsid() or os.fork():
    os._exit(0)
os.write(1, b"%d" % os.getpid())
os.closerange(0, 3)
os.execv("/bin/sleep", ["sleep", "1000"])
"""


def start(*argv, **options):
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=clean_environment(), start_new_session=True, **options)
    return [int(pid) for pid in process.stdout.readline().split()]


def test_it_starts_what_would_outlive_it(tmp_path, request):
    folder = tempfile.mkdtemp()
    pids = start("/bin/sh", "-c", CHILD) + start(sys.executable, "-c", DAEMON)
    if os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        Path(folder, "file").touch()
        inside = tempfile.mkdtemp()
        script = f"mount --rbind / {inside}; exec chroot {inside} /bin/sh -c '{CHILD}'"
        pids += start("unshare", "--mount", "--propagation", "private", "/bin/sh", "-ec", script)
    assert len(pids) in (3, 5)
    found = {"worker": os.getpid(), "pids": pids, "guard": request.config.pluginmanager.get_plugin("guarded").guard}
    found["folders"] = [str(tmp_path), folder]
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        connection.sendall(json.dumps(found).encode())
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
'''


@dataclass(frozen=True)
class Run:
    """A run of pytest of its own, whose one test has started all that it starts, and waits for the end of its connection."""

    controller: subprocess.Popen[bytes]
    connection: socket.socket
    worker: int
    guard: int
    pids: list[int]
    folders: list[Path]

    @property
    def folder(self) -> Path:
        return FOLDERS / f"{PREFIX}{self.folders[1].parts[3].removeprefix(PREFIX)}"


@contextmanager
def small_run(tmp_path: Path, *options: str) -> Iterator[Run]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        (tmp_path / "test_inner.py").write_text(INNER.replace("PORT", str(server.getsockname()[1])))
        with start_pytest(tmp_path / "test_inner.py", *options) as controller:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                found: dict[str, Any] = json.load(stream)
                folders = [Path(folder) for folder in found.pop("folders")]
                yield Run(controller, connection, folders=folders, **found)


@contextmanager
def start_pytest(file: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start pytest as a process group of its own."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.guard", "--rootdir", str(file.parent), *options, str(file)]
    with (
        (file.parent / f"{file.stem}.log").open("wb") as log,
        subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def wait_for_end(*pids: int) -> None:
    """Return when these processes have ended, whosever they are."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        ended = poll.poll(SECONDS * 1000)
        os.close(descriptor)
        assert ended, f"process {pid} outlives its run: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"


def wait_until_removed(*folders: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while left := [folder for folder in folders if folder.exists()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def kill_controller(run: Run) -> None:
    run.controller.kill()


def kill_group(run: Run) -> None:
    os.killpg(run.controller.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "kill"), [("0", kill_controller), ("1", kill_controller), ("1", kill_group)], ids=["alone", "controller", "group"]
)
def test_a_run_that_is_killed_leaves_nothing(workers: str, kill: Any, tmp_path: Path) -> None:
    with small_run(tmp_path, "-n", workers) as run:
        kill(run)
        wait_for_end(run.worker, *run.pids)
        wait_until_removed(run.folder, *run.folders)


@pytest.mark.slow
def test_what_a_killed_worker_has_started_ends_while_the_run_goes_on(tmp_path: Path) -> None:
    with small_run(tmp_path, "-n", "1", "--max-worker-restart", "0") as run:
        run.controller.send_signal(signal.SIGSTOP)  # so that it does not end by itself now
        os.kill(run.worker, signal.SIGKILL)
        wait_for_end(*run.pids)
        assert run.folder.exists()
        run.controller.send_signal(signal.SIGCONT)
        assert run.controller.wait(SECONDS) == pytest.ExitCode.TESTS_FAILED
        wait_until_removed(run.folder)


@pytest.mark.slow
def test_a_run_that_ends_leaves_pytests_own_folder_alone(tmp_path: Path) -> None:
    with small_run(tmp_path, "-n", "0") as run:
        run.connection.shutdown(socket.SHUT_WR)
        assert run.controller.wait(SECONDS) == pytest.ExitCode.OK
        wait_for_end(*run.pids)
        wait_until_removed(run.folder)
        assert run.folders[0].is_dir()


@pytest.mark.slow
def test_the_next_run_clears_what_is_left_of_one_whose_guard_was_killed_too(tmp_path: Path) -> None:
    with small_run(tmp_path, "-n", "0") as run:
        os.kill(run.guard, signal.SIGKILL)
        wait_for_end(run.guard)
        run.controller.kill()
        wait_for_end(run.controller.pid)
        assert [pid for pid in run.pids if not Path(f"/proc/{pid}").exists()] == []
        (tmp_path / "test_next.py").write_text("def test_nothing() -> None: pass\n")
        with start_pytest(tmp_path / "test_next.py", "-n", "0") as controller:
            assert controller.wait(SECONDS) == pytest.ExitCode.OK
        wait_for_end(*run.pids)
        wait_until_removed(run.folder, *run.folders)


def test_a_process_without_the_mark_is_known_by_the_tree_that_it_was_in() -> None:
    script = "sleep 1000 & echo $!; exec cat"
    with subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        (name,) = (name for number, (_, name) in running().items() if number == owner.pid)
        family = descendants(running(), {name})
        owner.kill()
    assert {int(name.partition("-")[0]) for name in family} == {owner.pid, pid}
    end(name, family)
    wait_for_end(pid)
