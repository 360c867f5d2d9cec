"""`exec`: a command that runs when its conditions hold. Source: resource layer reference 6."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..ral import ABSENT, Param, Property, Ref, State, Type
from ..ral.attributes import as_list, ruby_class, text_of
from .kinds.lists import FolderList

Words = str | list[str]  # a command: a line, or program and arguments

_COMMANDS = ("command", "unless", "onlyif")
_ABSOLUTE = re.compile(r"^(/\S+)", re.MULTILINE)
_QUOTED = re.compile(r'^"([^"]+)"', re.MULTILINE)


def program_of(command: Words) -> str:
    """Return the program that a command names: the first element, the text in a leading quote, or the text up to the first blank."""
    if isinstance(command, list):
        return command[0] if command else ""
    quoted = re.match(r"\"([^\"]+)\"|'([^']+)'", command)
    if quoted:
        return quoted[1] or quoted[2]
    return command.split(" ", 1)[0]


def _check_qualified(resource: Type, command: Words) -> None:
    """Raise ValueError unless the program is absolute, there is a path, or a shell looks for it."""
    program = program_of(command)
    if resource.value_of("provider") != "shell" and not program.startswith("/") and not resource.value_of("path"):
        raise ValueError(f"'{program}' is not qualified and no path was specified. Please qualify the command or specify a path.")


class ExecReturns(Property[list[str]]):
    """The exit codes that mean success; reads as `notrun` while the conditions let the command run."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return bool(state.get("returns", ABSENT) != "notrun")

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        return "executed successfully"

    def event_name(self, resource: Type, desired: Any) -> str:
        return "executed_command"


class ExecCommand(Param[Any]):
    """One command: a line, or a list of program and arguments."""

    def accept(self, resource: Type, raw: Any) -> Words:
        if isinstance(raw, str):
            return raw
        if isinstance(raw, list | tuple):
            return [text_of(value) for value in raw]
        raise ValueError(f"Command must be a String or Array<String>, got value of class {ruby_class(raw)}")


class ExecCheck(Param[Any]):
    """One or more commands whose exit codes decide; in an array, an inner array is a command with its arguments."""

    def accept(self, resource: Type, raw: Any) -> list[Words]:
        values = as_list(raw)
        commands: list[Words] = [[text_of(w) for w in value] if isinstance(value, list | tuple) else text_of(value) for value in values]
        for command in commands:
            _check_qualified(resource, command)
        return commands


class ExecRefresh(ExecCommand):
    def accept(self, resource: Type, raw: Any) -> Words:
        command = super().accept(resource, raw)
        _check_qualified(resource, command)
        return command


class ExecCreates(Param[Any]):
    """One or more absolute paths."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        values = as_list(raw)
        for value in values:
            if not text_of(value).startswith("/"):
                raise ValueError(f"{self.name} must be a fully qualified path")
        return [text_of(value) for value in values]


class ExecEnvironment(Param[Any]):
    def accept(self, resource: Type, raw: Any) -> list[str]:
        values = [text_of(value) for value in as_list(raw)]
        for setting in values:
            if not re.search(r"\w+=", setting):
                raise ValueError(f"Invalid environment setting '{setting}'")
        return values


def _cwd(value: Any) -> None:
    if not text_of(value).startswith("/"):
        raise ValueError("cwd must be a fully qualified path")


def _umask(value: Any) -> int:
    text = text_of(value)
    if not re.fullmatch(r"0?[0-7]{1,4}", text):
        quoted = f'"{text}"' if isinstance(value, str) else text
        raise ValueError(f"The umask specification is invalid: {quoted}")
    return int(text, 8)


class ExecNumber(Param[Any]):
    """A number whose refusal names the value, as Puppet's munging errors do."""

    problem = ""

    def _accept_one(self, resource: Type, value: Any) -> Any:
        try:
            return self.number(value)
        except ValueError as err:
            quoted = f'"{value}"' if isinstance(value, str) else text_of(value)
            raise ValueError(f"Munging failed for value {quoted} in class {self.name}: {err}") from err

    def number(self, value: Any) -> Any:
        raise NotImplementedError


