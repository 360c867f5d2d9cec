"""The decision to sign a new request at once: never, always, by a list of names, or by a program. Source: protocol reference 5.7."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shared.errors import PuppetError
from shared.names import quoted_for_log
from shared.programs import run_bounded

log = logging.getLogger("puppet.ca.autosign")

MAX_LIST = 16 * 1024 * 1024  # bytes of a list of names
AT_ONCE = 4  # programs that run at a time
MAX_WAITING = 200  # requests that may wait for the program
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/"}


@dataclass(frozen=True, slots=True)
class AutosignDecision:
    """The decision to sign or not, and its reason for the log."""

    sign: bool
    reason: str


def parse_patterns(text: str) -> list[str]:
    """Return the patterns of an autosign file: one a line, blank lines and `#` comments left out."""
    return [line for raw in text.splitlines() if (line := raw.partition("#")[0].strip())]


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern fits: `*` every name, `*.domain` whole labels below it, any other itself; it may be in any case."""
    folded = pattern.lower()
    if folded == "*":
        return True
    if folded.startswith("*."):
        return name.endswith(folded[1:]) and len(name) > len(folded) - 1
    return name == folded


def decide_by_list(name: str, patterns: Iterable[str]) -> AutosignDecision:
    """Return whether a name is on the list; the reason names the pattern."""
    for pattern in patterns:
        if matches(name, pattern):
            return AutosignDecision(True, f"it matches {quoted_for_log(pattern)}")
    return AutosignDecision(False, "no pattern matches it")


class Autosign:
    """
    The setting `autosign`, asked for each new request.

    A program gets the name as its only argument and the request's PEM on its standard input, with a clean environment,
    in a process group of its own that is killed after `timeout` seconds; 0 means sign. Not more than AT_ONCE run at a time.
    """

    def __init__(self, setting: bool | Path, *, timeout: float = 30.0, most: int = 1024 * 1024) -> None:
        self.setting = setting
        self.timeout = timeout  # seconds
        self.most = most  # bytes of output
        self._waiting = 0
        self._slots = asyncio.Semaphore(AT_ONCE)

    @property
    def busy(self) -> bool:
        """Whether so many wait that no more should come."""
        return self._waiting >= MAX_WAITING

    async def decide(self, name: str, pem: bytes) -> AutosignDecision:
        """Return the setting's decision about a request; an unreadable list and a failing program mean no, and are logged."""
        setting = self.setting
        if isinstance(setting, bool):
            return AutosignDecision(setting, f"autosign is {str(setting).lower()}")
        kind = await asyncio.to_thread(_kind, setting)
        if kind == "program":
            return await self._run_program(setting, name, pem)
        if kind == "list":
            try:
                return decide_by_list(name, parse_patterns(await asyncio.to_thread(_read, setting)))
            except (OSError, ValueError) as err:
                log.error("Could not read %s: %s", setting, err)
                return AutosignDecision(False, f"{setting} could not be read")
        return AutosignDecision(False, f"{setting} does not exist")

    async def _run_program(self, program: Path, name: str, pem: bytes) -> AutosignDecision:
        what = f"ask {program} about {name}"
        self._waiting += 1
        try:
            async with self._slots:
                output = await run_bounded(
                    [str(program), name], timeout=self.timeout, most=self.most, environ=ENVIRONMENT, what=what, stdin=pem
                )
        except PuppetError as err:
            log.info("%s", err)
            return AutosignDecision(False, f"{program} did not agree")
        finally:
            self._waiting -= 1
        if output.strip():
            log.debug("%s said: %s", program, quoted_for_log(output.decode("utf-8", "replace"), 500))
        return AutosignDecision(True, f"{program} agreed")


def _kind(path: Path) -> str:
    if not path.is_file():
        return ""
    return "program" if os.access(path, os.X_OK) else "list"


def _read(path: Path) -> str:
    with path.open("rb") as file:
        body = file.read(MAX_LIST + 1)
    if len(body) > MAX_LIST:
        raise ValueError(f"it is larger than {MAX_LIST} bytes")
    return body.decode("utf-8", "replace")
