"""The lock that allows one run at a time, and the file by which an administrator forbids runs."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from shared.errors import BadData, ConfigError
from shared.filesystem.files import make_directory, read_regular, write_atomic
from shared.names import quoted_for_log
from shared.process.processes import Process

MAX_REASON = 4096  # characters of the reason for disabling
DEFAULT_REASON = "reason not specified"
_INTERPRETERS: Final = re.compile(
    r"(ruby|jruby|java|python|puppet|bunraku)[-.\d]*( \(deleted\))?"
)  # (deleted): the program was upgraded while it runs


log = logging.getLogger("puppet.agent")


class RunLock:
    """
    The lock of a run, which its process holds until it releases it or dies.

    The kernel's lock on the file is what counts, so a dead process never holds it. The pid in the file is for people, monitoring and the
    other implementation, whose agents look only at the pid: the pid of a live Puppet is respected. A process counts as such a Puppet when
    it is older than the file and its program is an interpreter; the name alone does not make it one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """
        Take the lock; return False when another run holds it. Blocks only for the disk.

        Raises:
            ConfigError: the path is a directory.
        """
        make_directory(self.path.parent, mode=0o750)
        for _ in range(100):  # once more each time that the file is removed while we open it
            fd = self._open()
            if fd is None:
                continue
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

    def _open(self) -> int | None:
        """Open the file, created if need be; return None when something else was at the path, which is removed for the next attempt."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        except IsADirectoryError as err:
            raise ConfigError(f"The lock {self.path} is a directory", hint="Remove it; see agent_catalog_run_lockfile.") from err
        except OSError as err:
            if err.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a socket
                raise
        else:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return fd
            os.close(fd)
        target = self._link_target()
        with suppress(FileNotFoundError):  # another run has removed it
            if not stat.S_ISREG(self.path.lstat().st_mode):  # another run may have put its lock there by now
                log.warning("The lock %s is not a regular file%s; it is replaced", self.path, target)
                self.path.unlink()
        return None

    def _link_target(self) -> str:
        try:
            return f" but a link to {quoted_for_log(os.readlink(self.path))}"  # noqa: PTH115  # the text, as it is
        except OSError:
            return ""

    def _is_current(self, fd: int) -> bool:
        """Return whether the locked file is still the one at the path: the last holder may have removed it between our open and lock."""
        locked = os.fstat(fd)
        try:
            current = self.path.lstat()
        except FileNotFoundError:
            return False
        return (locked.st_ino, locked.st_dev) == (current.st_ino, current.st_dev)

    def _held_by_another(self, fd: int) -> bool:
        text = os.pread(fd, 20, 0).strip()
        if not text.isdigit():
            return False  # empty or garbage: left by a crash
        pid = int(text)
        return pid not in (os.getpid(), os.getppid()) and self._wrote_it(Process(pid))

    def _wrote_it(self, process: Process) -> bool:
        """Return whether this is a live Puppet, ours or the other implementation's, that can have written the file."""
        if "puppet" not in process.command_line() or process.began_after(self.path):
            return False
        program = process.program()
        return not program or _INTERPRETERS.fullmatch(program) is not None

    def release(self) -> None:
        """Remove the file and release the lock."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self.path.unlink(missing_ok=True)
            os.close(fd)


class DisabledLock:
    """The file whose presence disables the agent: `{"disabled_message": why}`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def reason(self) -> str | None:
        """
        Return why the agent is disabled; None when it is not.

        Raises:
            ConfigError: the file cannot be read. It is then unknown whether runs are allowed, so there is none.
        """
        try:
            text = read_regular(self.path)
        except FileNotFoundError:
            return None
        except (OSError, BadData) as err:
            raise self._error("read", err) from err
        try:
            data = json.loads(text)
            message = data.get("disabled_message") if isinstance(data, dict) else None
        except (ValueError, RecursionError):
            message = None
        return message[:MAX_REASON] if isinstance(message, str) and message else DEFAULT_REASON

    def disable(self, message: str) -> None:
        """Write the file; raise ConfigError when that fails."""
        try:
            make_directory(self.path.parent, mode=0o750)
            write_atomic(self.path, json.dumps({"disabled_message": message or DEFAULT_REASON}).encode(), mode=0o644)
        except OSError as err:
            raise self._error("write", err) from err

    def enable(self) -> None:
        """Remove the file; raise ConfigError when that fails."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as err:
            raise self._error("remove", err) from err

    def _error(self, verb: str, error: OSError | BadData) -> ConfigError:
        reason = error.strerror if isinstance(error, OSError) else error.message
        hint = "Remove it; see agent_disabled_lockfile."
        if isinstance(error, PermissionError) and os.geteuid() != 0:
            hint = "Run the agent as root (sudo)."
        return ConfigError(f"Could not {verb} {self.path}, which marks the agent as disabled: {reason}", hint=hint)
