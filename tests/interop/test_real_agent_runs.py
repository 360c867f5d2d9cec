"""Runs of Debian's puppet agent 7.23 against our master that differ from the usual one: by option, environment or failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.stage import SITE, agent_of, reports_of, stage_of
from tests.processes import MasterProcess, RealAgent, master

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TESTING = "../testing/"
DAEMONLESS = ("agent", "--onetime", "--no-daemonize", "--verbose", "--detailed-exitcodes")
ENC = """#!/bin/sh
case "$1" in
  web1.*) cat <<END
environment: testing
classes:
  from_enc: {word: hello}
parameters: {rack: r7}
END
  ;;
  web2.*) echo '{classes: [from_enc], parameters: {rack: r8}}';;
  *) echo "no such node $1" >&2; exit 1;;
esac
"""
FROM_ENC = """
class from_enc (String $word = 'nothing') {
  notify { "in ${server_facts['environment']}: ${word}, rack ${rack}": }
}
"""


def test_noop_says_what_would_change_and_changes_nothing(running: MasterProcess) -> None:
    agent = agent_of(running)
    ran = agent.test("--noop")
    assert ran.code == 0, ran.text
    assert "Would have triggered 'refresh'" in ran and "should be 'file' (noop)" in ran
    assert not stage_of(agent).exists()
    (report,) = reports_of(running)
    assert (report["noop"], report["noop_pending"], report["status"]) == (True, True, "unchanged")


def test_tags_choose_what_is_applied(running: MasterProcess) -> None:
    running.write(
        {
            "manifests/site.pp": "file { $facts['stage_root']: ensure => directory, tag => 'wanted' }\n"
            "file { \"${facts['stage_root']}/a\": content => 'a', tag => 'wanted' }\n"
            "file { \"${facts['stage_root']}/b\": content => 'b', tag => 'other' }\n"
        }
    )
    agent = agent_of(running)
    assert agent.test("--tags", "wanted").code == 2
    assert [path.name for path in stage_of(agent).iterdir()] == ["a"]
    assert agent.test("--skip_tags", "other").code == 0
    assert agent.test().code == 2
    assert sorted(path.name for path in stage_of(agent).iterdir()) == ["a", "b"]


def test_the_agent_chooses_an_environment(running: MasterProcess) -> None:
    running.write({f"{TESTING}manifests/site.pp": 'notify { "here is ${environment}": }\n'})
    agent = agent_of(running)
    ran = agent.test("--environment", "testing")
    assert ran.code == 2 and "here is testing" in ran, ran.text
    assert reports_of(running)[-1]["environment"] == "testing"
    assert not stage_of(agent).exists()


@pytest.fixture
def classified(tmp_path: Path) -> Iterator[MasterProcess]:
    """A master whose nodes a program classifies."""
    program = tmp_path / "enc"
    program.write_text(ENC)
    program.chmod(0o755)
    with master(tmp_path / "master", autosign="true", node_terminus="exec", external_nodes=str(program)) as process:
        for place in ("", TESTING):
            process.write({f"{place}modules/from_enc/manifests/init.pp": FROM_ENC, f"{place}manifests/site.pp": "notice('compiled')\n"})
        process.write({f"{TESTING}modules/from_enc/lib/facter/only_testing.rb": "Facter.add(:only_testing) { setcode { 'yes' } }\n"})
        yield process.start()


def test_the_classifier_chooses_the_environment_classes_and_parameters(classified: MasterProcess) -> None:
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


def test_the_classifiers_environment_wins_over_the_agents(classified: MasterProcess) -> None:
    ran = agent_of(classified, "web2.example.com").test("--environment", "testing")
    assert ran.code == 2, ran.text
    assert "in testing: nothing" in ran  # the classifier names none
    ran = agent_of(classified).test("--environment", "production")
    assert ran.code == 2 and "in testing: hello" in ran, ran.text


def test_a_node_that_the_classifier_does_not_know_gets_no_catalog(classified: MasterProcess) -> None:
    ran = agent_of(classified, "web3.example.com").test()
    assert ran.code == 1, ran.text
    assert "Failed to find web3.example.com via exec" in ran
    assert "no such node web3.example.com" in classified.log


def test_an_agent_in_an_unknown_environment_is_sent_to_the_masters_own(running: MasterProcess) -> None:
    agent = agent_of(running)
    ran = agent.test("--environment", "nowhere")
    assert ran.code == 2, ran.text
    assert "Environment 'nowhere' not found on server" in ran
    assert "restarting agent run with environment 'production'" in ran
    assert "web1.example.com asks for the environment 'nowhere', which does not exist" in running.log
    assert reports_of(running)[-1]["environment"] == "production"


def fails(running: MasterProcess, agent: RealAgent) -> None:
    running.write({"manifests/site.pp": "fail('not today')\n"})


def stands_still(running: MasterProcess, agent: RealAgent) -> None:
    running.stop()


# Without a master there are no files of it either: 6 is 2 for what was changed and 4 for what failed.
@pytest.mark.parametrize(("happens", "code"), [(fails, 2), (stands_still, 6)])
def test_a_run_without_a_new_catalog_applies_the_one_it_has(running: MasterProcess, happens: Any, code: int) -> None:
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


def test_a_run_that_may_not_use_its_old_catalog_fails_and_reports(running: MasterProcess) -> None:
    agent = agent_of(running)
    assert agent.test().code == 2
    fails(running, agent)
    ran = agent.puppet(*DAEMONLESS, "--no-usecacheonfailure")
    assert ran.code == 1 and "not today" in ran, ran.text
    assert re.search(r"not today \(file: \S+site\.pp, line: 1, column: 1\) on node web1\.example\.com", ran.text)
    assert reports_of(running)[-1]["status"] == "failed"


def test_a_catalog_that_was_asked_to_be_the_old_one_is(running: MasterProcess) -> None:
    agent = agent_of(running)
    assert agent.test().code == 2
    (stage_of(agent) / "plain").write_text("spoilt\n")
    fails(running, agent)
    ran = agent.puppet(*DAEMONLESS, "--use_cached_catalog")
    assert ran.code == 2, ran.text
    assert (stage_of(agent) / "plain").read_text() == SITE["modules/stage/files/plain.txt"]
    assert reports_of(running)[-1]["cached_catalog_status"] == "explicitly_requested"


@pytest.mark.parametrize("options", [("--node_name_value", "another.example.com"), ("--node_name_fact", "another")])
def test_a_node_that_goes_by_another_name_is_trusted_by_its_certificate(tmp_path: Path, options: tuple[str, str]) -> None:
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
