"""The tools and certificates of Puppet 3.8.5 at our master and its CA; the rules are the auth.conf that came with it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.peers import PUPPET_3, OtherAgent, agent_of
from tests.interop.stage import SITE, stage_of
from tests.interop.test_real_agent_certificates import expire, serial_of, serials_in
from tests.support.processes import Done, MasterProcess, clean_environment, master

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "3.8.5: other commands, certificates"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_3.why_not()), reason=PUPPET_3.why_not()),
]

WEB1, WEB7 = "web1.example.com", "web7.example.com"
MORE_RULES = f"""
path ~ ^/certificate_status(es)?/
auth yes
method find, search, save, destroy
allow {WEB1}

path /facts
method find, save
allow *

path /resource_type
method find, search
allow *

path /status
allow *

"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[MasterProcess]:
    """A master with the auth.conf of 3.8.5, and a few rules above it; web7 is not signed by itself."""
    names = tmp_path / "autosign.conf"
    names.write_text("web1.example.com\nweb2.example.com\n")
    with master(tmp_path / "master", autosign=str(names)) as process:
        process.write(SITE)
        auth = (PUPPET_3.image / "etc/puppet/auth.conf").read_text()
        (process.root / "conf/auth.conf").write_text(MORE_RULES + auth)
        yield process.start()


@pytest.fixture
def agent(running: MasterProcess) -> OtherAgent:
    """An agent that has its certificate."""
    agent = agent_of(running, PUPPET_3)
    ran = agent.test()
    assert ran.code == 2, ran.text
    return agent


def rest(agent: OtherAgent, subject: str, verb: str, key: str) -> Done:
    return agent.puppet(subject, verb, key, "--terminus", "rest", "--render-as", "json")


def test_the_usual_run_passes_the_rules_that_came_with_3_8(running: MasterProcess, agent: OtherAgent) -> None:
    assert agent.test().code == 0
    assert (stage_of(agent) / "tree/deep/b").read_text() == "b\n"
    assert "Denied" not in running.log


def test_a_file_is_backed_up_fetched_and_restored(running: MasterProcess, agent: OtherAgent) -> None:
    path, value = agent.root / "precious", hashlib.md5(b"\xffprecious\x00\n").hexdigest()
    path.write_bytes(b"\xffprecious\x00\n")
    for _ in range(2):
        stored = agent.puppet("filebucket", "backup", str(path))
        assert stored.code == 0 and stored.text.strip() == f"{path}: {value}", stored.text
    assert running.log.count('"PUT /production/file_bucket_file/md5/') == 1
    path.write_text("spoilt")
    restored = agent.puppet("filebucket", "restore", str(path), value)
    assert restored.code == 0 and path.read_bytes() == b"\xffprecious\x00\n", restored.text
    path.write_text("text\n")
    text = agent.puppet("filebucket", "backup", str(path)).text.split()[-1]
    assert agent.puppet("filebucket", "get", text).text == "text\n"
    missing = agent.puppet("filebucket", "get", "0" * 32)
    assert missing.code == 1 and "File not found" in missing, missing.text


def test_plugins_facts_and_catalog_go_by_the_tools(running: MasterProcess, agent: OtherAgent) -> None:
    (agent.root / "vardir/lib/facter/from_ruby.rb").unlink()
    first = agent.puppet("plugin", "download")
    assert first.code == 0 and "from_ruby.rb" in first, first.text
    assert "No plugins downloaded" in agent.puppet("plugin", "download")

    agent.facts["rack"] = "r7"
    uploaded = agent.puppet("facts", "upload")
    assert uploaded.code == 0 and "Uploaded facts for 'web1.example.com'" in uploaded, uploaded.text
    assert json.loads(rest(agent, "facts", "find", WEB1).text)["values"]["rack"] == "r7"
    running.write({"manifests/site.pp": 'notify { "rack ${facts[rack]}": }\n'})
    compiled = running.puppet("master", "--compile", WEB1)
    assert compiled.code == 0 and "rack r7" in compiled, compiled.text

    catalog = json.loads(rest(agent, "catalog", "find", WEB1).text)
    assert catalog["document_type"] == "Catalog" and catalog["data"]["resources"][-1]["title"] == "rack r7"
    # `puppet catalog download` fetches it and then fails with any master: it saves under the name `{}`.


def test_types_and_the_masters_state_are_shown(agent: OtherAgent) -> None:
    assert json.loads(rest(agent, "status", "find", "x").text)["is_alive"] is True
    found = json.loads(rest(agent, "resource_type", "find", "stage").text)
    assert (found["name"], found["kind"], found["parameters"], found["line"]) == ("stage", "class", {"root": None}, 2)
    listed = json.loads(rest(agent, "resource_type", "search", ".*").text)
    assert {(each["kind"], each["name"]) for each in listed} == {("class", "stage"), ("node", "default")}


def test_what_belongs_to_another_is_denied_in_the_words_of_3_8(agent: OtherAgent) -> None:
    line = 1 + (MORE_RULES + (PUPPET_3.image / "etc/puppet/auth.conf").read_text()).splitlines().index("path ~ ^/node/([^/]+)$")
    denied = agent.puppet("node", "find", "web2.example.com", "--terminus", "rest")
    said = f"Forbidden request: {WEB1}(127.0.0.1) access to /node/web2.example.com [find] authenticated  at :{line}"
    assert denied.code == 1 and f"Error 403 on SERVER: {said}" in denied, denied.text


