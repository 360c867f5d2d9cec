"""
Custom facts in Ruby, resolved by a process of their own before the agent has a catalog.

It is not the run's: facts can do anything, so that it may have to be killed, and it has no types. The fact that it was resolving when
it hung or died is left out, and another process continues with the others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shared.errors import PuppetError
from shared.ruby import RubyChild, RubySettings

from ..facts.facter import FACTER_VERSION
from ..facts.ruby import RubyFactRequest, RubyFactRunner
from .environ import LOADING, environment_for_ruby
from .process import RubyReport
from .values import dump_value, load_value

log = logging.getLogger("puppet.facts")

PROGRAM = Path(__file__).with_name("program") / "facts.rb"
START_SECONDS = 60.0
LONGEST_LINE = 4096  # characters of one line in the log
STARTS = 20  # processes of one request: each but the last was ended by a fact or a file, which is then left out
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}


@dataclass(frozen=True, slots=True)
class RubyFactSettings:
    """
    The settings about facts in Ruby.

    Attributes:
        ruby: the program; its timeout is that of one file or one fact.
        logged: bytes that facts may log and print.
        setting: returns a setting by its name, in the agent's section of puppet.conf when the second argument is empty; raises
            PuppetError for one that facts may not read.
        default_provider: returns the name of the default provider of a type on the machine with these facts; None: there is none.
    """

    ruby: RubySettings
    logged: int
    setting: Callable[[str, str], Any]
    default_provider: Callable[[str, Mapping[str, Any]], str | None]


def own_ruby(settings: RubyFactSettings) -> RubyFactRunner:
    """Return the function that runs facts in Ruby by our own program."""

    async def run(request: RubyFactRequest) -> dict[str, Any]:
        facts = RubyFacts(settings, request)
        try:
            return await asyncio.to_thread(facts.values)
        except asyncio.CancelledError:
            facts.close()
            raise

    return run


@dataclass(slots=True)
class _Work:
    """The current work of Ruby: reading a file, or a fact; `deadline` in seconds of the monotonic clock."""

    kind: str
    name: str
    place: str
    began: float
    deadline: float


@dataclass(slots=True)
class RubyFacts:
    """One request, and the facts that have ended the process so far."""

    settings: RubyFactSettings
    request: RubyFactRequest
    _child: RubyChild | None = None
    _closed: bool = False
    _work: list[_Work] = field(default_factory=list)  # the innermost last
    _values: dict[str, Any] = field(default_factory=dict)  # of all facts that were found out, None too
    _skipped_files: list[str] = field(default_factory=list)
    _broken_facts: list[str] = field(default_factory=list)
    _logged: set[tuple[str, str]] = field(default_factory=set)
    _remaining: int = 0  # bytes that may still be logged

    def values(self) -> dict[str, Any]:
        """Return the facts by name. Blocks."""
        self._remaining = self.settings.logged
        for _ in range(STARTS):
            if self._closed or self._find_out():
                break
        else:
            names = ", ".join(sorted(str(path) for path in self.request.files))
            log.error("Facts in Ruby terminated their process %d times; unresolved facts are missing, of %s", STARTS, names)
        return {name: value for name, value in self._values.items() if value is not None}

    def close(self) -> None:
        """End the process, and start no other."""
        self._closed = True
        if self._child is not None:
            self._child.end()

    def _find_out(self) -> bool:
        """Return whether all facts are resolved, or cannot be; False: another process has to continue."""
        self._work.clear()
        try:
            with self._started() as child:
                self._ask(child, "setup", self._given())
                for name, file, line in self._ask(child, "load"):
                    if name not in self._values and name not in self.request.unneeded:
                        self._remaining = self.settings.logged
                        self._on_enter("fact", name, file, line)
                        self._values[name] = self._ask(child, "resolve", name)
                        self._work.clear()
                        if not child.alive:
                            return False
            return True
        except PuppetError as err:
            if self._closed:
                return True
            if not self._work:
                log.error("Could not find out facts in Ruby: %s", err)
                return True
            self._leave_out(self._work[-1], err.message)
            return False

    def _leave_out(self, work: _Work, reason: str) -> None:
        if time.monotonic() >= work.deadline:
            reason = f"it takes longer than {self.settings.ruby.timeout:g} seconds, which ruby_timeout and external_fact_timeout allow"
        if work.kind == "file":
            self._skipped_files.append(work.name)
            log.error("error while resolving custom facts in %s %s", work.name, reason)
        else:
            self._broken_facts.append(work.name)
            log.error("Error while resolving custom fact fact='%s': %s%s", work.name, reason, work.place)

    def _given(self) -> dict[str, Any]:
        request = self.request
        folders = [str(folder) for folder in dict.fromkeys(request.folders) if folder.is_dir()]
        files = {str(path) for path in request.files}
        in_python = [str(path) for folder in folders for path in Path(folder).glob("*.rb") if str(path) not in files]
        return {
            "folders": folders,
            "libraries": [str(Path(folder).parent) for folder in folders if Path(folder).name == "facter"],
            "core": request.core,
            "fallbacks": request.fallbacks,
            "external": request.external,
            "environment": request.environment,
            "skipped": [*in_python, *self._skipped_files],
            "broken": self._broken_facts,
            "debug": log.isEnabledFor(logging.DEBUG),
            "memory": self.settings.ruby.memory,
            "facter_version": FACTER_VERSION,
        }

    # --- the process

    @property
    def _start_seconds(self) -> float:
        """The seconds for Ruby to start: a slow machine does not make facts take long."""
        return max(START_SECONDS, self.settings.ruby.timeout)

    @contextmanager
    def _started(self) -> Iterator[RubyChild]:
        """Yield a new process, whose process group is killed at the end; its output becomes debug lines."""
        ours, theirs = os.pipe()
        try:
            environ = environment_for_ruby(self.request.environ, without=LOADING)
            # The longest time, as each file and fact has its own limit; and the program limits its memory itself, which is firmer.
            settings = replace(self.settings.ruby, timeout=self._start_seconds, memory=0)
            child = RubyChild(settings, PROGRAM, environ=environ, output=theirs, own_session=True)
        except PuppetError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._child = child
        ended = threading.Event()
        reader = threading.Thread(target=self._log_output, args=(ours, ended), name="output of facts", daemon=True)
        reader.start()
        try:
            if self._closed:  # before there was a process to end
                child.end()
            yield child
        finally:
            child.end()
            ended.set()
            reader.join()
            os.close(ours)

    def _log_output(self, descriptor: int, ended: threading.Event) -> None:
        """Log the output of facts, up to their limit, until it ends; a copy of the process may keep it open."""
        remaining = self.settings.logged
        while True:
            ready, _, _ = select.select([descriptor], [], [], 0.0 if ended.is_set() else 0.1)
            if not ready and ended.is_set():
                return
            text = os.read(descriptor, 1 << 16) if ready else None
            if text == b"":
                return
            if text and remaining > 0:
                for line in text[:remaining].decode("utf-8", "replace").splitlines():
                    log.debug("Facts in Ruby print: %s", line)
                remaining -= len(text)

    def _ask(self, child: RubyChild, op: str, *args: Any) -> Any:
        """Return Ruby's answer; raise PuppetError when it takes too long, ends, or answers too much or nonsense."""
        message = child.ask({"op": op, "args": dump_value(list(args))}, self._answer, self._seconds_left)
        if op == "resolve" and message.get("exhausted"):  # no descriptors or memory are left in it; the fact has its value
            child.end()
        if "value" in message:
            return load_value(message["value"])
        raise RubyReport.of(message.get("error")).error("A fact")

    def _seconds_left(self) -> float:
        return max(0.001, self._work[-1].deadline - time.monotonic()) if self._work else self._start_seconds

    # --- Ruby's questions

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["ask"] == "out_of_memory":
            raise PuppetError("it takes more memory than ruby_memory allows")
        args = load_value(message.get("args"))
        method = getattr(self, f"_on_{message['ask']}", None)
        if method is None or not isinstance(args, list):
            raise PuppetError("Ruby answered nonsense", hint=f"There is no {message['ask']}.")
        try:
            return {"value": dump_value(method(*args))}
        except PuppetError as err:
            return {"raised": 0, "message": str(err)}

    def _on_enter(self, kind: str, name: str, file: str, line: int) -> None:
        now = time.monotonic()
        place = f" (file: {file}{f', line: {line}' if line else ''})" if file else ""
        self._work.append(_Work(kind, name, place, now, now + self.settings.ruby.timeout))

    def _on_leave(self) -> None:
        if not self._work:
            raise PuppetError("Ruby answered nonsense", hint="It left a fact that it had not entered.")
        inner = self._work.pop()
        if self._work:  # the time of one fact is not that of another, which asked for it
            self._work[-1].deadline += time.monotonic() - inner.began

    def _on_log(self, level: str, text: str, _source: str) -> None:
        """Log a line: a fact's message, up to its limit, and always a failure."""
        failed = level == "failure"
        text = text[:LONGEST_LINE]
        if (level, text) in self._logged or (self._remaining <= 0 and not failed):
            return
        self._logged.add((level, text))
        log.log(_LEVELS.get(level, logging.ERROR), "%s", text)
        if not failed:
            self._remaining -= len(text)
            if self._remaining <= 0 and self._work:
                name = self._work[0].name
                log.warning("%s logs more than external_fact_output allows (%d bytes); the rest is left out", name, self.settings.logged)

    def _on_setting(self, name: str, section: str = "") -> Any:
        return self.settings.setting(name, section)

    def _on_default_provider(self, type_name: str) -> str | None:
        return self.settings.default_provider(type_name, self.request.core)
