"""Commands on POSIX systems: `posix` runs programs, `shell` hands lines to /bin/sh. Source: resource layer reference 6."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared.errors import ResourceError
from shared.ral import Provider, State
from shared.ral.commands import which_in, without_secrets
from shared.types.exec import Exec, Words, program_of

from ...state.runlog import RunLog
from ..commands import SHELL, argv_of, needs_shell
from .running import ChildOptions, CommandResult, CommandTimeout, run

_SETTING: Final = re.compile(r"(\w+)=(.*)", re.DOTALL)
_KINDS: Final = {stat.S_IFDIR: "directory", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "characterSpecial"}


@dataclass(frozen=True, slots=True)
class ExecContext:
    """The parts of a run that the providers use."""

    log: RunLog


class PosixExec(Provider[Exec], type=Exec, name="posix", default_for=[{"feature": "posix"}], features=("umask",)):
    """Runs programs, which it locates first; uses a shell only for lines that need one."""

    def __init__(self, context: ExecContext) -> None:
        self.context = context
        self._warned: set[str] = set()

    # --- conditions

    async def retrieve(self, resource: Exec) -> State | None:
        return {"returns": "notrun" if await self._may_run(resource, refreshing=False) else resource.wanted("returns")}

    async def _may_run(self, resource: Exec, *, refreshing: bool) -> bool:
        """Return whether all conditions let the command run; in Puppet's order, and no further than the first that does not."""
        if resource.refreshonly and not refreshing:
            return self._log_failed_check(resource, "refreshonly")
        for path in resource.creates or ():
            resource.log("debug", f"Checking that 'creates' path '{path}' exists", "creates")
            if await asyncio.to_thread(Path(path).exists):
                return self._log_failed_check(resource, "creates")
        for name, commands in (("unless", resource.unless), ("onlyif", resource.onlyif)):
            for command in commands or ():
                code = await self._check_code(resource, name, command)
                if code is _TIMED_OUT or (code == 0) == (name == "unless"):
                    return self._log_failed_check(resource, name)
        return True

    def _log_failed_check(self, resource: Exec, check: str) -> bool:
        resource.log("debug", f"{self._command_text(resource)} won't be executed because of failed check '{check}'")
        return False

    async def _check_code(self, resource: Exec, name: str, command: Words) -> Any:
        try:
            result = await self._run(resource, command, check=name)
        except CommandTimeout:
            text = "[command redacted]" if resource.is_sensitive(name) else _ruby_inspect(command)
            resource.log("err", f"Check {text} exceeded timeout", name)
            return _TIMED_OUT
        for line in ["[output redacted]"] if resource.is_sensitive(name) else result.lines:
            resource.log("debug", line, name)
        return result.code

    # --- running

    async def set_returns(self, resource: Exec, desired: list[str], state: State | None) -> None:
        await self._perform(resource)

    async def refresh(self, resource: Exec) -> None:
        if not await self._may_run(resource, refreshing=True):
            return
        if resource.refresh:
            try:
                await self._run(resource, resource.refresh)
            except CommandTimeout as err:
                raise ResourceError("Command exceeded timeout") from err
        else:
            await self._perform(resource)

    async def _perform(self, resource: Exec) -> None:
        expected = resource.wanted("returns") or ["0"]
        result = None
        for attempt in range(resource.tries):
            if attempt and resource.try_sleep:
                await asyncio.sleep(resource.try_sleep)
            if resource.tries > 1:
                resource.log("debug", f"Exec try {attempt + 1}/{resource.tries}", "returns")
            try:
                result = await self._run(resource, resource.command)
            except CommandTimeout as err:
                raise ResourceError("Command exceeded timeout") from err
            if _code(result) in expected:
                break
        assert result is not None
        failed = _code(result) not in expected
        if resource.logoutput == "true" or (resource.logoutput == "on_failure" and failed):
            for line in ["[output redacted]"] if resource.is_sensitive("command") else result.lines:
                resource.log(resource.loglevel, line, "returns")
        if failed:
            raise ResourceError(f"{self._command_text(resource)} returned {_code(result)} instead of one of [{','.join(expected)}]")

    def _command_text(self, resource: Exec) -> str:
        if resource.is_sensitive("command"):
            return "[command redacted]"
        command = resource.command
        return f"'{command}'" if isinstance(command, str) else f"'{_ruby_inspect(command)}'"

    async def _run(self, resource: Exec, command: Words, *, check: str = "") -> CommandResult:
        """
        Run one command, with the resource's path, environment, user and deadline. `check`: the attribute whose command it is.

        Raises:
            TookTooLong. ResourceError: no such program or directory, or exit code 127, which a shell gives for the same reason.
        """
        environment = self._environment(resource)
        argv, program = await asyncio.to_thread(self._resolve, resource, command, environment.get("PATH"))
        text = (
            "[redacted]" if resource.is_sensitive(check or "command") else command if isinstance(command, str) else _ruby_inspect(command)
        )
        text = without_secrets(text)
        resource.log("debug", f"Executing{' check' if check else ''} '{text}'")
        if resource.cwd and not await asyncio.to_thread(os.path.isdir, resource.cwd):
            raise ResourceError(f"Working directory {resource.cwd} does not exist!")
        options = ChildOptions(
            environment=environment,
            cwd=resource.cwd or "",
            user=resource.user or "",
            group=resource.group or "",
            umask=-1 if resource.umask is None else resource.umask,
            seconds=resource.timeout,
        )
        started = time.monotonic()
        result = await run(argv, program, options)
        took = time.monotonic() - started
        ending = "was ended by a signal" if result.code is None else f"exited with {result.code}"
        resource.log("debug", f"'{text}' {ending} after {took:.3f} seconds")
        if result.code == 127:
            raise ResourceError("[output redacted]" if resource.is_sensitive(check or "command") else result.output)
        return result

    def _resolve(self, resource: Exec, command: Words, path: str | None) -> tuple[Sequence[str], str]:
        """Return arguments and absolute program of a command; raise ResourceError when the program cannot be run. Blocks."""
        _check_program(program_of(command), resource.path or ())
        argv = argv_of(command)
        if needs_shell(command):
            return argv, SHELL
        return argv, argv[0] if argv[0].startswith("/") else which_in((path or os.defpath).split(":"), argv[0]) or argv[0]

    def _environment(self, resource: Exec) -> dict[str, str]:
        environment = {"PATH": ":".join(resource.path)} if resource.path else {}
        for setting in resource.environment or ():
            match = _SETTING.fullmatch(setting)
            if match is None:
                self._warn(resource, f"Cannot understand environment setting {_ruby_inspect(setting)}")
                continue
            name, value = match.groups()
            if name in environment:
                self._warn(resource, f"Overriding environment setting '{name}' with '{value}'")
            if not value and name not in self._warned:
                self._warned.add(name)
                self.context.log.log("warning", f"Empty environment setting '{name}'\n   {resource.origin.where or ''}".rstrip())
            environment[name] = value
        return environment

    def _warn(self, resource: Exec, text: str) -> None:
        self.context.log.log("warning", text, source=f"{resource.ref}(provider={self.name})")