class ExecTimeout(ExecNumber):
    def accept(self, resource: Type, raw: Any) -> float:
        return float(self._accept_one(resource, raw[0] if isinstance(raw, list) and raw else raw))

    def number(self, value: Any) -> float:
        try:
            return max(float(value), 0.0)
        except (TypeError, ValueError) as err:
            raise ValueError("The timeout must be a number.") from err


class ExecTries(ExecNumber):
    def number(self, value: Any) -> int:
        if not re.fullmatch(r"-?[0-9]+", text_of(value)) or (isinstance(value, str) and not value.isdigit()):
            raise ValueError("Tries must be an integer")
        if int(value) < 1:
            raise ValueError("Tries must be an integer >= 1")
        return int(value)


class ExecTrySleep(ExecNumber):
    def number(self, value: Any) -> float:
        try:
            seconds = float(value)
        except (TypeError, ValueError) as err:
            raise ValueError("try_sleep must be a number") from err
        if seconds < 0:
            raise ValueError("try_sleep cannot be a negative number")
        return seconds


class Exec(Type, name="exec", isomorphic=False, refreshable=True, features={"umask": "The provider can set the umask."}):
    """A command. It must be safe to run again, or have conditions that prevent it."""

    elsewhere = frozenset(("windows",))

    returns = ExecReturns(str, many=True, default=lambda _: ["0"], doc="Exit codes that mean success.")

    command = ExecCommand(object, namevar=True, doc="The command: a line, or program and arguments.")
    path = FolderList(object, doc="Where programs are looked for; becomes PATH.")
    user = Param(str, doc="The user to run as.")
    group = Param(str, doc="The group to run as.")
    cwd = Param(str, check=_cwd, doc="The directory to run in.")
    logoutput = Param(str, values=("true", "false", "on_failure"), default="on_failure", doc="Whether the output is logged.")
    refresh = ExecRefresh(object, doc="Another command to run on a refresh.")
    environment = ExecEnvironment(object, doc="Further variables, as `NAME=value`.")
    umask = Param(int, munge=_umask, requires=("umask",), doc="The umask to run with, octal.")
    timeout = ExecTimeout(float, default=300.0, doc="Seconds that each run of a command may take; 0: any.")
    tries = ExecTries(int, default=1, doc="How often to try.")
    try_sleep = ExecTrySleep(float, default=0.0, doc="Seconds between tries.")
    refreshonly = Param(bool, doc="Whether the command only runs on a refresh.")
    creates = ExecCreates(object, doc="Files; the command runs only while none of them exists.")
    unless = ExecCheck(object, doc="Commands; if any of them succeeds, the command does not run.")
    onlyif = ExecCheck(object, doc="Commands; unless all of them succeed, the command does not run.")

    def validate(self) -> None:
        _check_qualified(self, self.command)

    @property
    def key(self) -> str:
        return self.title

    def is_sensitive(self, attribute: str) -> bool:
        if attribute in _COMMANDS:
            return not self.origin.sensitive.isdisjoint(_COMMANDS)
        return super().is_sensitive(attribute)

    def autorequire(self) -> Iterator[Ref]:
        paths = [self.cwd] if self.cwd else []
        first = self.command[0] if isinstance(self.command, list) and self.command else self.command
        if isinstance(first, str):
            paths += _ABSOLUTE.findall(first) + _QUOTED.findall(first)
        for check in (*(self.onlyif or ()), *(self.unless or ())):
            line = check[0] if isinstance(check, list) and check else check
            if isinstance(line, str):
                paths += _ABSOLUTE.findall(line)
        for path in paths:
            yield Ref("file", path)
        if self.user and not self.user.isdigit():
            yield Ref("user", self.user)
