"""Becoming a daemon: pid file, background, another user. Nothing here is async; call it before the event loop starts."""

from __future__ import annotations

import grp
import logging
import os
import pwd
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from ..errors import BadData, ConfigError
from ..filesystem.files import make_directory, read_regular, write_atomic
from .processes import Process

log = logging.getLogger("puppet")

_AUTOGROUP = Path("/proc/self/autogroup")
_ATTEMPTS, _PAUSE = 30, 0.1  # at setting its niceness, and seconds between them


class PidFile:
    """A file with this process' number, refused while the process in it lives; only our own file is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def running(self) -> int | None:
        """Return the process in the file, when it lives, is not this one, and did not get the number of the one that wrote the file."""
        try:
            pid = int(read_regular(self.path) or "0")
        except (OSError, BadData, ValueError):
            return None
        if pid <= 0 or pid == os.getpid():
            return None
        process = Process(pid)
        return pid if process.is_alive() and not process.began_after(self.path) else None

    def write(self) -> None:
        """Write the file; raise ConfigError with the process that has it."""
        other = self.running()
        if other is not None:
            raise ConfigError(f"Could not create PID file: {self.path}", hint=f"Process {other} is running; stop it first.")
        make_directory(self.path.parent)
        write_atomic(self.path, b"%d\n" % os.getpid())

    def remove(self) -> None:
        try:
            if read_regular(self.path).strip() == b"%d" % os.getpid():
                self.path.unlink()
        except (OSError, BadData):
            return


def hear_hangups() -> None:
    """Let HUP come, one that was sent before, too: `__main__` blocks it, so that it does not end the start of a daemon."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


def take_priority(priority: int | Literal[""]) -> None:
    """Ask for more or less of the processor, for this process and all that it starts after this; a warning where it may not."""
    if priority == "":
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, priority)
    except OSError:
        log.warning("Failed to set process priority to '%d'", priority)


def give_way(niceness: int) -> None:
    """
    Let all other processes go before this one when the processors are busy, those of other sessions, too.

    Linux shares the processors between sessions (sched_autogroup_enabled), and nice(2) counts only within one of them. A process that leads
    a session therefore lowers the session's weight. Blocks for a moment where that has just been done for another one.
    """
    os.nice(niceness)
    if os.getsid(0) != os.getpid():
        return
    for _ in range(_ATTEMPTS):
        try:
            _AUTOGROUP.write_text(f"{niceness}\n")
        except FileNotFoundError:  # a kernel without such groups
            return
        except BlockingIOError:  # ten times a second for all processes that are not root's
            time.sleep(_PAUSE)
        except OSError as err:
            log.warning("The niceness %d does not count beside other sessions: %s: %s", niceness, _AUTOGROUP, err.strerror)
            return
        else:
            return
    log.warning("The niceness %d does not count beside other sessions: others keep changing theirs", niceness)


def to_background() -> None:
    """Go on in a child without a terminal; the parent ends with 0. Standard streams lead nowhere: logs have a destination by then."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def account(user: str, group: str) -> tuple[int, int]:
    """Return the ids of user and group; raise ConfigError with a remedy when there is no such account."""
    try:
        entry = pwd.getpwnam(user)
        gid = grp.getgrnam(group).gr_gid if group else entry.pw_gid
    except KeyError as err:
        raise ConfigError(
            f"Could not change to user {user}: {err.args[0]}",
            hint=f"Make the account (useradd --system {user}), or name another one with --user and --group.",
        ) from err
    return entry.pw_uid, gid


def require_program(user: str, files: Iterable[Path]) -> None:
    """Check that this process, which already runs as `user`, can read these files of the program; raise ConfigError with a remedy."""
    for file in files:
        if not os.access(file, os.R_OK):
            raise ConfigError(
                f"The account {user} cannot read {file}, a part of the program",
                hint="Put the program where that account may read it, as below /opt, or name another account with --user and --group.",
            )


def own(folders: Mapping[Path, int], uid: int, gid: int) -> None:
    """Create missing folders for that account, with their modes, and give it root's empty ones; others are unchanged."""
    for folder, mode in folders.items():
        if not folder.exists():
            make_directory(folder, mode=mode)
            os.chown(folder, uid, gid)
        elif folder.stat().st_uid == 0 and not folder.is_symlink() and not any(folder.iterdir()):
            os.chown(folder, uid, gid)


def become(uid: int, gid: int, user: str) -> None:
    """Give up root for good: groups, group, user, in that order, and make sure that there is no way back."""
    os.initgroups(user, gid)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    try:
        os.setuid(0)
    except PermissionError:
        return
    raise ConfigError(f"Could not give up root for {user}")