class ShellExec(PosixExec, type=Exec, name="shell", features=("umask",)):
    """Runs lines by /bin/sh, which locates programs, knows builtins and expands patterns."""

    def _resolve(self, resource: Exec, command: Words, path: str | None) -> tuple[Sequence[str], str]:
        line = command if isinstance(command, str) else shlex.join(command)
        return [SHELL, "-c", line], SHELL


_TIMED_OUT: Final = object()


def _code(result: CommandResult) -> str:
    return "" if result.code is None else str(result.code)


def _check_program(program: str, path: Sequence[str]) -> None:
    if program.startswith("/"):
        try:
            info = Path(program).stat()
        except OSError:
            raise ResourceError(f"Could not find command '{program}'") from None
        if not stat.S_ISREG(info.st_mode):
            raise ResourceError(f"'{program}' is a {_KINDS.get(stat.S_IFMT(info.st_mode), 'device')}, not a file")
        if not os.access(program, os.X_OK):
            raise ResourceError(f"'{program}' is not executable")
    elif which_in(path, program) is None:
        raise ResourceError(f"Could not find command '{program}'")


def _ruby_inspect(command: Words) -> str:
    """Return a command as Ruby's `inspect` writes it."""
    if isinstance(command, list):
        return "[" + ", ".join(_ruby_inspect(word) for word in command) + "]"
    escaped = command.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
