"""
Runs one command to its end: as another user, with a deadline for its whole process group, with limited output.

A daemon that the command leaves behind may keep the output open; it does not delay the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from shared.ral.outputs import OutputPipe

MAX_OUTPUT: Final = 1024 * 1024  # bytes of output that are kept, from its start
_PERSONAL: Final = ("HOME", "USER", "LOGNAME")
_GRACE: Final = 2.0  # seconds between asking a group to end and killing it


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The end of a command: `code` is None when a signal ended it; `output` is stdout and stderr as they came."""

    code: int | None
    output: str

    @property
    def lines(self) -> list[str]:
        """Return the output's lines, without blank ones at its end."""
        lines = self.output.split("\n")
        while lines and not lines[-1]:
            lines.pop()
        return lines


class CommandTimeout(Exception):
    """Raised when the deadline passed; the process group has been killed."""


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """The options for the commands of one resource. `user` and `group` are names or ids, '' for our own."""

    environment: Mapping[str, str]
    cwd: str = ""
    user: str = ""
    group: str = ""
    umask: int = -1
    seconds: float = 0.0  # 0: any


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return our own variables without those for user and directory, with `environment` on top. The locale stays."""
    own = {name: value for name, value in os.environ.items() if name not in _PERSONAL and not name.startswith("BUNRAKU_")}
    return own | dict(environment)


async def run(argv: Sequence[str], program: str, options: ChildOptions) -> CommandResult:
    """
    Run `program` (an absolute path) with `argv`.

    Raises:
        TookTooLong: and its group was killed. ResourceError: it could not be started.
    """
    stop = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(_run, argv, program, options, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _run(argv: Sequence[str], program: str, options: ChildOptions, stop: threading.Event) -> CommandResult:
    try:
        identity = _identity(options)
    except LookupError as err:
        return CommandResult(1, str(err.args[0]))
    output = OutputPipe(MAX_OUTPUT)
    try:
        try:
            child = subprocess.Popen(
                list(argv),
                executable=program,
                stdin=subprocess.DEVNULL,
                stdout=output.writer,
                stderr=output.writer,
                cwd=options.cwd or None,
                env=child_environment(options.environment),
                umask=options.umask,
                start_new_session=True,
                user=identity.user,
                group=identity.group,
                extra_groups=identity.further,
            )
        except PermissionError as err:
            raise ResourceError(f"Could not execute '{argv[0]}': {err.strerror}") from err
        except OSError as err:
            raise ResourceError(f"Could not execute '{argv[0]}': {err.strerror} - {err.filename}") from err
        output.close_writer()
        try:
            if not _wait_for(child, options.seconds, stop, output):
                raise CommandTimeout
        finally:
            _end(child)
        output.take()
        text = output.content.decode("utf-8", "replace") + ("\n[the rest of the output is left out]" if output.truncated else "")
        return CommandResult(child.returncode if child.returncode >= 0 else None, text)
    finally:
        output.close()


@dataclass(frozen=True, slots=True)
class _Identity:
    """The ids to run as; None: our own."""

    user: int | None = None
    group: int | None = None
    further: list[int] | None = None


def _identity(options: ChildOptions) -> _Identity:
    """Return the ids that a command runs as; LookupError names an unknown user or group."""
    gid: int | None = None
    if options.group:
        try:
            gid = int(options.group) if options.group.isdigit() else grp.getgrnam(options.group).gr_gid
        except KeyError as err:
            raise LookupError(f"Could not find group {options.group}") from err
    if not options.user:
        return _Identity(group=gid)
    try:
        entry = pwd.getpwuid(int(options.user)) if options.user.isdigit() else pwd.getpwnam(options.user)
    except KeyError as err:
        raise LookupError(f"Could not find user {options.user}") from err
    if os.geteuid() != 0:
        if entry.pw_uid != os.geteuid():
            raise ResourceError("Only root can execute commands as other users")
        return _Identity(group=gid)
    gid = entry.pw_gid if gid is None else gid
    return _Identity(entry.pw_uid, gid, os.getgrouplist(entry.pw_name, gid))


def _wait_for(child: subprocess.Popen[bytes], seconds: float, stop: threading.Event, output: OutputPipe) -> bool:
    """Return whether the child ended in time (`seconds`; 0: any) and before `stop`; reads its output in between."""
    deadline = time.monotonic() + seconds if seconds else None
    poll = select.poll()
    pidfd = os.pidfd_open(child.pid)
    try:
        poll.register(pidfd, select.POLLIN)
        poll.register(output.reader, select.POLLIN)
        while not stop.is_set():
            seconds_left = 0.25 if deadline is None else min(0.25, deadline - time.monotonic())
            if seconds_left <= 0:
                return False
            ready = [fd for fd, _ in poll.poll(max(1, int(seconds_left * 1000)))]
            if pidfd in ready:
                child.wait()
                return True
            if output.reader in ready:
                output.take()
                if output.ended:
                    poll.unregister(output.reader)
        return False
    finally:
        os.close(pidfd)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill all members of a child's process group if the child itself has not ended; a daemon left by one that has ended lives on."""
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
