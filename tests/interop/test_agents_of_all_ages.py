"""The agents of Puppet 3.8, 5.5 and 8, unmodified, against our master: what every one of them does on each run."""

from __future__ import annotations

import pytest

from tests.interop.peers import RELEASES, OtherAgent, Release, agent_of
from tests.interop.stage import reports_of, stage_of
from tests.processes import MasterProcess

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(params=RELEASES, ids=lambda each: each.version)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    if reason := found.why_not():
        pytest.skip(reason)
    return found


@pytest.fixture
def agent(running: MasterProcess, release: Release) -> OtherAgent:
    return agent_of(running, release)


def test_a_first_run_changes_and_a_second_has_nothing_to_do(running: MasterProcess, agent: OtherAgent) -> None:
    first = agent.test()
    assert first.code == 2, first.text
    stage = stage_of(agent)
    assert (stage / "plain").read_text() == "plain text\n"
    assert (stage / "plain").stat().st_mode & 0o777 == 0o640
    assert (stage / "tree" / "deep" / "b").read_text() == "b\n"
    assert (stage / "facts").read_text() == "ruby says hello\n"
    assert (stage / "refreshed").exists()
    second = agent.test()
    assert second.code == 0, second.text
    reports = reports_of(running)
    assert [report["status"] for report in reports] == ["changed", "unchanged"]
    assert {report["puppet_version"] for report in reports} == {agent.release.version}
