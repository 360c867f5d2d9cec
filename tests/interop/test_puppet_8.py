"""What is particular to the puppet agent 8.10, unmodified, against our master: renewal, its defaults, its values."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from tests.interop.pairs import older
from tests.interop.peers import PUPPET_8, OtherAgent, agent_of
from tests.interop.stage import SITE, SharedMaster, reports_of, stage_of
from tests.support.ports import silent_port
from tests.support.processes import MasterProcess, master

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "8.10: what only it does"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_8.why_not()), reason=PUPPET_8.why_not()),
]

SOON = ("--hostcert_renewal_interval", "10y")  # a certificate of 5 years ends soon then


@pytest.fixture
def agent(shared_master: SharedMaster) -> OtherAgent:
    return agent_of(shared_master, PUPPET_8)


def certificate_of(agent: OtherAgent) -> x509.Certificate:
    return x509.load_pem_x509_certificate(agent.certificate.read_bytes())


def lasts(certificate: x509.Certificate) -> timedelta:
    return certificate.not_valid_after_utc - datetime.now(UTC)


@pytest.mark.smoke
def test_it_renews_its_certificate_and_goes_on_with_the_new_one(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    first = certificate_of(agent)
    renewing = agent.test(*SOON)
    assert renewing.code == 0 and "Renewed client certificate: " in renewing, renewing.text
    second = certificate_of(agent)
    assert second.serial_number > first.serial_number and second.public_key() == first.public_key()
    assert timedelta(days=89) < lasts(second) < timedelta(days=91)
    assert x509.load_pem_x509_certificate((shared_master.ca / "signed" / f"{agent.certname}.pem").read_bytes()) == second
    last = agent.test()
    assert last.code == 0 and "Renewed" not in last, last.text
    assert shared_master.log.count('"POST /puppet-ca/v1/certificate_renewal" 200') == 1

    shared_master.revoke(agent.certname)
    refused = agent.test(*SOON)
    assert refused.code == 1 and "revoked" in refused, refused.text
    assert certificate_of(agent) == second


def test_a_master_that_renews_nothing_keeps_no_run_from_going_on(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true") as process:
        process.write(SITE)
        (tmp_path / "master/conf/puppet.conf").write_text("[master]\nallow_auto_renewal = false\n")
        agent = agent_of(process.start(), PUPPET_8)
        assert agent.test().code == 2
        first = certificate_of(agent)
        ran = agent.test(*SOON)
        assert ran.code == 0 and "Certificate autorenewal has not been enabled on the server." in ran, ran.text
        assert certificate_of(agent) == first


def test_the_ca_is_looked_after_and_its_revocation_list_with_it(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    old = time.time() - 2 * 86400  # what is younger than a day could have been missed by an agent whose clock is fast
    for name in ("ca_crt.pem", "ca_crl.pem"):
        os.utime(shared_master.ca / name, (old, old))
    copies = agent.ssl / "certs/ca.pem", agent.ssl / "crl.pem"
    for path in copies:
        older(path, 10)
    ran = agent.test("--ca_refresh_interval", "1s", "--crl_refresh_interval", "1s")
    assert ran.code == 0, ran.text
    assert "Refreshing CA certificate" in ran and "CA certificate is unmodified, using existing CA certificate" in ran
    assert "Refreshing CRL" in ran and "CRL is unmodified, using existing CRL" in ran
    assert len(re.findall(r'"GET /puppet-ca/v1/certificate/ca" 304', shared_master.log)) == 1

    other = shared_master.named("other.example.com")
    assert shared_master.puppet("cert", "generate", other).code == 0
    shared_master.revoke(other)
    for path in copies:
        older(path, 10)
    newer = agent.test("--ca_refresh_interval", "0s", "--crl_refresh_interval", "1s")
    assert newer.code == 0 and "Refreshed CRL: " in newer, newer.text
    assert (agent.ssl / "crl.pem").read_bytes() == (shared_master.ca / "ca_crl.pem").read_bytes()


def test_it_follows_a_new_ca_by_itself(running: MasterProcess) -> None:
    """Other releases have to be given files, and enrol anew."""
    agent = agent_of(running, PUPPET_8)
    often = ("--ca_refresh_interval", "0s")

    def next_phase(*words: str) -> None:
        done = running.puppet("cert", "rollover", *words)
        assert done.code == 0, done.text
        running.until_trust_is_read()
        for path in (agent.ssl / "certs/ca.pem", agent.ssl / "crl.pem"):
            older(path, 10)

    assert agent.test().code == 2
    next_phase("start")
    assert agent.test(*often).code == 0
    assert (agent.ssl / "certs/ca.pem").read_bytes() == (running.ca / "ca_crt.pem").read_bytes()
    next_phase("switch", "--now")
    renewing = agent.test(*often, *SOON)
    assert renewing.code == 0 and "Renewed client certificate: " in renewing, renewing.text
    assert certificate_of(agent).issuer.rfc4514_string().endswith("(2)")
    next_phase("finish")
    assert agent.test(*often).code == 0
    assert len(x509.load_pem_x509_certificates((agent.ssl / "certs/ca.pem").read_bytes())) == 1
    assert agent.test().code == 0


def test_a_request_that_was_made_before_is_the_one_that_is_sent(agent: OtherAgent) -> None:
    made = agent.puppet("ssl", "generate_request")
    request = agent.ssl / "certificate_requests" / f"{agent.certname}.pem"
    assert made.code == 0 and f"Generated certificate request in '{request}'" in made, made.text
    key = x509.load_pem_x509_csr(request.read_bytes()).public_key()
    assert agent.test().code == 2
    assert certificate_of(agent).public_key() == key


VALUES = """
$root = $facts['stage_root']
file { $root: ensure => directory }
file { "${root}/secret": content => Sensitive('very hidden') }
file { "${root}/binary": content => Binary('AAH/gA==') }
file { "${root}/raw": content => binary_file('stage/raw') }
file { "${root}/made": content => 'made before' }
-> file { "${root}/deferred": content => Deferred('stage::read', ["${root}/made"]) }
file { "${root}/deferred_secret": content => Sensitive(Deferred('sprintf', ['%s', 'deeply hidden'])) }
notify { 'time': message => Timestamp('2020-01-02T03:04:05 UTC') }
notify { 'span': message => Timespan('1-00:00:00') }
notify { 'version': message => SemVer('1.2.3') }
notify { 'pattern': message => /a.b/ }
notify { 'type': message => Array[Integer[1, 2]] }
notify { 'default': message => default }
notify { 'hash': message => { 1 => undef, 'k' => [undef, 2.5] } }
"""
READ = """
Puppet::Functions.create_function(:'stage::read') do
  def read(path)
    File.read(path)
  end
