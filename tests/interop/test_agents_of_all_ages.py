"""The agents of Puppet 3.8, 5.5 and 8, unmodified, against our master: what every one of them does."""

from __future__ import annotations

import re

import pytest

from tests.interop.expected import TAGGED, stage_is_complete, tags_choose
from tests.interop.peers import PUPPET_3, PUPPET_8, RELEASES, OtherAgent, Release, agent_of
from tests.interop.stage import SharedMaster, reports_of, stage_of
from tests.support.smoke import with_smoke

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "3.8.5, 5.5.22, 7.23 and 8.10: what all of them do"),
    pytest.mark.interop,
    pytest.mark.slow,
]


@pytest.fixture(params=RELEASES, ids=lambda each: each.version)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    if reason := found.why_not():
        pytest.skip(reason)
    return found


@pytest.fixture
def agent(shared_master: SharedMaster, release: Release) -> OtherAgent:
    return agent_of(shared_master, release)


@pytest.mark.parametrize("release", with_smoke(RELEASES, PUPPET_3, PUPPET_8), ids=lambda each: each.version, indirect=True)
def test_a_first_run_changes_and_a_second_has_nothing_to_do(shared_master: SharedMaster, agent: OtherAgent) -> None:
    first = agent.test()
    assert first.code == 2, first.text
    stage = stage_of(agent)
    stage_is_complete(stage)
    second = agent.test()
    assert second.code == 0, second.text
    reports = reports_of(shared_master)
    assert [report["status"] for report in reports] == ["changed", "unchanged"]
    assert {report["puppet_version"] for report in reports} == {agent.release.version}


def test_noop_changes_nothing_and_says_so_in_its_report(shared_master: SharedMaster, agent: OtherAgent) -> None:
    ran = agent.test("--noop")
    assert ran.code == 0 and "(noop)" in ran, ran.text
    assert not stage_of(agent).exists()
    (report,) = reports_of(shared_master)
    assert report["status"] == "unchanged"
    assert {event["status"] for each in report["resource_statuses"].values() for event in each["events"]} == {"noop"}


def test_tags_choose_what_is_applied(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": TAGGED})
    tags_choose(agent, skips=False)


def test_the_agent_chooses_an_environment(shared_master: SharedMaster, agent: OtherAgent) -> None:
    testing = shared_master.testing
    shared_master.write({f"../{testing}/manifests/site.pp": 'notify { "here is ${environment}": }\n'})
    ran = agent.test("--environment", testing)
    assert ran.code == 2 and f"here is {testing}" in ran, ran.text
    assert not stage_of(agent).exists()
    assert reports_of(shared_master)[-1]["environment"] == testing


def test_a_compile_error_is_shown_with_its_place_and_the_last_catalog_is_applied(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    (stage_of(agent) / "facts").unlink()
    shared_master.write({"manifests/site.pp": "fail('not today')\n"})
    failed = agent.test("--no-usecacheonfailure")
    assert failed.code == 1 and "not today" in failed and re.search(r"site\.pp\b.*\bline: 1\b", failed.text), failed.text
    assert not (stage_of(agent) / "facts").exists()
    ran = agent.puppet("agent", "--onetime", "--no-daemonize", "--verbose", "--detailed-exitcodes", "--usecacheonfailure")
    assert ran.code == 2 and "not today" in ran, ran.text
    assert (stage_of(agent) / "facts").read_text() == "ruby says hello\n"


def test_a_file_goes_into_the_bucket_and_comes_back(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    path = agent.root / "precious"
    path.write_text("one\n")
    stored = agent.puppet("filebucket", "backup", str(path), "--remote")
    assert stored.code == 0, stored.text
    (checksum,) = re.findall(r"precious: (?:\{\w+\})?([0-9a-f]{32,64})", stored.text)
    path.write_text("two\n")
    restored = agent.puppet("filebucket", "restore", str(path), checksum, "--remote")
    assert restored.code == 0 and path.read_text() == "one\n", restored.text


def test_a_revoked_agent_is_refused(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    shared_master.revoke(agent.certname)
    before = len(reports_of(shared_master))
    refused = agent.test()
    assert refused.code == 1, refused.text
    assert len(reports_of(shared_master)) == before


def test_a_request_waits_for_the_administrator(shared_master: SharedMaster, release: Release) -> None:
    agent = agent_of(shared_master, release, "manual1.example.com")
    assert agent.test("--waitforcert", "0").code == 1
    assert agent.certname in shared_master.puppet("cert", "list")
    assert shared_master.puppet("cert", "sign", agent.certname).code == 0
    assert agent.test().code == 2
