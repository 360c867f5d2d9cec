"""A fleet of 1,000 nodes in memory, a master that restarts all the time, and changes that are good, break nodes, or do too much."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from master.rollouts.machine import (
    BadNodesLimit,
    LinkSwitched,
    Rollout,
    RolloutCommand,
    RolloutPlan,
    StoredRollout,
    advance,
    begin,
    due,
)
from master.rollouts.prediction import Prediction, prediction_of, run_reported
from master.rollouts.status import status_of
from master.rollouts.storage import state_data, state_of
from master.rollouts.waves import parse_waves, wave_of
from shared.data import plainjson
from shared.models.report import Report
from tests.support.preview_results import change, result

OLD, NEW = "old", "new"
NAMES = [f"node{number}.example.com" for number in range(1000)]
WAVES = parse_waves("1%; 10%; 50%; 100%")
MINUTE, INTERVAL = 60.0, 1800.0


def report(node: str, *, failed: bool = False, changes: Collection[tuple[str, str]] = ()) -> Report:
    """Return the report of a run that changed these properties, or in which the last of them failed."""
    statuses: dict[str, Any] = {}
    for ref, attribute in changes:
        kind, _, rest = ref.partition("[")
        event = {"property": attribute, "status": "failure" if failed else "success", "message": "no such user" if failed else "changed"}
        statuses[ref] = {
            "title": rest[:-1], "resource": ref, "resource_type": kind, "failed": failed, "changed": not failed, "events": [event],
            "containment_path": ["Stage[main]", ref],
        }  # fmt: skip
    status = "failed" if failed else "changed" if changes else "unchanged"
    return Report.from_data({"host": node, "environment": "production", "status": status, "resource_statuses": statuses})


@dataclass
class Fleet:
    """Nodes that run every 30 minutes, spread over these, and the rollout that they are part of."""

    plan: RolloutPlan
    prediction: Prediction | None = None
    breaks: Callable[[str], bool] = lambda node: False
    extra: Callable[[str], bool] = lambda node: False
    dies: Callable[[str], bool] = lambda node: False
    versions: dict[str, str] = field(default_factory=lambda: dict.fromkeys(NAMES, OLD))
    now: float = 1_000_000.0

    def __post_init__(self) -> None:
        self.rollout = begin(self.plan, NAMES, self.now)

    def pass_minute(self) -> None:
        self.now += MINUTE
        minute = int(self.now / MINUTE) % 30
        events = [event for number, node in enumerate(NAMES) if number % 30 == minute for event in self.run(node)]
        self.rollout = advance(self.rollout, events, self.now)
        if due(self.rollout).switch:
            self.rollout = advance(self.rollout, [LinkSwitched()], self.now)
        # The master is killed, and another one finds the state.
        self.rollout = state_of(plainjson.loads(plainjson.dumps(state_data(StoredRollout(self.rollout, 1))))).rollout

    def run(self, node: str) -> list[Any]:
        before = self.versions[node]
        if before == NEW and self.dies(node):
            return []
        version = NEW if self.rollout.status == "completed" or self.rollout.has_new_version(node) else OLD
        self.versions[node] = version
        changes = [("File[/etc/motd]", "content")] if before != version else []
        if changes and version == NEW and self.extra(node):
            changes.append(("Service[cron]", "ensure"))
        failed = version == NEW and self.breaks(node)
        return [run_reported(report(node, failed=failed, changes=changes or [("User[web]", "uid")] * failed), version, self.prediction)]

    def run_until(self, end: Callable[[Rollout], bool], hours: float) -> Rollout:
        for _ in range(int(hours * 60)):
            self.pass_minute()
            if end(self.rollout):
                return self.rollout
        raise AssertionError(f"still {self.rollout.status}, wave {self.rollout.step_name}, {self.rollout.reason}")

    @property
    def touched(self) -> set[str]:
        return {node for node, version in self.versions.items() if version == NEW}


def in_waves_up_to(wave: int) -> set[str]:
    return {node for node in NAMES if wave_of(WAVES, node) <= wave}


def foreseen() -> Prediction:
    preview = result(dict.fromkeys(NAMES, "changed"), [change("File[/etc/motd]", NAMES, parameter="content")])
    return Prediction.of(prediction_of(NEW, preview))


PLAN = RolloutPlan("production", OLD, NEW, WAVES, ref="main", wait=INTERVAL, interval=INTERVAL)


def is_over(rollout: Rollout) -> bool:
    return rollout.status not in ("progressing", "paused", "completing")


@pytest.mark.slow
def test_a_good_change_reaches_all_nodes_wave_by_wave() -> None:
    fleet = Fleet(PLAN, foreseen())
    for wave in range(4):
        fleet.run_until(lambda rollout, wave=wave: rollout.current.wave > wave or is_over(rollout), hours=1.1)  # type: ignore[misc]
        assert fleet.touched == in_waves_up_to(wave)
    assert fleet.rollout.status == "completed"
    assert [wave["changed"] for wave in status_of(fleet.rollout)["waves"]] == [wave["nodes"] for wave in status_of(fleet.rollout)["waves"]]


@pytest.mark.slow
@pytest.mark.parametrize("rolls_back", [False, True])
def test_a_change_that_breaks_a_few_nodes_stops_in_the_first_wave_that_has_one(rolls_back: bool) -> None:
    broken = set(NAMES[7::33])
    first = min(wave_of(WAVES, node) for node in broken)
    fleet = Fleet(replace(PLAN, rolls_back=rolls_back), foreseen(), breaks=broken.__contains__)
    rollout = fleet.run_until(is_over, hours=3)
    assert rollout.status == ("rolled-back" if rolls_back else "stopped") and rollout.current.wave == first
    assert fleet.touched <= in_waves_up_to(first), "no other wave is touched"
    touched = fleet.touched
    for _ in range(60):
        fleet.pass_minute()
    assert fleet.touched == (set() if rolls_back else touched)
    (problem,) = status_of(rollout)["problems"]
    assert problem["message"] == "File[/etc/motd]: no such user" and set(problem["nodes"]) <= broken


@pytest.mark.slow
def test_a_change_that_does_more_than_foreseen_is_stopped_although_all_runs_are_green() -> None:
    fleet = Fleet(PLAN, foreseen(), extra=lambda node: node.endswith("7.example.com"))
    rollout = fleet.run_until(is_over, hours=3)
    assert rollout.status == "stopped" and fleet.touched <= in_waves_up_to(rollout.current.wave) and rollout.current.wave < 2
    assert status_of(rollout)["problems"][0]["message"] == "Service[cron] ensure"
    assert not any(node.status == "failed" for node in rollout.nodes.values())


@pytest.mark.slow
def test_a_change_after_which_agents_fall_silent_is_stopped() -> None:
    fleet = Fleet(replace(PLAN, wait=3 * INTERVAL), foreseen(), dies=lambda node: True)
    rollout = fleet.run_until(is_over, hours=2)
    assert rollout.status == "stopped" and fleet.touched <= in_waves_up_to(0)
    assert {node.status for _, node in rollout.open_nodes()} <= {"silent", "changed"}


@pytest.mark.slow
def test_a_limit_lets_a_rollout_go_on_with_a_few_broken_nodes_and_resuming_with_more() -> None:
    broken = set(NAMES[7::33])
    fleet = Fleet(replace(PLAN, max_failed=BadNodesLimit(percent=10)), foreseen(), breaks=broken.__contains__)
    assert fleet.run_until(is_over, hours=6).status == "completed"
    fleet = Fleet(PLAN, foreseen(), breaks=broken.__contains__)
    while fleet.run_until(is_over, hours=6).status == "stopped":
        fleet.rollout = advance(fleet.rollout, [RolloutCommand("resume")], fleet.now)
    assert fleet.rollout.status == "completed" and fleet.touched == set(NAMES)