end
"""
SHOWN = {
    "time": "2020-01-02T03:04:05.000000000 UTC",
    "span": "1-00:00:00.0",
    "version": "1.2.3",
    "pattern": "a.b",
    "type": "Array[Integer[1, 2]]",
    "default": "default",
    "hash": "{",
}


def test_values_of_all_types_arrive_and_deferred_ones_are_had_at_their_turn(shared_master: SharedMaster, agent: OtherAgent) -> None:
    shared_master.write({"manifests/site.pp": VALUES, "modules/stage/lib/puppet/functions/stage/read.rb": READ})
    (shared_master.site / "modules/stage/files/raw").write_bytes(b"\x00\xff\n")
    ran = agent.test("--show_diff")
    assert ran.code == 2, ran.text
    stage = stage_of(agent)
    assert (stage / "binary").read_bytes() == b"\x00\x01\xff\x80"
    assert (stage / "raw").read_bytes() == b"\x00\xff\n"
    assert (stage / "deferred").read_text() == "made before"
    assert (stage / "secret").read_text() == "very hidden" and (stage / "deferred_secret").read_text() == "deeply hidden"
    shown = dict(re.findall(r"Notify\[(\w+)\]/message: defined 'message' as (.+)", ran.text))
    assert shown == SHOWN
    (report,) = (shared_master.reports / agent.certname).iterdir()
    for text in (ran.text, report.read_text(), shared_master.log):
        assert "hidden" not in text
    assert reports_of(shared_master)[-1]["resource_statuses"][f"File[{stage}/secret]"]["changed"]
    (stage / "deferred").unlink()
    (stage / "made").unlink()
    early = agent.test("--preprocess_deferred")  # as agents before 8 did: before anything else is applied
    assert early.code == 1 and "No such file or directory" in early and not (stage / "made").exists(), early.text


def test_legacy_facts_are_not_sent_unless_it_is_told_to(shared_master: SharedMaster, agent: OtherAgent) -> None:
    message = "'${facts['osfamily']}' '${hostname}' of ${facts['os']['family']}"
    shared_master.write({"manifests/site.pp": f'notify {{ "legacy {message}": }}\n'})
    ran = agent.test()
    assert ran.code == 2 and "legacy '' '' of Debian" in ran, ran.text
    shared_master.until_logged("Unknown variable: 'hostname'")
    stored = shared_master.root / f"var/yaml/facts/{agent.certname}.yaml"
    assert "osfamily" not in stored.read_text()
    with_them = agent.test("--include_legacy_facts")
    assert with_them.code == 2 and re.search(r"legacy 'Debian' '\w+' of Debian", with_them.text), with_them.text
    assert "osfamily: Debian" in stored.read_text()


def test_its_report_leaves_out_what_was_as_it_should_be(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    (stage_of(agent) / "plain").write_text("spoilt\n")
    assert agent.test().code == 2
    assert agent.test("--no-exclude_unchanged_resources").code == 0
    first, second, last = reports_of(shared_master)
    plain = f"File[{stage_of(agent)}/plain]"
    assert plain in first["resource_statuses"]
    assert {name for name, each in second["resource_statuses"].items() if each["changed"]} == {plain}
    assert f"File[{stage_of(agent)}/facts]" not in second["resource_statuses"]
    assert second["corrective_change"] is True and second["resource_statuses"][plain]["corrective_change"] is True
    assert plain in last["resource_statuses"]
    assert (second["report_format"], second["puppet_version"]) == (12, "8.10.0")
    assert second["transaction_uuid"] != first["transaction_uuid"] and second["catalog_uuid"] and second["transaction_completed"] is True
    totals = {name: value for name, _, value in second["metrics"]["resources"]["values"]}
    assert totals["changed"] == 1 and totals["total"] > len(second["resource_statuses"])


def test_facts_beyond_its_limits_are_warned_about_and_sent(shared_master: SharedMaster, agent: OtherAgent) -> None:
    ran = agent.test("--number_of_facts_soft_limit", "10", "--fact_value_length_soft_limit", "20")
    assert ran.code == 2 and "exceeds" in ran, ran.text
    assert (shared_master.root / f"var/yaml/facts/{agent.certname}.yaml").exists()


def test_of_several_masters_it_takes_the_first_that_answers(shared_master: SharedMaster, agent: OtherAgent) -> None:
    assert agent.test().code == 2
    (stage_of(agent) / "plain").unlink()
    with silent_port() as silent:
        ran = agent.test("--server_list", f"localhost:{silent},localhost:{shared_master.port}")
        nobody = agent.test("--server_list", f"localhost:{silent}")
    assert ran.code == 2, ran.text
    assert reports_of(shared_master)[-1]["server_used"] == f"localhost:{shared_master.port}"
    shared_master.until_logged('"GET /status/v1/simple/server" 200')
    assert nobody.code == 1 and "Could not select a functional puppet server" in nobody, nobody.text
