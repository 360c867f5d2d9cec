"""
A run of the tests leaves no process and no folder behind, even when it is killed by -9.

As a plugin, this file starts a guard beside each process of pytest and gives the run one folder for all that `tempfile` makes. As a
program, it is the guard: in a session of its own, with nothing but Python's library, it looks once a second which processes descend from
its process of pytest. When that one has ended, it kills those, and all that have its mark in their environment: a daemon that left the
tree within that second is found by it. The guard of the whole run also clears what earlier runs have left whose guards were killed, too.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

MARK = "BUNRAKU_TEST_RUN"
"""In the environment of what a run starts: its processes of pytest, as PID-START, the outermost first, with `/` between them."""
MODULES = "BUNRAKU_PACKAGE_MODULES"
"""The folders of modules that packages install: no test depends on what this machine has."""
FOLDERS = Path("/var/tmp")  # and not below pytest's own folder: servers that run as users of their own have to get there
PREFIX = "bunraku-run-"
INTERVAL = 1000  # milliseconds between two looks

Processes = dict[int, tuple[int, str]]  # by number: the parent's number, and PID-START, which no later process has


def marks() -> dict[str, str]:
    """
    Return what a command's environment needs so that its processes are found, and that it finds no modules of this machine.

    The title of a process would overwrite its environment otherwise.
    """
    return {name: os.environ[name] for name in (MARK, "SPT_NOENV", MODULES) if name in os.environ}


# --- the plugin


class Guarded:
    """One process of pytest, from the start of its session to its end."""

    def __init__(self, config: pytest.Config) -> None:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            raise RuntimeError("/proc has the processes of another namespace: mount it anew, so that a guard finds those of this run")
        environment = dict(os.environ)  # a guard belongs to the run around this one, where there is one
        self.name = running()[os.getpid()][1]
        self.pytest_folder: Path | None = None
        arguments = [self.name]
        if not hasattr(config, "workerinput"):
            folder = FOLDERS / f"{PREFIX}{self.name}"
            folder.mkdir()
            folder.chmod(0o1777)
            self.pytest_folder = folder / "pytest"
            self.pytest_folder.symlink_to(config._tmp_path_factory.getbasetemp())  # it stays where it is: pytest keeps those of three runs
            os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
            arguments.append(str(folder))
        self.marks = {MARK: "/".join(filter(None, (environment.get(MARK), self.name))), "SPT_NOENV": "1", MODULES: ""}
        os.environ |= self.marks
        # In the background of a shell it is ignored, and so it would be in what tests start and interrupt.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.log = Path(tempfile.gettempdir(), f"guard-{self.name}.log")
        self.guard = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", __file__, *arguments],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, self.log, os.O_WRONLY | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,  # what ends a whole process group does not end it
        )

    def pytest_runtest_setup(self) -> None:
        """Mark the process again: an agent that an earlier test ran in it has cleaned its environment."""
        os.environ |= self.marks

    def pytest_unconfigure(self) -> None:
        """Leave pytest's own folder to those who want to see what failed; the guard does the rest, once this process has ended."""
        if os.waitpid(self.guard, os.WNOHANG) != (0, 0):
            raise RuntimeError(f"The guard of this run has ended before it: {self.log.read_text()}")
        if self.pytest_folder is not None:
            self.pytest_folder.unlink()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the guard, before any process that runs tests."""
    session.config.pluginmanager.register(Guarded(session.config), "guarded")


# --- the guard


def running() -> Processes:
    """Return all processes of this machine that have not ended."""
    processes: Processes = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  # a Path for each costs more than the look
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                state, parent, *more = file.read(4096).rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in b"ZX":
            processes[int(name)] = int(parent), f"{name}-{more[17].decode()}"
    return processes


def descendants(processes: Processes, roots: set[str]) -> set[str]:
    """Return those of `roots` that run, and all that descend from them."""
    members = {number for number, (_, name) in processes.items() if name in roots}
    added = members
    while added:
        added = {number for number, (parent, _) in processes.items() if parent in members} - members
        members |= added
    return {processes[number][1] for number in members}


def marked(processes: Processes, owner: str) -> set[str]:
    """Return those that a process of pytest has started, by the mark in their environment."""
    names = set()
    for number, (_, name) in processes.items():
        try:
            environment = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, or is another user's
        if any(entry.startswith(f"{MARK}=".encode()) and owner.encode() in entry[len(MARK) + 1 :].split(b"/") for entry in environment):
            names.add(name)
    return names


def end(owner: str, family: set[str]) -> None:
    """Kill those of `family`, what has the owner's mark, and all that descend from them, until none is left."""
    ours = running()[os.getpid()][1]
    beyond = {ours}  # this process, and those that it may not kill
    while True:
        stopped: set[str] = set()
        while True:  # what stands still starts no other process
            processes = running()
            more = descendants(processes, family | stopped | marked(processes, owner)) - stopped - beyond
            if not more:
                break
            beyond |= {name for name in more if not send(name, signal.SIGSTOP)}
            stopped |= more - beyond
        if not stopped:
            return
        for name in stopped:
            send(name, signal.SIGKILL)
        family |= stopped
        time.sleep(0.02)


def send(name: str, number: int) -> bool:
    """Send a process a signal; return whether that is allowed."""
    try:
        os.kill(int(name.partition("-")[0]), number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def mounts(folder: Path) -> list[str]:
    """Return the places below a folder where something is mounted, the innermost first."""
    places = [line.split()[4].encode().decode("unicode_escape") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [place for place in reversed(places) if Path(place).is_relative_to(folder)]


def remove(folder: Path) -> None:
    """Remove a folder with what is mounted in it; nothing that is still mounted is touched."""
    for place in mounts(folder):
        subprocess.run(["umount", "--lazy", place], check=False)
    if left := mounts(folder):
        raise RuntimeError(f"{left} cannot be unmounted")
    if folder.exists():
        subprocess.run(["chmod", "-R", "u+rwX", "--", folder], check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", "--", folder], check=True)


def clear(run: Path) -> None:
    """Remove a run's folder; pytest's own as well when the run did not come to its end."""
    try:
        descriptor = os.open(run, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return  # another guard has removed it
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # the guards of that run and of the next one may both be here
    link = run / "pytest"
    if link.is_symlink() and link.lstat().st_uid == os.geteuid():  # anybody may write into the run's folder
        remove(link.readlink())
    remove(run)
    os.close(descriptor)


def clear_earlier() -> None:
    """Clear what is left of this user's runs that have ended."""
    for run in FOLDERS.glob(f"{PREFIX}*"):
        try:
            is_own = run.lstat().st_uid == os.geteuid()
        except FileNotFoundError:
            continue  # its own guard has removed it
        owner = run.name.removeprefix(PREFIX)
        if is_own and owner not in {name for _, name in running().values()}:
            end(owner, set())
            clear(run)


def guard(owner: str, run: Path | None) -> None:
    """Return once the owner and all that descends from it have ended and, where this is the guard of a whole run, its folder is removed."""
    family = {owner}
    poll = select.poll()
    try:
        poll.register(os.pidfd_open(int(owner.partition("-")[0])), select.POLLIN)
    except ProcessLookupError:
        pass  # it has ended: the first look shows that
    if run is not None:
        clear_earlier()
    while owner in (family := descendants(running(), family)):
        poll.poll(INTERVAL)
    end(owner, family)
    if run is not None:
        clear(run)


if __name__ == "__main__":
    guard(sys.argv[1], Path(sys.argv[2]) if sys.argv[2:] else None)
