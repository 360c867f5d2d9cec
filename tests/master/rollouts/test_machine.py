"""The state machine of rollouts: what one event does, and what holds whatever happens in whatever order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from master.rollouts import machine
from master.rollouts.machine import (
    Announced,
    BadNodesLimit,
    CatalogSent,
    CheckAnswered,
    LinkSwitched,
    Rollout,
    RolloutCommand,
    RolloutEvent,
    RolloutPlan,
    RunReported,
    StoredRollout,
    advance,
    allowed_commands,
    begin,
    due,
)
from master.rollouts.storage import state_data, state_of
from master.rollouts.waves import Wave
from shared.data import plainjson

OLD, NEW = "old", "new"
WAVES = (
    Wave("canary", query="nodes { }", members=frozenset({"a"})),
    Wave("few", query="nodes { }", members=frozenset({"b", "c"})),
    Wave("all", 100.0),
)
PLAN = RolloutPlan("production", OLD, NEW, WAVES, wait=60, interval=1000)
NODES = ("a", "b", "c", "d", "e")


def started(**more: object) -> Rollout:
    return begin(replace(PLAN, **more), NODES, 1000.0)  # type: ignore[arg-type]


def after(rollout: Rollout, *events: RolloutEvent, seconds: float = 1.0) -> Rollout:
    return advance(rollout, events, rollout.at + seconds)


def good(*nodes: str) -> list[RolloutEvent]:
    return [RunReported(node, NEW, changed=True) for node in nodes]


def test_a_wave_opens_when_all_nodes_have_reported_and_the_time_is_over() -> None:
    rollout = started()
    assert [rollout.has_new_version(node) for node in NODES] == [True, False, False, False, False]
    rollout = after(rollout, *good("a"))
    assert rollout.step == 0 and rollout.remaining == 59
    rollout = after(rollout, seconds=59)
    assert rollout.step == 1 and rollout.has_new_version("c") and not rollout.has_new_version("d")
    rollout = after(rollout, *good("b"), seconds=100)
    assert rollout.step == 1, "c has not reported"
    rollout = after(rollout, *good("c"))
    assert rollout.step == 2
    rollout = after(after(rollout, *good("d", "e")), seconds=60)
    assert rollout.status == "completing" and due(rollout).switch
    rollout = after(rollout, LinkSwitched())
    assert rollout.status == "completed" and not rollout.has_new_version("a") and due(rollout).announce
    assert not due(after(rollout, Announced("completed"))).announce


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([RunReported("a", NEW, failed=True, message="File[/x]: no")], "failed"),
        ([RunReported("a", NEW, changed=True, unforeseen=("Service[x] ensure",))], "unforeseen"),
    ],
)
@pytest.mark.parametrize(("rolls_back", "end"), [(False, "stopped"), (True, "rolled-back")])
def test_a_bad_node_stops_the_rollout(events: list[RolloutEvent], status: str, rolls_back: bool, end: str) -> None:
    rollout = after(started(rolls_back=rolls_back), *events)
    assert (rollout.status, rollout.nodes["a"].status) == (end, status)
    assert rollout.has_new_version("a") is not rolls_back and not rollout.has_new_version("b")
    assert due(rollout).announce and rollout.reason == "1 bad node, 0 allowed (wave canary)"


def test_after_a_stop_no_further_node_gets_the_new_version_and_those_that_have_it_keep_it() -> None:
    rollout = after(started(wait=0), *good("a"))
    rollout = after(rollout, RunReported("b", NEW, failed=True))
    assert rollout.status == "stopped"
    assert [rollout.has_new_version(node) for node in NODES] == [True, True, False, False, False], "c had not run"
    late = after(rollout, CatalogSent("c", NEW))
    assert late.has_new_version("c"), "its run had begun before"
    assert after(rollout, RolloutCommand("resume")).has_new_version("c")
    simulated = after(started(noop_first=True), RunReported("a", NEW, noop=True, unforeseen=("File[/x] mode",)))
    assert simulated.status == "stopped" and not simulated.has_new_version("a")


def test_a_node_that_stops_to_report_stops_the_rollout_also_after_a_good_run() -> None:
    rollout = after(started(wait=10_000, interval=100), *good("a"))
    for _ in range(2):
        rollout = after(rollout, seconds=100)
    assert rollout.status == "progressing"
    rollout = after(rollout, seconds=2)
    assert (rollout.status, rollout.nodes["a"].status) == ("stopped", "silent")


def test_time_in_which_nobody_watched_or_a_clock_that_jumps_makes_no_node_silent() -> None:
    rollout = after(started(), seconds=1_000_000)
    assert rollout.status == "progressing" and rollout.elapsed == machine.MAX_GAP
    assert after(rollout, seconds=-5000).elapsed == machine.MAX_GAP


def test_nodes_that_failed_or_were_silent_before_do_not_count() -> None:
    rollout = begin(replace(PLAN, wait=0), NODES, 0.0, failing=["a"], silent=["b"])
    rollout = after(rollout, RunReported("a", NEW, failed=True))
    assert rollout.step == 1 and rollout.nodes["a"].status == "failed" and rollout.pending == 1, "only c is waited for"
    rollout = after(rollout, CatalogSent("b", NEW))
    assert rollout.pending == 2, "b is back"
    assert after(rollout, RunReported("b", NEW, failed=True)).status == "stopped"


def test_a_node_whose_old_version_was_failing_is_known_by_its_reports_during_the_rollout() -> None:
    rollout = after(started(wait=0), RunReported("d", OLD, failed=True), RunReported("e", OLD, changes=("Exec[x] returns",)))
    rollout = after(after(rollout, *good("a")), *good("b", "c"))
    rollout = after(rollout, RunReported("d", NEW, failed=True), RunReported("e", NEW, unforeseen=("Exec[x] returns",)))
    assert rollout.status == "completing" and rollout.bad == 0


def test_limits_are_numbers_or_shares_of_the_nodes_that_have_the_new_version() -> None:
    failed = RunReported("a", NEW, failed=True)
    assert after(started(max_failed=BadNodesLimit(1)), failed).status == "progressing"
    assert after(started(max_failed=BadNodesLimit(percent=50)), failed).status == "stopped"
    assert after(started(max_failed=BadNodesLimit(percent=100)), failed).status == "progressing"


def test_resuming_accepts_the_bad_nodes() -> None:
    rollout = after(started(wait=0), RunReported("a", NEW, failed=True))
    rollout = after(rollout, RolloutCommand("resume"))
    assert (rollout.status, rollout.step) == ("progressing", 1)
    rollout = after(rollout, RunReported("a", NEW, failed=True))
    assert rollout.status == "progressing", "it is known to fail"
    assert after(rollout, RunReported("b", NEW, failed=True)).status == "stopped"


def test_a_paused_rollout_opens_no_wave_and_still_stops() -> None:
    rollout = after(started(wait=0), RolloutCommand("pause", "lunch"))
    rollout = after(rollout, *good("a"), seconds=100)
    assert (rollout.status, rollout.step, rollout.reason) == ("paused", 0, "lunch")
    assert after(rollout, RolloutCommand("resume")).step == 1
    assert after(rollout, RunReported("a", NEW, failed=True)).status == "stopped"


def test_an_aborted_rollout_gives_all_nodes_the_version_of_the_link() -> None:
    rollout = after(started(), RolloutCommand("abort", "wrong"))
    assert rollout.status == "aborted" and not any(map(rollout.has_new_version, NODES))
    assert after(rollout, RolloutCommand("resume")).status == "aborted"


def test_a_program_of_the_site_is_asked_before_the_next_wave() -> None:
    rollout = after(started(wait=0, check="/bin/ok"), *good("a"))
    assert rollout.step == 0 and due(rollout).check
    assert after(rollout, CheckAnswered(0, True)).step == 1
    stopped = after(rollout, CheckAnswered(0, False, "too slow"))
    assert stopped.status == "stopped" and stopped.reason == "the check failed: too slow (wave canary)"
    assert due(after(stopped, RolloutCommand("resume"))).check, "it is asked again"
    assert after(rollout, CheckAnswered(1, False)).status == "progressing", "of another step"


def test_with_noop_first_each_wave_simulates_before_it_changes() -> None:
    rollout = started(wait=0, noop_first=True)
    assert rollout.is_noop("a") and not rollout.is_noop("b")
    simulated = RunReported("a", NEW, changed=True, noop=True, unforeseen=("File[/x] mode",))
    assert after(rollout, simulated).nodes["a"].status == "unforeseen"
    rollout = after(rollout, replace(simulated, unforeseen=()))
    assert rollout.step_name == "canary" and not rollout.is_noop("a") and rollout.nodes["a"].status == "waiting"
    assert after(rollout, replace(simulated, unforeseen=())).nodes["a"].status == "waiting", "a run from before"
    rollout = after(rollout, *good("a"))
    assert rollout.step_name == "few (noop)" and rollout.has_new_version("a") and not rollout.is_noop("a")


def test_waves_without_nodes_are_passed_at_once() -> None:
    waves = (Wave("none", query="nodes { }"), Wave("1%", 0.001), Wave("all", 100.0))
    assert begin(replace(PLAN, waves=waves, check="/bin/ok"), NODES, 0.0).step_name == "all"


def test_a_node_that_joins_is_waited_for() -> None:
    rollout = after(started(wait=0), *good("a"), CatalogSent("b", NEW))
    waves = replace(rollout, step=2)
    rollout = after(waves, CatalogSent("joined", NEW), *good("b", "c", "d", "e"))
    assert rollout.status == "progressing" and rollout.pending == 1
    assert after(rollout, *good("joined")).status == "completing"


NODE = strategies.sampled_from([*NODES, "joined"])
VERSION = strategies.sampled_from([OLD, NEW])


class Rollouts(RuleBasedStateMachine):
    """Anything at any time, with a restart from the disk and a jump of the clock in between."""

    @initialize(
        rolls_back=strategies.booleans(), noop=strategies.booleans(), check=strategies.sampled_from(["", "/bin/ok"]),
        limit=strategies.sampled_from([BadNodesLimit(), BadNodesLimit(1), BadNodesLimit(percent=40)]),
        absent=strategies.sets(strategies.sampled_from(NODES)),
    )  # fmt: skip
    def start(self, rolls_back: bool, noop: bool, check: str, limit: BadNodesLimit, absent: set[str]) -> None:
        plan = replace(PLAN, rolls_back=rolls_back, noop_first=noop, check=check, max_failed=limit)
        self.take(begin(plan, NODES, 1000.0, silent=absent))

    def take(self, rollout: Rollout) -> None:
        self.rollout = rollout

    def step(self, *events: RolloutEvent, seconds: float = 1.0) -> None:
        before, self.rollout = self.rollout, advance(self.rollout, events, self.rollout.at + seconds)
        assert self.rollout.elapsed >= before.elapsed
        assert self.rollout.step >= before.step
        if self.rollout.step > before.step:
            assert before.status in ("progressing", "paused", "stopped"), "nothing opens by itself in another state"
            assert before.status == "progressing" or any(isinstance(event, RolloutCommand) for event in events)
        if not before.is_active:
            assert replace(self.rollout, announced="", at=0, elapsed=0) == replace(before, announced="", at=0, elapsed=0), (
                "an end is an end"
            )

    @rule(node=NODE, version=VERSION)
    def run_begins(self, node: str, version: str) -> None:
        self.step(CatalogSent(node, version))

    @rule(node=NODE, version=VERSION, changed=strategies.booleans(), noop=strategies.booleans(), times=strategies.integers(1, 2))
    def run_ends_well(self, node: str, version: str, changed: bool, noop: bool, times: int) -> None:
        self.step(*[RunReported(node, version, changed=changed, noop=noop)] * times)

    @rule(seconds=strategies.sampled_from([1.0, 70.0]))
    def all_that_may_run_well(self, seconds: float) -> None:
        nodes = [node for node in NODES if self.rollout.has_new_version(node)]
        self.step(*(RunReported(node, NEW, changed=True, noop=self.rollout.is_noop(node)) for node in nodes), seconds=seconds)

    @rule(node=NODE, version=VERSION, unforeseen=strategies.booleans())
    def run_is_bad(self, node: str, version: str, unforeseen: bool) -> None:
        before = self.rollout
        self.step(RunReported(node, version, failed=not unforeseen, unforeseen=("File[/x] mode",) if unforeseen else ()))
        if version == OLD or not before.is_open(node):
            assert self.rollout.bad <= before.bad or self.rollout.step > before.step, "a run without the new version says nothing about it"

    @rule(node=NODE, version=VERSION)
    def catalog_fails(self, node: str, version: str) -> None:
        self.step(RunReported(node, version, failed=True, message="no"))

    @rule(seconds=strategies.sampled_from([-5000.0, 0.0, 30.0, 61.0, 119.0, 10**6, 10**6]))
    def time_passes(self, seconds: float) -> None:
        self.step(seconds=seconds)

    @rule(action=strategies.sampled_from(["pause", "resume", "abort", "other"]))
    def command(self, action: str) -> None:
        is_allowed, before = action in allowed_commands(self.rollout), self.rollout
        self.step(RolloutCommand(action))
        assert is_allowed or before.status in ("progressing",) or self.rollout.status == before.status

    @precondition(lambda self: due(self.rollout).check)
    @rule(passed=strategies.booleans())
    def check_answers(self, passed: bool) -> None:
        self.step(CheckAnswered(self.rollout.step, passed))

    @precondition(lambda self: due(self.rollout).switch)
    @rule(error=strategies.sampled_from(["", "denied"]))
    def link_is_switched(self, error: str) -> None:
        self.step(LinkSwitched(error))
        assert self.rollout.status == ("completing" if error else "completed")

    @precondition(lambda self: due(self.rollout).announce)
    @rule()
    def people_are_told(self) -> None:
        self.step(Announced(self.rollout.status))
        assert not due(self.rollout).announce

    @invariant()
    def no_node_of_a_closed_wave_has_the_new_version(self) -> None:
        if not hasattr(self, "rollout"):
            return
        rollout = self.rollout
        for name in (*NODES, "joined", "stranger"):
            is_open = rollout.is_active and rollout.wave_of(name) <= rollout.current.wave
            assert rollout.has_new_version(name) == is_open or (rollout.status == "stopped" and is_open)
            assert not rollout.is_noop(name) or is_open or not rollout.is_active
        assert all(node.wave <= rollout.current.wave for node in rollout.nodes.values() if node.touched)
        touched = [node for node in rollout.nodes.values() if node.status in ("running", "good", "changed", "failed", "unforeseen")]
        assert all(node.wave <= rollout.current.wave for node in touched)
        if rollout.status in ("progressing", "paused"):
            assert rollout.bad <= rollout.plan.max_failed.of(sum(1 for _ in rollout.open_nodes())), "a limit that is passed stops"
        if rollout.status in ("completing", "completed"):
            assert rollout.step == len(rollout.plan.steps) - 1


class RestartedRollouts(Rollouts):
    def step(self, *events: RolloutEvent, seconds: float = 1.0) -> None:
        super().step(*events, seconds=seconds)
        again = state_of(plainjson.loads(plainjson.dumps(state_data(StoredRollout(self.rollout, 7)))))
        assert again == StoredRollout(self.rollout, 7), "a restart finds the same"
        self.rollout = again.rollout


@pytest.mark.slow
def test_whatever_happens_no_wave_opens_that_must_not() -> None:
    run_state_machine_as_test(RestartedRollouts, settings=settings(max_examples=80, stateful_step_count=25, deadline=None))
