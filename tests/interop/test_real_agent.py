"""The puppet agents 7.23 and 8.10, unmodified, against our master."""

from __future__ import annotations

import re

import pytest

from tests.interop.expected import stage_is_complete
from tests.interop.peers import MODERN, version_of
from tests.interop.stage import AgentOf, SharedMaster, reports_of, stage_of
from tests.support.processes import MasterProcess
from tests.support.smoke import with_smoke

SMOKE = pytest.mark.parametrize("agent_of", with_smoke(MODERN, None), ids=version_of, indirect=True)
pytestmark = [pytest.mark.works_with("Agents of Puppet with this master", "7.23 and 8.10: runs"), pytest.mark.interop, pytest.mark.slow]


@pytest.mark.smoke
def test_a_first_run_changes_and_a_second_has_nothing_to_do(running: MasterProcess, agent_of: AgentOf) -> None:
    agent = agent_of(running)
    first = agent.test()
    assert first.code == 2, first.text
    for line in (
        "Creating a new RSA SSL key",
        "Downloaded certificate for web1.example.com",
        "Retrieving pluginfacts",
        "Retrieving plugin",
    ):
        assert line in first
    stage = agent.root / "stage"
    stage_is_complete(stage)
    assert (agent.root / "vardir" / "lib" / "facter" / "from_ruby.rb").exists()
    assert (agent.ssl / "crl.pem").read_text().startswith("-----BEGIN X509 CRL-----")
    assert "certname web1.example.com" in first

    (stage / "tree" / "stray").write_text("not from the master\n")
    repaired = agent.test()
    assert repaired.code == 2 and not (stage / "tree" / "stray").exists(), repaired.text

    last = agent.test()
    assert last.code == 0, last.text
    assert "Error:" not in "\n".join(line for line in last.text.splitlines() if "Facter" not in line)


def test_the_report_is_stored_and_readable(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    (report,) = reports_of(shared_master)
    assert (report["host"], report["status"], report["report_format"]) == (agent.certname, "changed", 12)
    assert report["resource_statuses"][f"Notify[certname {agent.certname}]"]["events"][0]["status"] == "noop"
    metric = {name: value for name, _, value in report["metrics"]["resources"]["values"]}
    assert metric["changed"] > 4 and metric["failed"] == 0


def test_facts_of_all_kinds_arrive(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    agent.test()
    text = (shared_master.root / "var" / "yaml" / "facts" / f"{agent.certname}.yaml").read_text()
    assert "from_ruby: hello" in text
    assert re.search(r"external_fact: '?yes'?\n", text)


@SMOKE
def test_a_request_waits_for_the_administrator(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master, "manual1.example.com")
    waiting = agent.test()
    assert waiting.code == 1, waiting.text
    assert "Couldn't fetch certificate from CA server" in waiting
    fingerprint = re.search(r"Request fingerprint \(SHA256\): (\S+)", waiting.text)
    listed = shared_master.puppet("cert", "list")
    assert fingerprint is not None and fingerprint[1] in listed and f'"{agent.certname}"' in listed

    signed = shared_master.puppet("cert", "sign", agent.certname)
    assert signed.code == 0, signed.text
    assert f"Signed certificate request for {agent.certname}" in signed
    assert agent.test().code == 2
    assert agent.test().code == 0


@SMOKE
def test_a_revoked_agent_is_refused(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    shared_master.revoke(agent.certname)
    refused = agent.test()
    assert refused.code == 1, refused.text
    assert "alert certificate revoked" in refused
    shared_master.until_logged("Refused a TLS handshake of 127.0.0.1: certificate revoked")
    assert len(reports_of(shared_master)) == 1
    assert agent_of(shared_master, "web2.example.com").test().code == 2


def test_a_compile_error_reaches_the_agent_with_its_place(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    shared_master.write(
        {"modules/stage/manifests/init.pp": "class stage (String[1] $root) {\n  notice($nothing.upcase)\n  include no::such\n}\n"}
    )
    broken = agent.test()
    assert broken.code == 1, broken.text
    assert "Error 500 on SERVER: Server Error: Evaluation Error: " in broken
    assert re.search(rf"init\.pp, line: \d, column: \d+\) on node {re.escape(agent.certname)}", broken.text)


def test_an_intruders_csr_for_a_known_name_is_refused(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    signed = shared_master.ca / "signed" / f"{agent.certname}.pem"
    before = signed.read_bytes()
    intruder = agent_of(shared_master, folder="intruder")
    refused = intruder.test()
    assert refused.code == 1, refused.text
    assert signed.read_bytes() == before
    assert not stage_of(intruder).exists()


def test_tools_of_the_real_puppet_work(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    verified = agent.puppet("ssl", "verify")
    assert verified.code == 0 and "Verified client certificate" in verified, verified.text
    catalog = agent.puppet("catalog", "download", "--terminus", "rest")
    assert catalog.code == 0, catalog.text
    backup = agent.root / "stage" / "plain"
    stored = agent.puppet("filebucket", "backup", str(backup), "--remote")
    assert stored.code == 0, stored.text
    checksum = stored.text.strip().split()[-1]
    fetched = agent.puppet("filebucket", "get", checksum, "--remote")
    assert "plain text" in fetched, fetched.text
