"""Commands that providers run: located again for each call, no shell, locale C, output and exit code checked."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ResourceError
from ..programs import start_program
from .messages import REDACTED
from .outputs import OutputPipe

log = logging.getLogger("puppet.commands")

_LOCALE = {"LANG": "C", "LC_ALL": "C", "LC_CTYPE": "C", "LC_MESSAGES": "C", "LANGUAGE": "C"}
_PERSONAL = frozenset(("HOME", "USER", "LOGNAME"))
_SYSTEM = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
MAX_OUTPUT = 32 * 1024 * 1024  # bytes of output that are kept; the rest is dropped


_SECRETS: ContextVar[tuple[str, ...]] = ContextVar("secrets", default=())


@contextmanager
def keep_secret(texts: Sequence[str]) -> Iterator[None]:
    """Show `texts` in no line of the log and no error about the commands that run inside of the block."""
    token = _SECRETS.set((*_SECRETS.get(), *sorted(filter(None, texts), key=len, reverse=True)))
    try:
        yield
    finally:
        _SECRETS.reset(token)


def without_secrets(text: str) -> str:
    """Return `text` with `[redacted]` in place of all secrets of this object."""
    for secret in _SECRETS.get():
        text = text.replace(secret, REDACTED)
    return text


def log_start(command: str, note: str = "") -> float:
    """Write into the debug log that a command starts, and return the time for `log_end`. `command`: as messages show it."""
    log.debug("Executing: '%s'%s", command, note)
    return time.monotonic()


def log_end(command: str, code: int | None, started: float) -> None:
    """Write into the debug log how a command ended: its exit code (None: a signal ended it) and how long it took."""
    ending = f"exited with {code}" if code is not None and code >= 0 else "was ended by a signal"
    log.debug("'%s' %s after %.3f seconds", command.partition(" ")[0], ending, time.monotonic() - started)


def which(name: str) -> str | None:
    """Return the path of a program: an absolute one if it is executable, else the first in PATH and then in the system's folders; None."""
    return which_in([""] if name.startswith("/") else [f for f in os.environ.get("PATH", "").split(":") if f] + _SYSTEM, name)


def which_in(folders: Sequence[str], name: str) -> str | None:
    """Return the path of a program in the first folder that has it; None when none has."""
    for folder in folders:
        path = Path(folder) / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command: `text` is stdout and stderr together."""

    text: str
    code: int


async def execute(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    seconds: float | None = None,
    fail: bool = True,
    shown: str = "",
    program: str = "",
) -> Output:
    """
    Run a program to its end.

    Args:
        seconds: the most it may take; None: no limit (package managers take as long as they take). Then its whole process group is killed.
        fail: a non-zero exit raises.
        shown: the command as messages show it; give it when arguments are secret.
        program: the path of what is run, where `argv[0]` is only what it is called.
    Raises:
        ResourceError: not found, not executable, timed out, or `Execution of 'cmd' returned N: output`.
    """
    command = without_secrets(shown or " ".join(argv))
    env = {k: v for k, v in os.environ.items() if k not in _PERSONAL and not k.startswith("LC_")} | _LOCALE | dict(environment or {})
    if any("\0" in word for word in argv):
        raise ResourceError(f"Could not execute {command!r}: an argument contains NUL")
    output, input_fd = OutputPipe(MAX_OUTPUT), os.memfd_create("input", os.MFD_CLOEXEC)
    try:
        os.pwrite(input_fd, stdin, 0)
        started = log_start(command)
        code = await _run_to_end(argv, program or argv[0], env, input_fd, output, seconds, command)
        log_end(command, code, started)
        result = Output(output.content.decode("utf-8", "replace"), code)
    finally:
        output.close()
        os.close(input_fd)
    if fail and result.code:
        raise ResourceError(f"Execution of '{command}' returned {result.code}: {without_secrets(result.text.strip())}")
    return result


async def _run_to_end(
    argv: Sequence[str], program: str, env: Mapping[str, str], input_fd: int, output: OutputPipe, seconds: float | None, command: str
) -> int:
    """Return the exit code of a program, run to its end; its process group does not outlive the deadline, nor our being cancelled."""
    try:
        process = await start_program(*argv, executable=program, stdin=input_fd, stdout=output.writer, stderr=output.writer, env=env)
    except OSError as err:
        raise ResourceError(f"Could not execute '{command}': {err.strerror}") from err
    loop = asyncio.get_running_loop()

    def take() -> None:
        output.take()
        if output.ended:
            loop.remove_reader(output.reader)

    output.close_writer()
    loop.add_reader(output.reader, take)
    try:
        async with asyncio.timeout(seconds):
            code = await process.wait()
        output.take()
        return code
    except TimeoutError as err:
        raise ResourceError(f"Execution of '{command}' exceeded {seconds:g} seconds") from err
    finally:
        loop.remove_reader(output.reader)
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@dataclass(frozen=True, slots=True)
class Command:
    """
    A program that a provider needs, declared in its class body: `apt = Command("/usr/bin/apt-get")`, then `await self.apt("update")`.

    Unless `optional`, the provider fits only where the program is found.
    """

    path: str
    optional: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None  # the time limit of a call that sets none
    find_program: Callable[[str], str | None] = which

    async def __call__(
        self, *arguments: str, stdin: bytes = b"", seconds: float | None = None, fail: bool = True, shown: str = ""
    ) -> Output:
        """Run it with these arguments; see `execute`."""
        program = await asyncio.to_thread(self.find_program, self.path)
        if program is None:
            raise ResourceError(f"Command {Path(self.path).name} is missing")
        return await execute(
            [program, *arguments], environment=self.environment, stdin=stdin, seconds=seconds or self.seconds, fail=fail, shown=shown
        )
