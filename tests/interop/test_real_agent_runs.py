"""Runs of the puppet agents 7.23 and 8.10 against our master that differ from the usual one: by option, environment or failure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.interop.expected import TAGGED, tags_choose
from tests.interop.stage import ENC, SITE, AgentOf, SharedMaster, reports_of, stage_of
from tests.support.processes import MasterProcess, RealAgent, master

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "7.23 and 8.10: noop, tags, environments, classifiers, caches"),
    pytest.mark.interop,
    pytest.mark.slow,
]

DAEMONLESS = ("agent", "--onetime", "--no-daemonize", "--verbose", "--detailed-exitcodes")


def test_noop_says_what_would_change_and_changes_nothing(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    ran = agent.test("--noop")
    assert ran.code == 0, ran.text
    assert "Would have triggered 'refresh'" in ran and "stage/plain]/ensure: " in ran and "(noop)" in ran
    assert not stage_of(agent).exists()
    (report,) = reports_of(shared_master)
    assert (report["noop"], report["noop_pending"], report["status"]) == (True, True, "unchanged")


def test_tags_choose_what_is_applied(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    shared_master.write({"manifests/site.pp": TAGGED})
    tags_choose(agent_of(shared_master))


def test_the_agent_chooses_an_environment(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    testing = shared_master.testing
    shared_master.write({f"../{testing}/manifests/site.pp": 'notify { "here is ${environment}": }\n'})
    agent = agent_of(shared_master)
    ran = agent.test("--environment", testing)
    assert ran.code == 2 and f"here is {testing}" in ran, ran.text
    assert reports_of(shared_master)[-1]["environment"] == testing
    assert not stage_of(agent).exists()


def test_the_classifier_chooses_the_environment_classes_and_parameters(classified: MasterProcess, agent_of: AgentOf) -> None:
    agent = agent_of(classified)
    ran = agent.test()
    assert ran.code == 2, ran.text
    assert "in testing: hello, rack r7" in ran
    assert "doesn't match server specified node environment 'testing', switching agent to 'testing'" in ran
    assert (agent.root / "vardir/lib/facter/only_testing.rb").exists()
    assert reports_of(classified)[-1]["environment"] == "testing"

    program = Path(classified.settings["external_nodes"])
    program.write_text(ENC.replace("environment: testing", "environment: production"))
    moved = agent.test()  # it remembers where it was, and learns from its catalog that it is elsewhere now
    assert moved.code == 2 and "in production: hello, rack r7" in moved, moved.text
    assert "doesn't match server specified environment 'production', restarting agent run" in moved

    other = agent_of(classified, "web2.example.com").test()
    assert other.code == 2 and "in production: nothing, rack r8" in other, other.text


def test_the_classifiers_environment_wins_over_the_agents(classified: MasterProcess, agent_of: AgentOf) -> None:
    ran = agent_of(classified, "web2.example.com").test("--environment", "testing")
    assert ran.code == 2, ran.text
    assert "in testing: nothing" in ran  # the classifier names none
    ran = agent_of(classified).test("--environment", "production")
    assert ran.code == 2 and "in testing: hello" in ran, ran.text


def test_a_node_that_the_classifier_does_not_know_gets_no_catalog(classified: MasterProcess, agent_of: AgentOf) -> None:
    ran = agent_of(classified, "web3.example.com").test()
    assert ran.code == 1, ran.text
    assert "Failed to find web3.example.com via exec" in ran
    classified.until_logged("no such node web3.example.com")


def test_an_agent_in_an_unknown_environment_is_sent_to_the_masters_own(running: MasterProcess, agent_of: AgentOf) -> None:
    agent = agent_of(running)
    ran = agent.test("--environment", "nowhere")
    assert ran.code == 2, ran.text
    assert "Environment 'nowhere' not found on server" in ran
    assert "restarting agent run with environment 'production'" in ran
    running.until_logged("web1.example.com asks for the environment 'nowhere', which does not exist")
    assert reports_of(running)[-1]["environment"] == "production"


def fails(running: MasterProcess, agent: RealAgent) -> None:
    running.write({"manifests/site.pp": "fail('not today')\n"})


def stands_still(running: MasterProcess, agent: RealAgent) -> None:
    running.stop()


# Without a master there are no files of it either: 6 is 2 for what was changed and 4 for what failed.
@pytest.mark.parametrize(("happens", "code"), [(fails, 2), (stands_still, 6)])
def test_a_run_without_a_new_catalog_applies_the_one_it_has(running: MasterProcess, happens: Any, code: int, agent_of: AgentOf) -> None:
    agent = agent_of(running)
    assert agent.test().code == 2
    (stage_of(agent) / "facts").unlink()
    happens(running, agent)
    ran = agent.puppet(*DAEMONLESS, "--usecacheonfailure")
    assert ran.code == code, ran.text
    assert "Using cached catalog from environment 'production'" in ran
    assert (stage_of(agent) / "facts").read_text() == "ruby says hello\n"
    if happens is fails:
        assert reports_of(running)[-1]["cached_catalog_status"] == "on_failure"


def test_a_run_that_may_not_use_its_old_catalog_fails_and_reports(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    fails(shared_master, agent)
    ran = agent.puppet(*DAEMONLESS, "--no-usecacheonfailure")
    assert ran.code == 1 and "not today" in ran, ran.text
    assert re.search(rf"not today \(file: \S+site\.pp, line: 1, column: 1\) on node {re.escape(agent.certname)}", ran.text)
    assert reports_of(shared_master)[-1]["status"] == "failed"


def test_a_catalog_that_was_asked_to_be_the_old_one_is(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    (stage_of(agent) / "plain").write_text("spoilt\n")
    fails(shared_master, agent)
    ran = agent.puppet(*DAEMONLESS, "--use_cached_catalog")
    assert ran.code == 2, ran.text
    assert (stage_of(agent) / "plain").read_text() == SITE["modules/stage/files/plain.txt"]
    assert reports_of(shared_master)[-1]["cached_catalog_status"] == "explicitly_requested"


@pytest.mark.parametrize("options", [("--node_name_value", "another.example.com"), ("--node_name_fact", "another")])
def test_a_node_that_goes_by_another_name_is_trusted_by_its_certificate(
    tmp_path: Path, agent_of: AgentOf, options: tuple[str, str]
) -> None:
    with master(tmp_path / "master", autosign="true") as running:
        running.write(
            {
                "manifests/site.pp": "notify { \"${trusted['certname']} ${trusted['hostname']} as ${clientcert}\": }\n",
                "modules/stage/facts.d/another.txt": "another=another.example.com\n",
                "../../../auth.conf": "path ~ ^/(catalog|node|report)/another[.]example[.]com$\nallow web1.example.com\n",
            }
        )
        agent = agent_of(running.start())
        ran = agent.test(*options)
        assert ran.code == 2 and "web1.example.com web1 as web1.example.com" in ran, ran.text
        assert reports_of(running, "another.example.com")[0]["host"] == "another.example.com"
