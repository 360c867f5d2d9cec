"""That only one run takes place, and that none takes place while an administrator says so."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path

from shared.files import make_directory, write_atomic

MAX_REASON = 4096  # characters of the reason for disabling
DEFAULT_REASON = "reason not specified"


@dataclass(frozen=True, slots=True)
class Process:
    """Another process: whether it lives, and its command line."""

    pid: int

    def is_puppet(self) -> bool:
        """Whether it is there and looks like a Puppet agent, ours or the other implementation's."""
        try:
            command = Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            return False
        return b"puppet" in command


class RunLock:
    """
    The lock of a run: held as long as the process lives, and not a moment longer.

    What counts is the kernel's lock on the file, so a dead process never holds it. The pid in the file is for people, monitoring and
    the other implementation, whose agents look at it alone: a pid of a live Puppet is respected.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Take it; False when another run has it. Blocks only for the disk."""
        make_directory(self.path.parent, mode=0o750)
        for _ in range(100):  # as often as somebody removes the file under us
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return False
            if not self._is_current(fd):
                os.close(fd)
                continue
            if self._held_by_another(fd):
                os.close(fd)
                return False
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
            self._fd = fd
            return True
        return False

    def _is_current(self, fd: int) -> bool:
        """The locked file is still the one at the path: the last holder may have removed it between our open and our lock."""
        mine = os.fstat(fd)
        try:
            there = self.path.lstat()
        except FileNotFoundError:
            return False
        return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)

    def _held_by_another(self, fd: int) -> bool:
        text = os.pread(fd, 20, 0).strip()
        if not text.isdigit():
            return False  # empty or garbage: left by a crash
        pid = int(text)
        return pid not in (os.getpid(), os.getppid()) and Process(pid).is_puppet()

    def release(self) -> None:
        """Remove the file and give the lock back."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self.path.unlink(missing_ok=True)
            os.close(fd)


class DisabledLock:
    """The file whose presence keeps the agent from running: `{"disabled_message": why}`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def reason(self) -> str | None:
        """Why the agent is disabled; None when it is not. A file that cannot be read disables too."""
        try:
            text = self.path.read_bytes()[: MAX_REASON * 4]
        except FileNotFoundError:
            return None
        except OSError as err:
            return f"{self.path} cannot be read: {err.strerror}"
        try:
            data = json.loads(text)
            message = data.get("disabled_message") if isinstance(data, dict) else None
        except (ValueError, RecursionError):
            message = None
        return message[:MAX_REASON] if isinstance(message, str) and message else DEFAULT_REASON

    def disable(self, message: str) -> None:
        make_directory(self.path.parent, mode=0o750)
        write_atomic(self.path, json.dumps({"disabled_message": message or DEFAULT_REASON}).encode(), mode=0o644)

    def enable(self) -> None:
        self.path.unlink(missing_ok=True)
