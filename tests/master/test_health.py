"""What the services' states follow from, and what is said of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from master.observability.health import COMPILING, Condition, Health, worst
from master.observability.metrics import Metrics
from master.service.conditions import write_problem
from shared.errors import PuppetError
from tests.support.waiting import turns


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def said(*problems: str | Exception) -> Callable[[], Awaitable[str]]:
    """One answer after another."""
    answers = iter(problems)

    async def problem() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return problem


def disk(*problems: str | Exception) -> Condition:
    return Condition("disk", "The disk is full", ("ca",), said(*problems))


async def test_services_start_until_somebody_has_looked_and_others_are_not_touched() -> None:
    health, condition = Health(), disk("", "/secret/path", "")
    health.add([condition])
    assert (health.state("ca"), health.state("server"), health.state("status-service")) == ("starting", "running", "running")
    for state, alerts in (("running", []), ("error", [("The disk is full", "error")]), ("running", [])):
        await health.check(condition)
        assert (health.state("ca"), health.alerts("ca"), health.state("server")) == (state, alerts, "running")


async def test_what_is_wrong_and_when_it_is_over_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    health, condition = Health(), disk("", "/a is full", "/a is full", PuppetError("/b is full"), "", "")
    health.add([condition])
    with caplog.at_level(logging.INFO, "puppet"):
        for _ in range(6):
            await health.check(condition)
    assert [record.getMessage() for record in caplog.records] == [
        "The disk is full: /a is full",
        "The disk is full: /b is full",
        "Recovered: The disk is full",
    ]


async def test_a_look_that_fails_unforeseen_is_an_error_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    health, condition = Health(), disk(ValueError("odd"), "")
    health.add([condition])
    await health.check(condition)
    assert health.state("ca") == "error"
    assert "Traceback" in caplog.text
    await health.check(condition)
    assert health.state("ca") == "running"


async def test_a_look_that_hangs_makes_the_state_unknown_and_delays_no_other() -> None:
    clock, release = Clock(), asyncio.Event()
    health = Health(every=0.0, patience=60.0, clock=clock)
    looks = {"hangs": 0, "goes on": 0}

    async def hanging() -> str:
        looks["hangs"] += 1
        if looks["hangs"] > 1:
            await release.wait()
        return ""

    async def going_on() -> str:
        looks["goes on"] += 1
        return ""

    health.add([Condition("hangs", "Hangs", ("ca",), hanging), Condition("goes on", "Goes on", ("server",), going_on)])
    watching = asyncio.create_task(health.watch())
    await turns(50)
    clock.now += 61
    before = looks["goes on"]
    await turns(50)
    assert (health.state("ca"), health.state("server")) == ("unknown", "running")
    assert looks["hangs"] == 2 and looks["goes on"] > before
    release.set()
    await turns(50)
    assert health.state("ca") == "running"
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_what_does_not_hold_is_looked_at_again_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            raise asyncio.CancelledError  # which ends the watch

    monkeypatch.setattr("master.observability.health.asyncio.sleep", pause)
    health = Health()
    health.add([disk("", "/a is full", "/a is full", "")])
    await health.watch()
    assert pauses == [10.0, 2.0, 2.0, 10.0]


async def test_what_stops_no_service_is_an_alert_of_the_status_service() -> None:
    health = Health()
    condition = Condition("reports", "Reports cannot be stored", (), said("/var is full"))
    health.add([condition])
    await health.check(condition)
    assert [health.state(each) for each in ("server", "status-service")] == ["running", "running"]
    assert health.alerts("status-service") == [("Reports cannot be stored", "warning")]
    assert health.alerts("server") == []


async def test_services_and_conditions_are_in_the_metrics() -> None:
    health, metrics = Health(), Metrics()
    condition = Condition("compiling", "No catalog can be compiled", COMPILING, said("broken"))
    health.add([condition, disk("")])
    health.describe(metrics)
    await health.check(condition)
    lines = metrics.text().splitlines()
    for line in ('puppet_service_running{service="server"} 0', 'puppet_service_running{service="status-service"} 1'):
        assert line in lines
    for line in ('puppet_condition_met{condition="compiling"} 0', 'puppet_condition_met{condition="disk"} 0'):
        assert line in lines


@pytest.mark.parametrize(
    ("states", "all_together"),
    [
        ([], "running"),
        (["running", "running"], "running"),
        (["running", "starting"], "starting"),
        (["stopping", "starting"], "stopping"),
        (["starting", "unknown"], "unknown"),
        (["unknown", "error", "running"], "error"),
    ],
)
def test_the_worst_state_is_that_of_all_together(states: list[str], all_together: str) -> None:
    assert worst(states) == all_together  # type: ignore[arg-type]


def test_a_folder_can_be_written_to_or_made_unless_it_is_something_else(tmp_path: Path) -> None:
    assert write_problem(tmp_path) == ""
    assert write_problem(tmp_path / "to" / "be" / "made") == ""
    (tmp_path / "file").write_text("")
    assert "file" in write_problem(tmp_path / "file" / "below")
    assert write_problem(Path("/proc/sys")) != ""


def test_a_disk_without_room_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("master.service.conditions.LEAST_FREE", 2**70)
    assert write_problem(tmp_path) == f"the disk of {tmp_path} is full"
    monkeypatch.undo()
    monkeypatch.setattr("master.service.conditions.LEAST_FILES", 2**70)
    assert write_problem(tmp_path) in ("", f"the disk of {tmp_path} takes no more files")
