"""Puppet 3.8.5's agent, unmodified, against our master: runs that differ from the usual one, files, facts and reports."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.interop.expected import TAGGED, tags_choose
from tests.interop.peers import PUPPET_3, OtherAgent, agent_of
from tests.interop.stage import SharedMaster, reports_of, stage_of
from tests.interop.test_real_agent_runs import DAEMONLESS
from tests.support.processes import MasterProcess

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "3.8.5: runs, files"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_3.why_not()), reason=PUPPET_3.why_not()),
]


# Left out, since 3.8.5 fails with its own master too: `checksum => md5lite` of a large source, and file names beyond ASCII.


@pytest.fixture
def agent(shared_master: SharedMaster) -> OtherAgent:
    return agent_of(shared_master, PUPPET_3)


def errors_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("Error:")]


def test_noop_says_what_would_change_and_changes_nothing(shared_master: SharedMaster, agent: OtherAgent) -> None:
    ran = agent.test("--noop")
    assert ran.code == 0, ran.text
    assert "Would have triggered 'refresh'" in ran and "should be file (noop)" in ran
    assert not stage_of(agent).exists()
    (report,) = reports_of(shared_master)
    assert (report["report_format"], report["status"], report["kind"]) == (4, "unchanged", "apply")


def test_tags_choose_what_is_applied(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": TAGGED})
    tags_choose(agent, skips=False)


def test_the_agent_chooses_an_environment(shared_master: SharedMaster, agent: OtherAgent) -> None:
    testing = shared_master.testing
    shared_master.write({f"../{testing}/manifests/site.pp": 'notify { "here is ${environment}": }\n'})
    ran = agent.test("--environment", testing)
    assert ran.code == 2 and f"here is {testing}" in ran, ran.text
    assert reports_of(shared_master)[-1]["environment"] == testing
    assert not stage_of(agent).exists()


def test_the_classifier_chooses_the_environment_classes_and_parameters(classified: MasterProcess) -> None:
    agent = agent_of(classified, PUPPET_3)
    ran = agent.test()
    assert ran.code == 2, ran.text
    assert "in testing: hello, rack r7" in ran
    assert 'doesn\'t match server specified node environment "testing", switching agent to "testing"' in ran
    assert (agent.root / "vardir/lib/facter/only_testing.rb").exists()
    assert reports_of(classified)[-1]["environment"] == "testing"

    other = agent_of(classified, PUPPET_3, "web2.example.com").test("--environment", "testing")
    assert other.code == 2 and "in testing: nothing, rack r8" in other, other.text
    unknown = agent_of(classified, PUPPET_3, "web3.example.com").test()
    assert unknown.code == 1 and "Failed to find web3.example.com via exec" in unknown, unknown.text


def test_an_unknown_environment_ends_the_run(running: MasterProcess) -> None:
    agent = agent_of(running, PUPPET_3)
    stranger = agent.test("--environment", "nowhere")
    assert stranger.code == 1 and "resulted in 404 with the message: Not Found: Could not find environment 'nowhere'" in stranger
    assert agent.test().code == 2
    ran = agent.test("--environment", "nowhere")
    assert ran.code == 1, ran.text
    assert "Could not retrieve catalog from remote server: Find /nowhere/catalog/web1.example.com" in ran
    assert "Not Found: Could not find environment 'nowhere'" in ran and "Could not retrieve catalog; skipping run" in ran


def test_a_compile_error_is_one_line_with_its_place(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": "node default {\n  include nosuch\n}\n"})
    ran = agent.test()
    assert ran.code == 1, ran.text
    error = next(line for line in errors_in(ran.text) if "remote server" in line)
    assert error.startswith("Error: Could not retrieve catalog from remote server: Error 400 on SERVER: Evaluation Error: ")
    assert f"Could not find class ::nosuch for {agent.certname}" in error
    assert re.search(rf"site\.pp, line: 2, column: 3\) on node {re.escape(agent.certname)}$", error)
    assert "Not using cache on failed catalog" in ran and "Could not retrieve catalog; skipping run" in ran


def test_a_run_without_a_new_catalog_applies_the_one_it_has(running: MasterProcess) -> None:
    agent = agent_of(running, PUPPET_3)
    assert agent.test().code == 2
    (stage_of(agent) / "facts").unlink()
    running.write({"manifests/site.pp": "fail('not today')\n"})
    refused = agent.puppet(*DAEMONLESS, "--no-usecacheonfailure")
    assert refused.code == 1 and "not today" in refused, refused.text
    assert reports_of(running)[-1]["status"] == "failed"
    ran = agent.puppet(*DAEMONLESS, "--usecacheonfailure")
    assert ran.code == 2 and "Using cached catalog" in ran, ran.text
    assert (stage_of(agent) / "facts").read_text() == "ruby says hello\n"
    running.stop()
    (stage_of(agent) / "facts").unlink()
    alone = agent.puppet(*DAEMONLESS, "--usecacheonfailure")
    assert "Using cached catalog" in alone and (stage_of(agent) / "facts").exists(), alone.text


LINKS = """
node default {
  File { backup => false }
  file { $::stage_root: ensure => directory }
  file { "${::stage_root}/managed": ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, links => manage }
  file { "${::stage_root}/followed": ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, links => follow }
  file { "${::stage_root}/ignored":
    ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, ignore => ['*.bak', 'deep'],
    purge  => true, force => true,
  }
  file { "${::stage_root}/shallow":
    ensure => directory, source => 'puppet:///modules/stage/linked', recurse => true, recurselimit => 1,
  }
  file { "${::stage_root}/many": source => ['puppet:///modules/stage/none', 'puppet:///modules/stage/binary'], mode => '0600' }
  file { "${::stage_root}/large": source => 'puppet:///modules/stage/large' }
}
"""
BINARY = bytes(range(256)) * 5


def test_trees_links_binaries_and_large_files_arrive_as_they_are(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": LINKS})
    files = shared_master.site / "modules/stage/files"
    (files / "linked/deep").mkdir(parents=True)
    (files / "linked/real").write_text("real\n")
    (files / "linked/link").symlink_to("real")
    (files / "linked/old.bak").write_text("old\n")
    (files / "linked/deep/one").write_text("deep\n")
    (files / "binary").write_bytes(BINARY)
    large = hashlib.sha256(b"large").digest() * 32 * 1024 * 20  # 20 MiB
    (files / "large").write_bytes(large)
    ran = agent.test()
    assert ran.code == 2 and not errors_in(ran.text), ran.text
    stage = stage_of(agent)
    assert (stage / "managed/link").is_symlink() and (stage / "managed/link").readlink() == Path("real")
    assert not (stage / "followed/link").is_symlink() and (stage / "followed/link").read_text() == "real\n"
    assert (stage / "managed/deep/one").read_text() == "deep\n"
    assert sorted(path.name for path in (stage / "ignored").iterdir()) == ["link", "real"]
    assert (stage / "shallow/deep").is_dir() and not list((stage / "shallow/deep").iterdir())
    assert (stage / "many").read_bytes() == BINARY and (stage / "many").stat().st_mode & 0o777 == 0o600
    assert (stage / "large").read_bytes() == large
    (stage / "ignored/stray").mkdir()
    again = agent.test()
    assert again.code == 2 and not (stage / "ignored/stray").exists(), again.text
    assert agent.test().code == 0


BACKED_UP = """
filebucket { 'main': server => 'localhost', port => PORT, path => false }
File { backup => 'main' }
file { $::stage_root: ensure => directory }
file { "${::stage_root}/a": content => $::wanted }
file { "${::stage_root}/gone": ensure => absent }
"""


def test_what_a_run_replaces_and_removes_is_in_the_masters_bucket(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": BACKED_UP.replace("PORT", str(shared_master.port))})
    agent.facts["wanted"] = "new\n"
    stage = stage_of(agent)
    stage.mkdir()
    (stage / "a").write_bytes(BINARY)
    (stage / "gone").write_text("precious\n")
    ran = agent.test()
    assert ran.code == 2 and not errors_in(ran.text), ran.text
    for content in (BINARY, b"precious\n"):
        value = hashlib.md5(content).hexdigest()
        assert f"to main with sum {value}" in ran or f"with sum {value}" in ran, ran.text
        (entry,) = (shared_master.root / "var/bucket").rglob(value)
        assert (entry / "contents").read_bytes() == content
    restored = agent.puppet("filebucket", "restore", str(stage / "a"), hashlib.md5(BINARY).hexdigest())
    assert restored.code == 0 and (stage / "a").read_bytes() == BINARY, restored.text


CONTENTS = """
file { $::stage_root: ensure => directory }
file { "${::stage_root}/text": content => "grüße ☃ ${::greeting}\\n" }
file { "${::stage_root}/template": content => epp('stage/facts.epp', { ruby => $::greeting }) }
file { "${::stage_root}/latin": content => file('stage/latin') }
@file { "${::stage_root}/virtual": content => 'not me' }
@file { "${::stage_root}/realized": content => 'me' }
realize File["${::stage_root}/realized"]
File <| title == "${::stage_root}/realized" |> { mode => '0600' }
"""


def test_contents_beyond_ascii_facts_beyond_ascii_and_virtual_resources(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": CONTENTS})
    (shared_master.site / "modules/stage/files/latin").write_bytes("ümläut\n".encode("latin-1"))
    agent.facts["greeting"] = 'ça va +%26&="ж'
    ran = agent.test()
    stage = stage_of(agent)
    assert ran.code == 2 and not errors_in(ran.text), ran.text
    assert (stage / "text").read_text() == 'grüße ☃ ça va +%26&="ж\n'
    assert (stage / "template").read_text() == 'ruby says ça va +%26&="ж\n'
    assert (stage / "latin").read_bytes() == "ümläut\n".encode("latin-1")
    assert sorted(path.name for path in stage.iterdir()) == ["latin", "realized", "template", "text"]
    assert (stage / "realized").stat().st_mode & 0o777 == 0o600
    assert agent.test().code == 0


@pytest.mark.parametrize("form", ["pson", "yaml", "b64_zlib_yaml"])
def test_whatever_form_the_agent_prefers_catalog_and_report_go_through(shared_master: SharedMaster, agent: OtherAgent, form: str) -> None:
    ran = agent.test("--preferred_serialization_format", form)
    assert ran.code == 2 and not errors_in(ran.text), ran.text
    (report,) = reports_of(shared_master)
    assert (report["host"], report["status"], report["report_format"]) == (agent.certname, "changed", 4)
    metric = {name: value for name, _, value in report["metrics"]["resources"]["values"]}
    assert metric["changed"] > 4 and metric["failed"] == 0
    assert report["resource_statuses"][f"Notify[certname {agent.certname}]"]["events"][0]["status"] == "noop"
    assert agent.test("--preferred_serialization_format", form).code == 0


def test_a_report_in_its_own_yaml_is_stored(shared_master: SharedMaster, agent: OtherAgent) -> None:
    ran = agent.test("--report_serialization_format", "yaml")
    assert ran.code == 2 and not errors_in(ran.text), ran.text
    (report,) = reports_of(shared_master)
    assert (report["host"], report["status"], report["report_format"], report["kind"]) == (agent.certname, "changed", 4, "apply")
    status = report["resource_statuses"][f"File[{stage_of(agent)}/plain]"]
    assert status["changed"] is True and status["events"][0]["status"] == "success"
    assert report["logs"][0]["level"] in ("info", "notice")


def test_an_agent_gives_up_a_master_that_takes_too_long(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    shared_master.write({"manifests/site.pp": "$slow = generate('/bin/sleep', '4')\n"})
    ran = agent.test("--configtimeout", "1")
    assert ran.code == 1 and re.search("execution expired|Timeout", ran.text), ran.text
