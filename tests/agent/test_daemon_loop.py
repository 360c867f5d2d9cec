"""The daemon's loop: when runs start, what signals do. Time is a number, children are numbers."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

from agent.process.agent import splay_seconds
from agent.process.daemon import SHUTDOWN_SECONDS, Daemon, DaemonActions
from shared.settings import AgentSettings, Conf, load


def settings(**more: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "a", "runinterval": 1800, "filetimeout": 0, **more}, conf=Conf())


@dataclass
class World:
    """`events`: (seconds from the start, signal or 'end' of the child); the last one stops the daemon."""

    events: list[tuple[float, Any]]
    now: float = 0.0
    started: list[float] = field(default_factory=list)
    killed: list[tuple[int, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    next_settings: list[AgentSettings | None] = field(default_factory=list)
    restarted: int = 0
    dies_when_told: bool = True

    def wait(self, seconds: float) -> int | None:
        if self.events and self.events[0][0] <= self.now + seconds:
            at, what = self.events.pop(0)
            self.now = max(self.now, at)
            if what == "end":
                self.finished.append(100 + len(self.started))
                return signal.SIGCHLD
            return int(what)
        self.now += seconds
        assert self.now < 1e6, "nothing ends this daemon"
        return None

    def start(self, current: AgentSettings) -> int:
        self.started.append(self.now)
        return 100 + len(self.started)

    def kill(self, pid: int, number: int) -> None:
        self.killed.append((pid, number))
        if self.dies_when_told or number == signal.SIGKILL:
            self.events.insert(0, (self.now + 1, "end"))

    def actions(self) -> DaemonActions:
        return DaemonActions(
            start_run=self.start,
            reload=lambda: self.next_settings.pop(0) if self.next_settings else None,
            reopen_logs=lambda: self.said.append("reopened"),
            restart=self._restart,
            wait=self.wait,
            reap=lambda: self.finished.pop(0) if self.finished else None,
            kill=self.kill,
            clock=lambda: self.now,
        )

    def _restart(self) -> None:
        self.restarted += 1
        self.events = [(self.now, signal.SIGTERM)]


def run(world: World, current: AgentSettings | None = None, splay: float = 0.0) -> int:
    return Daemon(current or settings(), world.actions(), splay=splay).run()


def test_runs_start_at_once_and_then_every_runinterval() -> None:
    world = World([(60, "end"), (1860, "end"), (3660, "end"), (3700, signal.SIGTERM)])
    assert run(world) == 0
    assert world.started == [0, 1800, 3600]


def test_a_run_that_is_still_on_is_not_doubled() -> None:
    world = World([(4000, "end"), (4100, "end"), (4101, signal.SIGTERM)])
    run(world)
    assert world.started == [0, 4000]


def test_splay_puts_the_first_run_off() -> None:
    world = World([(700, signal.SIGINT)])
    run(world, splay=600)
    assert world.started == [600]
    assert splay_seconds(settings(splay=True, splaylimit=100), lambda: 0.25) == 25
    assert splay_seconds(settings(), lambda: 0.25) == 0


def test_usr1_starts_a_run_now_unless_one_is_on() -> None:
    world = World([(10, signal.SIGUSR1), (60, "end"), (100, signal.SIGUSR1), (110, "end"), (111, signal.SIGTERM)])
    run(world)
    assert world.started == [0, 100]


def test_usr2_reopens_the_logs() -> None:
    world = World([(5, "end"), (10, signal.SIGUSR2), (20, signal.SIGTERM)])
    run(world)
    assert world.said == ["reopened"]


def test_hup_restarts_but_only_after_the_run() -> None:
    world = World([(10, signal.SIGHUP), (60, "end")])
    run(world)
    assert world.restarted == 1
    assert world.now == 60


def test_term_tells_the_run_to_end_and_waits_for_it() -> None:
    world = World([(10, signal.SIGTERM)])
    assert run(world) == 0
    assert world.killed == [(101, signal.SIGTERM)]
    assert world.now == 11


def test_a_run_that_does_not_end_is_killed() -> None:
    world = World([(10, signal.SIGTERM)], dies_when_told=False)
    run(world)
    assert world.killed == [(101, signal.SIGTERM), (101, signal.SIGKILL)]
    assert world.now == 10 + SHUTDOWN_SECONDS


def test_changed_settings_apply_without_a_restart() -> None:
    world = World(
        [(5, "end"), (150, "end"), (240, "end"), (250, signal.SIGTERM)], next_settings=[None, settings(runinterval=100, filetimeout=15)]
    )
    run(world, settings(filetimeout=15))
    assert world.started[:3] == [0, 130, 230]


def test_no_file_is_looked_at_when_filetimeout_is_0() -> None:
    world = World([(5, "end"), (500, signal.SIGTERM)], next_settings=[settings(runinterval=10)])
    run(world)
    assert world.started == [0]
