"""The tools of puppet 7.23 and 8.10 that speak to a master, against ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.interop.expected import a_file_goes_to_the_bucket_and_comes_back
from tests.interop.stage import AgentOf, SharedMaster
from tests.support.processes import MasterProcess, RealAgent

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "7.23 and 8.10: other commands"),
    pytest.mark.interop,
    pytest.mark.slow,
]


@pytest.fixture
def agent(shared_master: SharedMaster, agent_of: AgentOf) -> RealAgent:
    return with_certificate(agent_of(shared_master))


def with_certificate(agent: RealAgent) -> RealAgent:
    bootstrapped = agent.puppet("ssl", "bootstrap")
    assert bootstrapped.code == 0, bootstrapped.text
    return agent


def without_noise(text: str) -> str:
    """What a tool printed, without facter's complaints about this machine."""
    return "\n".join(line for line in text.splitlines() if "Facter" not in line)


def test_a_file_is_backed_up_fetched_compared_and_restored(running: MasterProcess, agent_of: AgentOf) -> None:
    agent = with_certificate(agent_of(running))  # with a master whose bucket is empty
    first, _ = a_file_goes_to_the_bucket_and_comes_back(agent)
    (entry,) = (running.root / "var/bucket").rglob(first)
    assert (entry / "contents").read_text() == "one\ntwo\n"
    assert (entry / "paths").read_text() == f"{agent.root}/precious\n".lstrip("/")  # the path comes as the rest of a URL
    assert running.log.count('"PUT /puppet/v3/file_bucket_file/sha256/') == 2


def test_what_the_bucket_cannot_do_is_said(agent: RealAgent) -> None:
    listed = agent.puppet("filebucket", "list", "--remote")
    assert listed.code == 1 and "Listing remote file buckets is not allowed" in listed, listed.text


def test_plugins_are_downloaded_with_their_content(agent: RealAgent) -> None:
    first = agent.puppet("plugin", "download")
    assert first.code == 0 and "Downloaded these plugins" in first and "from_ruby.rb" in first, first.text
    assert (agent.root / "vardir/lib/facter/from_ruby.rb").read_text().startswith("Facter.add(:from_ruby)")
    assert (agent.root / "vardir/facts.d/external.txt").read_text() == "external_fact=yes\n"
    second = agent.puppet("plugin", "download")
    assert second.code == 0 and "No plugins downloaded." in second, second.text


def test_a_catalog_is_downloaded_for_the_facts_that_were_uploaded(agent: RealAgent) -> None:
    for words in (("plugin", "download"), ("facts", "upload")):
        assert agent.puppet(*words).code == 0
    done = agent.puppet("catalog", "download")
    assert done.code == 0, done.text
    stored = re.search(rf"Saved catalog for {re.escape(agent.certname)} to (\S+\.(?:json|yaml))", done.text)
    assert stored is not None, done.text
    catalog = Path(stored[1]).read_text()
    assert catalog.startswith("--- !ruby/object:Puppet::Resource::Catalog") and "ruby says hello" in catalog

    shown = agent.puppet("catalog", "find", "--terminus", "rest", "--render-as", "json")
    assert shown.code == 0 and '"Stage[main]"' in shown, shown.text


def test_uploaded_facts_are_those_of_the_next_catalog_that_brings_none(shared_master: SharedMaster, agent: RealAgent) -> None:
    agent.facts["rack"] = "r7"
    done = agent.puppet("facts", "upload")
    assert done.code == 0 and f"Uploading facts for '{agent.certname}' to 'localhost'" in done, done.text
    assert re.search(r"rack: '?r7'?\n", (shared_master.root / f"var/yaml/facts/{agent.certname}.yaml").read_text())
    shared_master.write({"manifests/site.pp": 'notify { "rack ${facts[rack]}": }\n'})
    compiled = shared_master.puppet("master", "--compile", agent.certname, "--environment", shared_master.environment)
    assert compiled.code == 0 and "rack r7" in compiled, compiled.text


def test_a_node_is_shown(shared_master: SharedMaster, agent: RealAgent) -> None:
    assert agent.test().code == 2
    shown = agent.puppet("node", "find", agent.certname, "--terminus", "rest", "--render-as", "json")
    assert shown.code == 0, shown.text
    node = json.loads(without_noise(shown.text))
    assert (node["name"], node["environment"], node["parameters"]["from_ruby"]) == (agent.certname, shared_master.environment, "hello")


@pytest.mark.parametrize("subject", ["node", "catalog"])
def test_what_belongs_to_another_is_denied(agent: RealAgent, subject: str) -> None:
    denied = agent.puppet(subject, "find", "web2.example.com", "--terminus", "rest")
    assert denied.code == 1 and f"Forbidden request: /puppet/v3/{subject}/web2.example.com" in denied, denied.text
