"""`puppetserver ca`, the tool that administrators of later servers know, with our CA: over HTTPS, and on the files that both keep."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from tests.interop.puppetserver import PUPPETSERVER_7, PUPPETSERVER_8, PUPPETSERVERS, TOOL, Installed
from tests.interop.stage import SITE, agent_of, stage_of
from tests.interop.test_real_agent_certificates import serial_of, serials_in
from tests.support.processes import Done, MasterProcess, OurAgent, clean_environment, run
from tests.support.smoke import with_smoke

pytestmark = [
    pytest.mark.works_with("CAs and certificate commands of Puppet", "puppetserver ca 2.4 and 2.7 with this CA"),
    pytest.mark.interop,
    pytest.mark.slow,
]
RELEASES = {"7.9.5": "2.4.0", "8.7.0": "2.7.0"}  # of the tool, by the server that it comes with


@dataclass(slots=True)
class Managed(MasterProcess):
    """A master, and the tool of some release that manages its CA."""

    tools: Installed = PUPPETSERVERS[0]


@pytest.fixture(params=PUPPETSERVERS, ids=lambda each: RELEASES[each.version])
def process(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Managed]:
    """A master that is not started yet; its agents wait to be signed."""
    if reason := request.param.why_not():
        pytest.skip(reason)
    managed = Managed(tmp_path / "master", {"autosign": "false"}, tools=request.param)
    try:
        managed.write(SITE)
        yield managed
    finally:
        managed.kill()


def tool(process: Managed, *words: str) -> Done:
    """`puppetserver ca …` with the master's folders."""
    settings = {"confdir": process.root / "conf", "ssldir": process.ca.parent, "cadir": process.ca, "certname": "localhost"}
    settings |= {"server": "localhost", "serverport": process.port or 1, "keylength": 2048}
    (process.root / "tool.conf").write_text("[main]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    command = process.tools.command(process.root.parent, TOOL, "ca", *words, "--config", str(process.root / "tool.conf"))
    return run(command, clean_environment(HOME=str(process.root)))


def our_agent(process: Managed, name: str) -> OurAgent:
    root = process.root.parent / name
    root.mkdir()
    return OurAgent(root, process.port, f"{name}.example.com", facts={"stage_root": str(root / "stage")})


def all_of(process: Managed) -> dict[str, list[dict[str, Any]]]:
    """What the tool lists, by state; a line of advice about the folder comes behind the JSON."""
    found: dict[str, list[dict[str, Any]]] = json.loads(tool(process, "list", "--all", "--format", "json").text.splitlines()[0])
    return found


@pytest.mark.parametrize("process", with_smoke(PUPPETSERVERS, PUPPETSERVER_7), ids=RELEASES.values(), indirect=True)
def test_it_lists_signs_revokes_and_cleans(process: Managed) -> None:
    process.start()
    for name in ("web1", "web2", "web3"):
        assert our_agent(process, name).test("--waitforcert", "0").code == 1
    listed = tool(process, "list")
    assert listed.code == 0 and "Requested Certificates:" in listed and "web1.example.com" in listed, listed.text

    assert "Successfully signed certificate request for web1.example.com" in tool(process, "sign", "--certname", "web1.example.com")
    assert "Successfully signed certificate request for web3.example.com" in tool(process, "sign", "--all")
    signed = all_of(process)
    assert {each["name"] for each in signed["signed"]} == {"localhost", "web1.example.com", "web2.example.com", "web3.example.com"}
    assert signed["requested"] == []
    again = tool(process, "sign", "--certname", "web1.example.com")
    assert again.code == 1, again.text

    revoked = tool(process, "revoke", "--certname", "web1.example.com")
    assert revoked.code == 0 and "Certificate for web1.example.com has been revoked" in revoked, revoked.text
    assert serial_of(process.ca / "signed" / "web1.example.com.pem") in serials_in(process.ca / "ca_crl.pem")
    states = all_of(process)
    assert [each["name"] for each in states["revoked"]] == ["web1.example.com"]
    unknown = tool(process, "revoke", "--certname", "nobody.example.com")
    assert unknown.code == 1 and "Could not find certificate for nobody.example.com" in unknown, unknown.text

    cleaned = tool(process, "clean", "--certname", "web2.example.com,web3.example.com")
    assert cleaned.code == 0, cleaned.text
    assert not (process.ca / "signed" / "web2.example.com.pem").exists()
    assert len(serials_in(process.ca / "ca_crl.pem")) == 3
    one = tool(process, "list", "--certname", "web1.example.com")
    assert one.code == 0 and re.search(r"Revoked Certificates:\s+web1\.example\.com", one.text), one.text


def test_it_generates_keys_and_certificates_over_https(process: Managed) -> None:
    process.start()
    made = tool(process, "generate", "--certname", "made.example.com")
    assert made.code == 0, made.text
    certificate = x509.load_pem_x509_certificate((process.ca.parent / "certs/made.example.com.pem").read_bytes())
    key = load_pem_private_key((process.ca.parent / "private_keys/made.example.com.pem").read_bytes(), None)
    assert certificate.public_key() == key.public_key()
    assert (process.ca / "signed" / "made.example.com.pem").exists()
    named = tool(process, "generate", "--certname", "named.example.com", "--subject-alt-names", "other.example.com")
    assert named.code == 1 and "subject alternative names" in named, named.text


def test_it_says_for_how_long(process: Managed) -> None:
    process.start()
    for name in ("web1", "web2"):
        assert our_agent(process, name).test("--waitforcert", "0").code == 1
    for words in (("--certname", "web1.example.com", "--ttl", "2d"), ("--all", "--ttl", "3h")):
        signed = tool(process, "sign", *words)
        assert signed.code == 0, signed.text
    made = tool(process, "generate", "--certname", "made.example.com", "--ttl", "30d")
    assert made.code == 0, made.text
    for name, ttl in (("web1", timedelta(days=2)), ("web2", timedelta(hours=3)), ("made", timedelta(days=30))):
        certificate = x509.load_pem_x509_certificate((process.ca / "signed" / f"{name}.example.com.pem").read_bytes())
        assert abs(certificate.not_valid_after_utc - datetime.now(UTC) - ttl) < timedelta(minutes=5), name


def test_what_it_deleted_is_gone_for_us_too_and_what_it_pruned_stays_revoked(process: Managed) -> None:
    if process.tools is not PUPPETSERVER_8:
        pytest.skip("the tool of 7 cannot")
    process.start()
    agents = [our_agent(process, name) for name in ("web1", "web2", "web3", "web4")]
    for agent in agents:
        assert agent.test("--waitforcert", "0").code == 1
    assert tool(process, "sign", "--all").code == 0
    assert [agent.test().code for agent in agents] == [2, 2, 2, 2]
    assert tool(process, "revoke", "--certname", "web1.example.com,web2.example.com").code == 0
    gone, kept = (serial_of(process.ca / "signed" / f"{name}.example.com.pem") for name in ("web1", "web2"))
    running = tool(process, "delete", "--revoked")
    assert running.code == 1 and "Puppetserver service is running" in running, running.text
    process.stop()

    deleted = tool(process, "delete", "--revoked")
    assert deleted.code == 0 and "2 certificates deleted." in deleted, deleted.text
    assert "1 certificate deleted." in tool(process, "delete", "--certname", "web3.example.com")
    pruned = tool(process, "prune", "--remove-entries", "--serial", f"{gone:x}")
    assert pruned.code == 0 and "Removed 1 certs from Puppet's CRL." in pruned, pruned.text
    process.start()
    assert [each["name"] for each in all_of(process)["signed"]] == ["localhost", "web4.example.com"]
    assert [agent.test().code for agent in agents] == [1, 1, 0, 0]
    assert tool(process, "revoke", "--certname", "web4.example.com").code == 0
    assert {kept, gone} <= serials_in(process.ca / "ca_crl.pem")


def test_a_list_for_infrastructure_that_it_made_is_kept_beside_ours(process: Managed) -> None:
    process.start()
    process.stop()
    (process.ca / "infra_inventory.txt").write_text("localhost\n")
    enabled = tool(process, "enable", "--infracrl")
    assert enabled.code == 0, enabled.text
    before = (process.ca / "infra_crl.pem").read_bytes()
    process.start()
    assert our_agent(process, "web1").test("--waitforcert", "0").code == 1
    assert tool(process, "sign", "--all").code == 0
    assert tool(process, "revoke", "--certname", "web1.example.com").code == 0
    assert (process.ca / "infra_crl.pem").read_bytes() == before


def test_it_generates_an_administrator_beside_a_master_that_stands_still(process: Managed) -> None:
    process.start()
    process.stop()
    made = tool(process, "generate", "--certname", "admin.example.com", "--ca-client")
    assert made.code == 0, made.text
    process.start()
    assert our_agent(process, "web1").test("--waitforcert", "0").code == 1
    listed = tool(process, "list")
    assert "web1.example.com" in listed, listed.text
    assert running_number(process) == serial_of(process.ca.parent / "certs/admin.example.com.pem") + 1


def running_number(process: Managed) -> int:
    """The serial that the CA gives next."""
    return int((process.ca / "serial").read_text().strip(), 16)


def test_it_prunes_a_revocation_list_which_we_serve_afterwards(process: Managed) -> None:
    process.start()
    assert our_agent(process, "web1").test("--waitforcert", "0").code == 1
    assert tool(process, "sign", "--all").code == 0
    assert tool(process, "revoke", "--certname", "web1.example.com").code == 0
    process.stop()
    twice(process.ca)
    pruned = tool(process, "prune")
    assert pruned.code == 0 and "Removed 1 duplicated certs from Puppet's CRL." in pruned, pruned.text
    process.start()
    assert running_agent_is_refused(process, "web1")
    assert our_agent(process, "web2").test("--waitforcert", "0").code == 1
    assert tool(process, "sign", "--all").code == 0
    assert tool(process, "revoke", "--certname", "web2.example.com").code == 0
    assert len(x509.load_pem_x509_crl((process.ca / "ca_crl.pem").read_bytes())) == 2


def twice(ca: Path) -> None:
    """Names every revoked certificate twice in the list, as servers before 6 could."""
    old = x509.load_pem_x509_crl((ca / "ca_crl.pem").read_bytes())
    key = load_pem_private_key((ca / "ca_key.pem").read_bytes(), None)
    builder = x509.CertificateRevocationListBuilder(old.issuer, old.last_update_utc, old.next_update_utc)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    for revoked in [*old, *old]:
        builder = builder.add_revoked_certificate(revoked)
    (ca / "ca_crl.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))  # type: ignore[arg-type]


def running_agent_is_refused(process: Managed, name: str) -> bool:
    root = process.root.parent / name
    ran = OurAgent(root, process.port, f"{name}.example.com", facts={"stage_root": str(root / "stage")}).test("--waitforcert", "0")
    return ran.code == 1


def both_agents_run(process: Managed) -> None:
    """A first run of ours and of Debian's agent, each signed by the tool."""
    ours, real = our_agent(process, "ours"), agent_of(process, "real.example.com")
    assert ours.test("--waitforcert", "0").code == 1 and real.test("--waitforcert", "0").code == 1
    signed = tool(process, "sign", "--certname", "ours.example.com,real.example.com")
    assert signed.code == 0, signed.text
    for ran in (ours.test(), real.test()):
        assert ran.code in (0, 2), ran.text
    assert (stage_of(real) / "plain").read_text() == "plain text\n"
    revoked = tool(process, "revoke", "--certname", "ours.example.com,real.example.com")
    assert revoked.code == 0, revoked.text
    assert ours.test().code == 1 and real.test().code == 1


def test_a_ca_that_it_set_up_is_ours_as_it_is(process: Managed) -> None:
    made = tool(process, "setup")
    assert made.code == 0 and "Generation succeeded" in made, made.text
    bundle = x509.load_pem_x509_certificates((process.ca / "ca_crt.pem").read_bytes())
    assert len(bundle) == 2  # a root, and the CA that signs
    before = (process.ca / "ca_key.pem").read_bytes()
    process.start()
    assert (process.ca / "ca_key.pem").read_bytes() == before
    both_agents_run(process)


def imported(folder: Path) -> list[str]:
    """A company's root, a CA below it, their lists; what the tool is told about them."""
    now = datetime.now(UTC) - timedelta(days=1)
    later = now + timedelta(days=1000)
    certificates, crls = [], []
    issuer_name: x509.Name | None = None
    issuer_key: rsa.RSAPrivateKey | None = None
    for number, common_name in enumerate(("Example Root", "Example Puppet CA"), 1):
        key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        signer = issuer_key or key
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = x509.CertificateBuilder(issuer_name or name, name, key.public_key(), number, now, later)
        builder = builder.add_extension(x509.BasicConstraints(True, None), True).add_extension(usage, True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False)
        certificates.insert(0, builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM))
        crl = x509.CertificateRevocationListBuilder(name, now, later).add_extension(x509.CRLNumber(0), False)
        crl = crl.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), False)
        crls.insert(0, crl.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        issuer_name, issuer_key = name, key
    assert issuer_key is not None
    folder.mkdir()
    (folder / "key.pem").write_bytes(issuer_key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    (folder / "bundle.pem").write_bytes(b"".join(certificates))
    (folder / "crls.pem").write_bytes(b"".join(crls))
    files = {"--private-key": "key.pem", "--cert-bundle": "bundle.pem", "--crl-chain": "crls.pem"}
    return [part for option, name in files.items() for part in (option, str(folder / name))]


def test_a_companys_ca_that_it_imported_is_ours_as_it_is(process: Managed, tmp_path: Path) -> None:
    done = tool(process, "import", *imported(tmp_path / "company"))
    assert done.code == 0 and "Import succeeded" in done, done.text
    process.start()
    both_agents_run(process)
    issued = x509.load_pem_x509_certificate((process.ca / "signed" / "real.example.com.pem").read_bytes())
    assert issued.issuer.rfc4514_string() == "CN=Example Puppet CA"


@pytest.mark.skipif(os.geteuid() != 0, reason="the tool gives what it makes to the user puppet")
def test_what_it_makes_as_root_is_readable_for_a_master(process: Managed) -> None:
    assert tool(process, "setup").code == 0
    assert (process.ca / "ca_key.pem").stat().st_mode & 0o077 == 0o040