def remote(agent: OtherAgent, *words: str) -> Done:
    return agent.puppet("certificate", *words, "--ca-location", "remote")


def test_certificates_are_requested_listed_signed_and_revoked_from_afar(running: MasterProcess, agent: OtherAgent) -> None:
    assert remote(agent, "find", WEB1).text.strip() == agent.certificate.read_text().strip()
    assert "web" not in remote(agent, "list").text
    assert remote(agent, "generate", WEB7).code == 0
    listed = remote(agent, "list")
    assert listed.code == 0 and WEB7 in listed and WEB1 not in listed, listed.text
    signed = remote(agent, "sign", WEB7)
    assert signed.code == 0 and (running.ca / f"signed/{WEB7}.pem").exists(), signed.text
    again = remote(agent, "sign", WEB7)
    assert again.code == 1 and f"Error 400 on SERVER: Cannot sign for host {WEB7} without a certificate request" in again, again.text
    assert remote(agent, "find", WEB7).text.startswith("-----BEGIN CERTIFICATE-----")
    denied = remote(agent, "destroy", WEB7)
    assert denied.code == 1 and "Error 403 on SERVER: Forbidden request" in denied, denied.text


def test_an_agent_that_waits_runs_as_soon_as_it_is_signed(running: MasterProcess) -> None:
    agent = agent_of(running, PUPPET_3, WEB7)
    early = agent.test()
    assert early.code == 1 and "Exiting; no certificate found and waitforcert is disabled" in early, early.text
    fingerprint = re.search(r"Request fingerprint \(SHA256\): (\S+)", early.text)
    listed = running.puppet("cert", "list")
    assert fingerprint is not None and fingerprint[1] in listed and f'"{WEB7}"' in listed
    waiting = subprocess.Popen(
        PUPPET_3.command(agent.root, "puppet", "agent", "-t", "--waitforcert", "1", *agent.options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(HOME=str(agent.root), FACTER_stage_root=str(stage_of(agent))),
    )
    assert waiting.stdout is not None
    try:
        waits = any(b"Did not receive certificate" in line for line in waiting.stdout)
        signed = running.puppet("cert", "sign", WEB7)
        assert signed.code == 0 and f"Signed certificate request for {WEB7}" in signed, signed.text
        output, _ = waiting.communicate(timeout=120)
    finally:
        waiting.kill()
        waiting.wait(10)
    assert waits and waiting.returncode == 2, output.decode()


def test_a_revoked_agent_is_refused_and_a_cleaned_one_begins_anew(running: MasterProcess, agent: OtherAgent) -> None:
    running.revoke(WEB1)
    refused = agent.test()
    assert refused.code == 1 and re.search("certificate revoked", refused.text), refused.text
    running.until_logged("Refused a TLS handshake of 127.0.0.1: certificate revoked")
    assert len(list((running.reports / WEB1).iterdir())) == 1

    before = serial_of(agent.certificate)
    running.revoke(WEB1, command="clean")
    for path in agent.ssl.rglob(f"{WEB1}.pem"):
        path.unlink()
    assert agent.test().code == 0
    assert serial_of(agent.certificate) > before


def test_a_certificate_that_does_not_fit_the_key_is_explained(running: MasterProcess, agent: OtherAgent) -> None:
    for path in agent.ssl.rglob(f"{WEB1}.pem"):
        path.unlink()
    ran = agent.test()
    assert ran.code == 1 and "The certificate retrieved from the master does not match the agent's private key" in ran, ran.text


def test_an_expired_certificate_is_refused(running: MasterProcess, agent: OtherAgent) -> None:
    expire(agent.certificate, running.ca)
    ran = agent.test()  # it looks for a newer one, for which it needs the one that it has, until it runs out of stack
    assert ran.code == 1 and "Could not request certificate" in ran, ran.text
    assert len(list((running.reports / WEB1).iterdir())) == 1


def test_a_revocation_list_comes_with_the_certificate_and_is_believed(running: MasterProcess, agent: OtherAgent) -> None:
    crl = agent.ssl / "crl.pem"
    assert serials_in(crl) == set()
    running.revoke("localhost")
    crl.unlink()
    ran = agent.test()
    assert "certificate verify failed: [certificate revoked for /CN=localhost]" in ran, ran.text
    assert len(serials_in(crl)) == 1
    ran = agent.test()
    assert ran.code == 1 and "certificate verify failed: [certificate revoked for /CN=localhost]" in ran, ran.text


def test_an_agents_alternative_names_and_extensions_are_judged_by_the_ca(running: MasterProcess) -> None:
    agent = agent_of(running, PUPPET_3)
    (agent.root / "confdir").mkdir()
    (agent.root / "confdir/csr_attributes.yaml").write_text("extension_requests: {1.3.6.1.4.1.34380.1.1.13: web}\n")
    running.write({"manifests/site.pp": 'notify { "role ${trusted[extensions]}": }\n'})
    ran = agent.test()
    assert ran.code == 2 and re.search(r"role \{pp_role => web\}", ran.text), ran.text
    named = agent_of(running, PUPPET_3, "web2.example.com")
    refused = named.test("--dns_alt_names", "other.example.com")
    assert refused.code == 1, refused.text
    running.until_logged("contains extra subject alternative names (DNS:other.example.com), which are disallowed")
    assert running.puppet("cert", "--allow-dns-alt-names", "sign", "web2.example.com").code == 0
    assert named.test().code == 2
