"""
The agent as a daemon: a small process that starts runs in child processes, which release their memory when they end.

It is not asynchronous: it only waits for signals, with a time-out. Source: protocol reference 6.6.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from shared.data import plainjson
from shared.orders import RunOrder
from shared.process.log import NOTICE
from shared.settings import AgentSettings

log = logging.getLogger("puppet.agent")

WATCHED = frozenset({signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
CANNOT_WAIT = 600.0  # seconds until a host tries again to wait for orders that has no certificate yet, or whose child was killed
SHUTDOWN_SECONDS = 60.0  # in which a run may finish its current resource and report; then it is killed


@dataclass(frozen=True, slots=True)
class WaitResult:
    """How waiting for an order has ended: with one, or with a pause in seconds after which to wait again."""

    order: RunOrder | None = None
    pause: float = 0.0

    def encoded(self) -> bytes:
        return json.dumps({"order": self.order.to_data() if self.order else None, "pause": self.pause}).encode()

    @classmethod
    def decoded(cls, text: bytes) -> WaitResult:
        data = plainjson.loads(text)
        return cls(RunOrder.of(data["order"]) if data["order"] else None, float(data["pause"]))


@dataclass(slots=True)
class DaemonActions:
    """The effects of the daemon on its surroundings; tests replace them."""

    start_run: Callable[[AgentSettings, RunOrder | None], int]  # returns the child's pid
    reload: Callable[[], AgentSettings | None]  # returns new settings when their file has changed
    reopen_logs: Callable[[], None]
    restart: Callable[[], None]  # executes this program anew
    wait: Callable[[float], int | None]  # returns a signal's number; None after that many seconds
    reap: Callable[[], int | None]  # returns the pid of a child that has ended; None when there is none
    start_waiting: Callable[[AgentSettings, str], int | None]  # returns the pid of a child that waits for an order; None: it cannot
    wait_result: Callable[[], WaitResult | None]  # returns how that child has ended; None: it was killed
    kill: Callable[[int, int], None] = os.kill
    clock: Callable[[], float] = time.monotonic


class Daemon:
    """
    The scheduler of runs.

    Between two runs a child waits for an order of the master; it ends before a run starts, so that their memory does not add up.
    """

    def __init__(self, settings: AgentSettings, actions: DaemonActions, *, splay: float = 0.0) -> None:
        self.settings = settings
        self.actions = actions
        self.child: int | None = None
        self._due = actions.clock() + splay
        self._reload_due = actions.clock() + settings.filetimeout
        self._restart_requested = False
        self._waiter: int | None = None
        self._is_waiter_told = False
        self._wait_due = actions.clock()
        self._order: RunOrder | None = None
        self._last_order = ""
        if splay:
            log.info("Sleeping for %d seconds (splay is enabled)", splay)

    def run(self) -> int:
        """Schedule runs until a signal ends the daemon; return the exit code."""
        while True:
            self._start_if_due()
            number = self.actions.wait(self._seconds_to_wait())
            if number in (signal.SIGTERM, signal.SIGINT):
                return self._stop(number)
            if number is not None:
                self._handle_signal(number)
            self._reload_settings()
            if self._restart_requested and self.child is None:
                self._stop_waiting()
                log.log(NOTICE, "Restarting")
                self.actions.restart()

    def _seconds_to_wait(self) -> float:
        now = self.actions.clock()
        due = [self._due] if self.child is None else []
        if self._may_wait:
            due.append(self._wait_due)
        if self.settings.filetimeout:
            due.append(self._reload_due)
        return max(0.0, min(due, default=now + 3600) - now)

    @property
    def _may_wait(self) -> bool:
        """Whether a child may start to wait for an order."""
        return self.settings.run_on_demand and self.child is None and self._waiter is None

    def _start_if_due(self) -> None:
        now = self.actions.clock()
        if self.child is None and (now >= self._due or self._order is not None):
            self._stop_waiting()
            order, self._order = self._order, None
            if order is not None:
                log.log(NOTICE, "Running because the master ordered it (order %s)", order.id)
                self._last_order = order.id
            self.child = self.actions.start_run(self.settings, order)
            self._due = self.actions.clock() + self.settings.runinterval
        elif self._may_wait and now >= self._wait_due:
            self._waiter = self.actions.start_waiting(self.settings, self._last_order)
            if self._waiter is None:
                self._wait_due = now + CANNOT_WAIT

    def _stop_waiting(self) -> None:
        if self._waiter is not None:
            self._is_waiter_told = True
            with suppress(ProcessLookupError):
                self.actions.kill(self._waiter, signal.SIGTERM)

    def _handle_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            while (pid := self.actions.reap()) is not None:
                if pid == self.child:
                    self.child = None
                elif pid == self._waiter:
                    self._waiter = None
                    result = self.actions.wait_result() or WaitResult(pause=0.0 if self._is_waiter_told else CANNOT_WAIT)
                    self._is_waiter_told = False
                    self._order = result.order or self._order
                    self._wait_due = self.actions.clock() + result.pause
            return
        name = signal.Signals(number).name.removeprefix("SIG")
        meaning = {signal.SIGHUP: "restart", signal.SIGUSR1: "run", signal.SIGUSR2: "reopen_logs"}[signal.Signals(number)]
        log.log(NOTICE, "Caught %s; storing %s", name, meaning)
        if number == signal.SIGHUP:
            self._restart_requested = True
        elif number == signal.SIGUSR2:
            self.actions.reopen_logs()
        elif self.child is not None:
            log.log(NOTICE, "Not triggering already-running agent")
        else:
            self._due = self.actions.clock()

    def _reload_settings(self) -> None:
        now = self.actions.clock()
        if not self.settings.filetimeout or now < self._reload_due:
            return
        self._reload_due = now + self.settings.filetimeout
        changed = self.actions.reload()
        if changed is not None:
            self._due = min(self._due, now + changed.runinterval)
            self.settings = changed
            self._stop_waiting()  # the next one waits with the new settings

    def _stop(self, number: int) -> int:
        log.log(NOTICE, "Caught %s; exiting", signal.Signals(number).name.removeprefix("SIG"))
        self._stop_waiting()
        if self.child is not None:
            self._send(self.child, signal.SIGTERM)
            deadline = self.actions.clock() + SHUTDOWN_SECONDS
            while self.child is not None and self.actions.clock() < deadline:
                if self.actions.wait(max(0.0, deadline - self.actions.clock())) == signal.SIGCHLD:
                    self._handle_signal(signal.SIGCHLD)
            if self.child is not None:
                log.warning("The run did not finish within %d seconds; killing it", SHUTDOWN_SECONDS)
                self._send(self.child, signal.SIGKILL)
        return 0

    def _send(self, pid: int, number: int) -> None:
        try:
            self.actions.kill(pid, number)
        except ProcessLookupError:
            self.child = None


def wait_for_signal(seconds: float) -> int | None:
    """Return the number of the next signal of WATCHED, which must be blocked; None after `seconds`."""
    signal_info = signal.sigtimedwait(WATCHED, seconds)
    return signal_info.si_signo if signal_info is not None else None


def reap_child() -> int | None:
    """Return the pid of a child that has ended, once for each child; None when there is none."""
    try:
        pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return pid or None
