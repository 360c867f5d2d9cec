"""The daemon's loop: when runs start, what signals do. Time is a number, children are numbers."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

from agent.cli import ordered
from agent.process.agent import RunOptions, splay_seconds
from agent.process.daemon import SHUTDOWN_SECONDS, Daemon, DaemonActions, WaitResult
from shared.orders import RunOrder
from shared.settings import AgentSettings, Conf, load


def settings(**more: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "a", "runinterval": 1800, "filetimeout": 0, **more}, conf=Conf())


@dataclass
class World:
    """
    `events`: (seconds from the start, signal, 'end' of the run, or how the child that waits for orders ends, None when it is killed);
    the last one stops the daemon.
    """

    events: list[tuple[float, Any]]
    now: float = 0.0
    started: list[float] = field(default_factory=list)
    killed: list[tuple[int, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    next_settings: list[AgentSettings | None] = field(default_factory=list)
    restarted: int = 0
    dies_when_told: bool = True
    waits: bool = False
    waited: list[tuple[float, str]] = field(default_factory=list)  # when each wait began, and the last order then
    orders: list[RunOrder | None] = field(default_factory=list)  # of each run
    results_of_killed: WaitResult | None = None
    results: list[WaitResult | None] = field(default_factory=list)

    def wait(self, seconds: float) -> int | None:
        if self.events and self.events[0][0] <= self.now + seconds:
            at, what = self.events.pop(0)
            self.now = max(self.now, at)
            if what == "end":
                self.finished.append(100 + len(self.started))
                return signal.SIGCHLD
            if what is None or isinstance(what, WaitResult):
                self.finished.append(1000 + len(self.waited))
                self.results.append(what)
                return signal.SIGCHLD
            return int(what)
        self.now += seconds
        assert self.now < 1e6, "nothing ends this daemon"
        return None

    def start(self, current: AgentSettings, order: RunOrder | None) -> int:
        self.started.append(self.now)
        self.orders.append(order)
        return 100 + len(self.started)

    def start_waiting(self, current: AgentSettings, last: str) -> int | None:
        if not self.waits:
            return None
        self.waited.append((self.now, last))
        return 1000 + len(self.waited)

    def kill(self, pid: int, number: int) -> None:
        if pid > 1000:
            self.events.insert(0, (self.now, self.results_of_killed))
            self.results_of_killed = None
            return
        self.killed.append((pid, number))
        if self.dies_when_told or number == signal.SIGKILL:
            self.events.insert(0, (self.now + 1, "end"))

    def actions(self) -> DaemonActions:
        return DaemonActions(
            start_run=self.start,
            start_waiting=self.start_waiting,
            wait_result=lambda: self.results.pop(0),
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


def test_between_two_runs_a_child_waits_for_an_order_which_starts_a_run_at_once() -> None:
    order = RunOrder("1", noop=True)
    world = World([(60, "end"), (100, WaitResult(order)), (160, "end"), (200, signal.SIGTERM)], waits=True)
    run(world)
    assert (world.started, world.orders) == ([0, 100], [None, order])
    assert world.waited == [(60, ""), (160, "1")]


def test_a_child_that_waits_ends_before_a_run_and_an_order_that_it_had_then_is_carried_out_afterwards() -> None:
    order = RunOrder("1")
    world = World([(60, "end"), (1860, "end"), (1900, "end"), (1901, signal.SIGTERM)], waits=True)
    world.results_of_killed = WaitResult(order)
    run(world)
    assert (world.started, world.orders) == ([0, 1800, 1860], [None, None, order])


def test_a_master_that_takes_no_agents_that_wait_is_asked_again_late() -> None:
    world = World([(60, "end"), (61, WaitResult(pause=1000.0)), (1100, signal.SIGTERM)], waits=True)
    run(world)
    assert world.waited == [(60, ""), (1061, "")]


def test_a_child_that_somebody_kills_is_not_started_again_at_once() -> None:
    world = World([(60, "end"), (61, None), (700, signal.SIGTERM)], waits=True)
    run(world)
    assert world.waited == [(60, ""), (661, "")]


def test_an_agent_that_shall_not_wait_does_not() -> None:
    world = World([(60, "end"), (100, signal.SIGTERM)], waits=True)
    run(world, settings(run_on_demand=False))
    assert world.waited == []


def test_changed_settings_are_those_of_the_next_wait() -> None:
    world = World([(5, "end"), (60, signal.SIGTERM)], waits=True, next_settings=[None, settings(filetimeout=15)])
    run(world, settings(filetimeout=15))
    assert [at for at, _ in world.waited] == [5, 30]


def test_an_order_can_ask_for_less_than_the_settings_say_and_ends_no_noop_mode() -> None:
    current, options = ordered(settings(noop=True), RunOptions(), RunOrder("1", tags=("a",), environment="test"))
    assert (current.noop, current.tags, current.environment, current.job_id) == (True, ("a",), "test", "1")
    assert options.environment_given
    current, options = ordered(settings(tags="b"), RunOptions(), RunOrder("2", noop=True))
    assert (current.noop, current.tags, current.environment, options.environment_given) == (True, ("b",), "production", False)
