"""Certificates between Puppet 5.5.22 and ours: requests that wait, revocation, lists, extensions, and the CA's commands over HTTPS."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.interop.pairs import NAME, Pair, older, pair, said
from tests.interop.peers import PUPPET_5, OtherAgent
from tests.interop.ruby_master import RubyMaster
from tests.interop.stage import SITE
from tests.interop.test_puppet_5_5 import KINDS
from tests.interop.test_real_agent_certificates import expire, serial_of, serials_in
from tests.support.processes import Done, MasterProcess, clean_environment, master, run

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "5.5.22: certificates"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_5.why_not()), reason=PUPPET_5.why_not()),
]

OTHER = "web2.example.com"
PATIENCE = 60.0  # seconds for a request to arrive


@pytest.fixture(params=KINDS, ids=lambda kind: kind.replace(" ", "-"))
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """A pair whose administrator signs."""
    with pair(request.param, tmp_path / "master", autosign="false") as found:
        found.write(SITE)
        found.master.start()
        yield found


def anew(master: MasterProcess | RubyMaster) -> None:
    """Let the master know its CRL: this release's reads it only when it starts."""
    if isinstance(master, RubyMaster):
        master.stop()
        master.start()
    else:
        master.until_trust_is_read()


def signed(here: Pair, name: str = NAME) -> None:
    done = here.cert("sign", name)
    assert done.code == 0, done.text


def test_a_request_waits_for_the_administrator_who_sees_its_fingerprint(here: Pair) -> None:
    agent = here.agent()
    waiting = agent.test()
    assert waiting.code == 1, waiting.text
    shown = re.search(r"Request fingerprint \(SHA256\): (\S+)", waiting.text)
    listed = here.cert("list")
    assert shown is not None and f'"{NAME}"' in listed and shown[1] in listed, listed.text
    signed(here)
    assert agent.test().code == 2
    assert agent.test().code == 0


def test_an_agent_that_waits_goes_on_when_it_is_signed(here: Pair) -> None:
    agent = here.agent()
    found: list[Done] = []
    running = threading.Thread(target=lambda: found.append(agent.test("--waitforcert", "1")))
    running.start()
    request, deadline = here.master.ca / "requests" / f"{NAME}.pem", time.monotonic() + PATIENCE
    while not request.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    signed(here)
    running.join(PATIENCE)
    assert found and found[0].code == 2, found


def test_a_revoked_agent_is_refused_and_the_next_list_names_it(here: Pair) -> None:
    agent, other = here.agent(), here.agent(OTHER)
    for name, each in ((NAME, agent), (OTHER, other)):
        assert each.test().code == 1
        signed(here, name)
        assert each.test().code == 2
    crl = other.ssl / "crl.pem"
    gone = serial_of(agent.certificate)
    assert gone not in serials_in(crl)
    revoked = here.cert("revoke", NAME)
    assert revoked.code == 0, revoked.text
    anew(here.master)
    refused = agent.test()
    assert refused.code == 1 and "revoked" in refused.text, refused.text

    if here.our_agent:
        older(crl, 10)
        assert other.test("--crl_refresh_interval", "1s").code == 0
    else:  # it fetches none while it has one
        crl.unlink()
        assert other.test().code == 0
    assert gone in serials_in(crl)


