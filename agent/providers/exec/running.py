"""
One command run to its end: as another user, with a deadline for its whole process group, its output bounded.

The output goes to a file in memory, not to a pipe: a daemon that the command leaves behind may keep it open, and is neither
waited for nor killed by writing to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import grp
import os
import pwd
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.errors import ResourceError

MAX_OUTPUT: Final = 1024 * 1024  # bytes of output that are kept, from its start
_ROOM: Final = 16 * MAX_OUTPUT  # bytes that may lie in memory before they are dropped
_PERSONAL: Final = ("HOME", "USER", "LOGNAME")
_GRACE: Final = 2.0  # seconds between asking a group to end and killing it


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: `code` is None when a signal ended it; `output` is stdout and stderr as they came."""

    code: int | None
    output: str

    @property
    def lines(self) -> list[str]:
        """The output's lines, without blank ones at its end."""
        lines = self.output.split("\n")
        while lines and not lines[-1]:
            lines.pop()
        return lines


class TookTooLong(Exception):
    """The deadline passed; the process group is gone."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How commands of one resource are run. `user` and `group` are names or ids, '' for our own."""

    environment: Mapping[str, str]
    cwd: str = ""
    user: str = ""
    group: str = ""
    umask: int = -1
    seconds: float = 0.0  # 0: any


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Our own variables without those that say who and where we are, and `environment` on top. The locale stays."""
    kept = {name: value for name, value in os.environ.items() if name not in _PERSONAL and not name.startswith("BUNRAKU_")}
    return kept | dict(environment)


async def run(argv: Sequence[str], program: str, manner: Manner) -> Finished:
    """
    Run `program` (an absolute path) with `argv`.

    Raises:
        TookTooLong: and its group was killed. ResourceError: it could not be started.
    """
    stop = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(_run, argv, program, manner, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _run(argv: Sequence[str], program: str, manner: Manner, stop: threading.Event) -> Finished:
    try:
        identity = _identity(manner)
    except LookupError as err:
        return Finished(1, str(err.args[0]))
    output = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        try:
            child = subprocess.Popen(
                list(argv),
                executable=program,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=manner.cwd or None,
                env=inherited(manner.environment),
                umask=manner.umask,
                start_new_session=True,
                user=identity.user,
                group=identity.group,
                extra_groups=identity.further,
            )
        except PermissionError as err:
            raise ResourceError(f"Could not execute '{argv[0]}': {err.strerror}") from err
        except OSError as err:
            raise ResourceError(f"Could not execute '{argv[0]}': {err.strerror} - {err.filename}") from err
        head = _Head(output)
        try:
            if not _waited(child, manner.seconds, stop, head):
                raise TookTooLong
        finally:
            _end(child)
        text = head.text()
        return Finished(child.returncode if child.returncode >= 0 else None, text)
    finally:
        # Whoever still holds it gets an error instead of filling our memory.
        with contextlib.suppress(OSError):
            fcntl.fcntl(output, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        os.close(output)


@dataclass(frozen=True, slots=True)
class _Identity:
    """Ids to run as; None: our own."""

    user: int | None = None
    group: int | None = None
    further: list[int] | None = None


def _identity(manner: Manner) -> _Identity:
    """Who a command runs as; LookupError names an unknown user or group."""
    gid: int | None = None
    if manner.group:
        try:
            gid = int(manner.group) if manner.group.isdigit() else grp.getgrnam(manner.group).gr_gid
        except KeyError as err:
            raise LookupError(f"Could not find group {manner.group}") from err
    if not manner.user:
        return _Identity(group=gid)
    try:
        entry = pwd.getpwuid(int(manner.user)) if manner.user.isdigit() else pwd.getpwnam(manner.user)
    except KeyError as err:
        raise LookupError(f"Could not find user {manner.user}") from err
    if os.geteuid() != 0:
        if entry.pw_uid != os.geteuid():
            raise ResourceError("Only root can execute commands as other users")
        return _Identity(group=gid)
    gid = entry.pw_gid if gid is None else gid
    return _Identity(entry.pw_uid, gid, os.getgrouplist(entry.pw_name, gid))


class _Head:
    """The start of an output that may be endless: what is beyond the limit is dropped now and then."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kept: bytes | None = None

    def trim(self) -> None:
        if os.fstat(self._fd).st_blocks * 512 > _ROOM:
            if self._kept is None:
                self._kept = os.pread(self._fd, MAX_OUTPUT, 0)
            os.ftruncate(self._fd, 0)

    def text(self) -> str:
        data = self._kept if self._kept is not None else os.pread(self._fd, MAX_OUTPUT + 1, 0)
        cut = self._kept is not None or len(data) > MAX_OUTPUT
        return data[:MAX_OUTPUT].decode("utf-8", "replace") + ("\n[the rest of the output is left out]" if cut else "")


def _waited(child: subprocess.Popen[bytes], seconds: float, stop: threading.Event, head: _Head) -> bool:
    """Whether the child ended in time (`seconds`; 0: any) and before `stop`."""
    deadline = time.monotonic() + seconds if seconds else None
    ended = select.poll()
    pidfd = os.pidfd_open(child.pid)
    try:
        ended.register(pidfd, select.POLLIN)
        while not stop.is_set():
            left = 0.25 if deadline is None else min(0.25, deadline - time.monotonic())
            if left <= 0:
                return False
            if ended.poll(max(1, int(left * 1000))):
                child.wait()
                return True
            head.trim()
        return False
    finally:
        os.close(pidfd)


def _end(child: subprocess.Popen[bytes]) -> None:
    """No member of a child's group left, if the child itself has not ended; a daemon of one that has is left alone."""
    if child.returncode is not None:
        return
    for number, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