def test_extensions_and_alternative_names_of_a_request_are_judged_by_the_ca(here: Pair) -> None:
    agent = here.agent()
    attributes = agent.root / "confdir" / "csr_attributes.yaml"
    attributes.parent.mkdir(parents=True)
    attributes.write_text("extension_requests: {pp_role: web, pp_cost_center: '7'}\ncustom_attributes: {1.2.840.113549.1.9.7: secret}\n")
    here.write({"manifests/site.pp": 'notify { "role ${trusted[extensions][pp_role]} of ${trusted[extensions][pp_cost_center]}": }\n'})
    assert agent.test("--dns_alt_names", "other.example.com").code == 1
    refused = here.cert("sign", NAME)
    assert refused.code != 0 and "subject alternative names" in refused.text and "DNS:other.example.com" in refused.text, refused.text
    allowed = here.cert("sign", "--allow-dns-alt-names", NAME)
    assert allowed.code == 0, allowed.text
    ran = agent.test()
    assert "role web of 7" in ran, ran.text
    certificate = x509.load_pem_x509_certificate(agent.certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    assert {"other.example.com", NAME} == set(names)


# --- our CA alone


@pytest.fixture
def running(tmp_path: Path) -> Iterator[MasterProcess]:
    with master(tmp_path / "master", autosign="false") as process:
        process.write(SITE)
        yield process.start()


def agent_of(running: MasterProcess, name: str = NAME) -> OtherAgent:
    root = running.root.parent / name
    root.mkdir()
    return OtherAgent(root, running.port, name, {"stage_root": str(root / "stage")}, PUPPET_5)


def test_an_expired_certificate_is_refused_until_there_is_another(running: MasterProcess) -> None:
    agent = agent_of(running)
    agent.test()
    assert running.puppet("cert", "sign", NAME).code == 0
    assert agent.test().code == 2
    current = agent.certificate.read_bytes()
    for place in (agent.certificate, running.ca / "signed" / f"{NAME}.pem"):
        expire(place, running.ca)
    ran = agent.test()
    assert ran.code == 1 and "expired" in ran.text, ran.text
    (running.ca / "signed" / f"{NAME}.pem").write_bytes(current)
    agent.certificate.unlink()
    healed = agent.test()
    assert healed.code == 0 and f"Caching certificate for {NAME}" in healed, healed.text


def test_the_face_certificate_lists_signs_and_finds_over_https(running: MasterProcess) -> None:
    for name in (NAME, OTHER):
        assert agent_of(running, name).test().code == 1

    def face(*words: str) -> Done:
        """`puppet certificate …` as the CA's own host, whose certificate may do so."""
        options = {"confdir": "admin", "vardir": "admin/var", "ssldir": "conf/ssl"}
        given = [part for name, place in options.items() for part in (f"--{name}", str(running.root / place))]
        given += ["--certname", "localhost", "--ca_server", "localhost", "--ca_port", str(running.port), "--keylength", "2048"]
        given += ["--color", "false", "--ca-location", "remote"]
        return run(PUPPET_5.command(running.root, "puppet", "certificate", *words, *given), clean_environment(HOME=str(running.root)))

    def waiting() -> set[str]:
        listed = face("list")
        assert listed.code == 0, listed.text
        return set(re.findall(r'@name="([^"]+)"', listed.text))

    assert waiting() == {NAME, OTHER}
    done = face("sign", NAME)
    assert done.code == 0 and "Error" not in said(done), done.text
    assert waiting() == {OTHER}
    found = face("find", NAME)
    assert (running.ca / "signed" / f"{NAME}.pem").read_text().strip() in found.text, found.text
    missing = face("sign", "nobody.example.com")
    assert missing.code == 1 and "Could not find a certificate for nobody.example.com" in missing, missing.text
    made = face("generate", "made.example.com")
    assert made.code == 0 and "made.example.com" in waiting(), made.text


REVOKE = """
require 'puppet'
require 'puppet/ssl/host'
Puppet.initialize_settings(ARGV.drop(1))
Puppet.push_context(Puppet.base_context(Puppet.settings))
Puppet::SSL::Host.ca_location = :remote
host = Puppet::SSL::Host.new(ARGV[0])
host.desired_state = 'revoked'
Puppet::SSL::Host.indirection.save(host)
"""


def test_its_library_revokes_over_https(running: MasterProcess) -> None:
    """No command of this release does; sites have scripts like this one."""
    agent = agent_of(running)
    assert agent.test().code == 1
    assert running.puppet("cert", "sign", NAME).code == 0
    assert agent.test().code == 2
    (running.root / "revoke.rb").write_text(REVOKE)
    places = {"confdir": "admin", "vardir": "admin/var", "ssldir": "conf/ssl"}
    given = [part for name, place in places.items() for part in (f"--{name}", str(running.root / place))]
    given += ["--certname", "localhost", "--ca_server", "localhost", "--ca_port", str(running.port)]
    script = ["ruby", str(running.root / "revoke.rb"), NAME, *given]
    done = run(PUPPET_5.command(running.root, *script), clean_environment(HOME=str(running.root)))
    assert done.code == 0, done.text
    assert serial_of(agent.certificate) in serials_in(running.ca / "ca_crl.pem")
    refused = agent.test()
    assert refused.code == 1 and "revoked" in refused.text, refused.text


def test_the_face_certificate_is_no_way_around_the_rules(running: MasterProcess) -> None:
    agent = agent_of(running)
    agent.test()
    assert running.puppet("cert", "sign", NAME).code == 0
    assert agent.test().code == 2
    for words in (("list",), ("sign", "nobody.example.com")):
        denied = agent.puppet("certificate", *words, "--ca-location", "remote", "--ca_server", "localhost", "--ca_port", str(agent.port))
        assert denied.code == 1, denied.text
    running.until_logged("Denied: web1.example.com(127.0.0.1) access to '/puppet-ca/v1/certificate_statuses/*'")


# --- its CA alone


def test_our_command_lists_finds_and_signs_at_its_ca(tmp_path: Path) -> None:
    with pair("ours with 5.5", tmp_path / "master", autosign="false") as here:
        rule = "path /puppet-ca/v1/certificate_status\nmethod find, search, save\nallow localhost\n"
        (here.master.root / "conf").mkdir()
        (here.master.root / "conf/auth.conf").write_text(rule)
        here.write(SITE)
        here.master.start()
        for name in (NAME, OTHER):
            assert here.agent(name).test().code == 1

        def command(*words: str) -> Done:
            places = {"confdir": tmp_path / "admin", "vardir": tmp_path / "admin/var", "ssldir": here.master.ca.parent}
            settings = [part for name, place in places.items() for part in (f"--{name}", str(place))]
            settings += ["--certname", "localhost", "--ca_server", "localhost", "--ca_port", str(here.master.port)]
            argv = [sys.executable, "-I", "-m", "bunraku", "certificate", *words, "--ca-location", "remote", *settings]
            return run(argv, clean_environment())

        assert re.findall(r"^(\S+) \(SHA256\)", command("list").text, re.MULTILINE) == [NAME, OTHER]
        done = command("sign", NAME)
        assert done.code == 0 and f"Signed certificate request for {NAME}" in done, done.text
        assert re.findall(r"^(\S+) \(SHA256\)", command("list").text, re.MULTILINE) == [OTHER]
        assert (here.master.ca / "signed" / f"{NAME}.pem").read_text().strip() in command("find", NAME)
        missing = command("sign", "nobody.example.com")
        assert missing.code == 1 and "Cannot sign for host nobody.example.com without a certificate request" in missing, missing.text
