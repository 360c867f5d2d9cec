"""Certificates of the puppet agents 7.23 and 8.10 at our CA: `puppet ssl`, expiry, revocation, and the revocation list's way."""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from tests.interop.pairs import older
from tests.interop.stage import AgentOf, SharedMaster, stage_of
from tests.support.processes import MasterProcess

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "7.23 and 8.10: certificates"),
    pytest.mark.interop,
    pytest.mark.slow,
]


def expire(certificate: Path, ca: Path) -> None:
    """Give an agent the certificate that it would have, had it come a year ago for a month."""
    old = x509.load_pem_x509_certificate(certificate.read_bytes())
    key = load_pem_private_key((ca / "ca_key.pem").read_bytes(), None)
    began = datetime.now(UTC) - timedelta(days=365)
    builder = x509.CertificateBuilder(old.issuer, old.subject, old.public_key(), old.serial_number, began, began + timedelta(days=30))
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))  # type: ignore[arg-type]


def serials_in(crl: Path) -> set[int]:
    return {each.serial_number for each in x509.load_pem_x509_crl(crl.read_bytes())}


def serial_of(certificate: Path) -> int:
    return x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number


def test_ssl_bootstraps_verifies_shows_and_cleans(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    bootstrapped = agent.puppet("ssl", "bootstrap")
    assert bootstrapped.code == 0, bootstrapped.text
    assert agent.certificate.read_bytes() == (shared_master.ca / "signed" / f"{agent.certname}.pem").read_bytes()
    verified = agent.puppet("ssl", "verify")
    assert verified.code == 0 and f"Verified client certificate 'CN={agent.certname}'" in verified, verified.text
    shown = agent.puppet("ssl", "show")
    assert shown.code == 0 and f"CN={agent.certname}" in shown and "Puppet CA: localhost" in shown, shown.text

    first = serial_of(agent.certificate)
    assert shared_master.puppet("cert", "clean", agent.certname).code == 0
    cleaned = agent.puppet("ssl", "clean", "--localca")
    assert cleaned.code == 0, cleaned.text
    assert not agent.certificate.exists() and not (agent.ssl / "certs/ca.pem").exists()
    again = agent.puppet("ssl", "bootstrap")
    assert again.code == 0, again.text
    assert serial_of(agent.certificate) == first + 1


def test_ssl_clean_asks_whether_the_ca_has_forgotten_its_own_host(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    cleaned = agent_of(shared_master, "localhost").puppet("ssl", "clean")
    assert cleaned.code == 1, cleaned.text
    assert "The certificate localhost must be cleaned from the CA first" in cleaned


def test_ssl_submits_a_request_and_downloads_what_was_signed(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master, "manual1.example.com")
    assert f"Submitted certificate request for '{agent.certname}'" in agent.puppet("ssl", "submit_request")
    assert (shared_master.ca / "requests" / f"{agent.certname}.pem").exists()
    early = agent.puppet("ssl", "download_cert")
    assert early.code == 1 and f"The certificate for '{agent.certname}' has not yet been signed" in early, early.text
    assert shared_master.puppet("cert", "sign", agent.certname).code == 0
    fetched = agent.puppet("ssl", "download_cert")
    assert fetched.code == 0 and f"Downloaded certificate '{agent.certname}' with fingerprint" in fetched, fetched.text
    assert agent.puppet("ssl", "verify").code == 0


def test_an_agent_that_waits_runs_as_soon_as_it_is_signed(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master, "manual1.example.com")
    assert agent.puppet("ssl", "submit_request").code == 0
    assert shared_master.puppet("cert", "sign", "--all").code == 0
    ran = agent.test("--waitforcert", "1")
    assert ran.code == 2, ran.text


def test_extensions_and_alternative_names_of_a_request_are_judged_by_the_ca(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    attributes = agent.root / "confdir" / "csr_attributes.yaml"
    attributes.write_text("extension_requests: {pp_role: web, pp_cost_center: '7'}\n")
    shared_master.write(
        {"manifests/site.pp": 'notify { "role ${trusted[extensions][pp_role]} of ${trusted[extensions][pp_cost_center]}": }\n'}
    )
    assert "role web of 7" in agent.test()

    named = agent_of(shared_master, "web2.example.com")
    refused = named.test("--dns_alt_names", "other.example.com")
    assert refused.code == 1, refused.text
    shared_master.until_logged("contains extra subject alternative names (DNS:other.example.com), which are disallowed")
    signed = shared_master.puppet("cert", "--allow-dns-alt-names", "sign", named.certname)
    assert signed.code == 0, signed.text
    assert named.test().code in (0, 2)
    certificate = x509.load_pem_x509_certificate(named.certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    assert sorted(names) == ["other.example.com", named.certname]


def test_an_expired_certificate_is_refused_by_both(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent = agent_of(shared_master)
    assert agent.test().code == 2
    expire(agent.certificate, shared_master.ca)
    ran = agent.test()
    assert ran.code == 1, ran.text
    assert f"The certificate 'CN={agent.certname}' has expired, verify time is synchronized" in ran
    context = ssl.create_default_context(cafile=str(agent.ssl / "certs/ca.pem"))
    context.load_cert_chain(agent.certificate, agent.ssl / "private_keys" / f"{agent.certname}.pem")
    connection = http.client.HTTPSConnection("localhost", shared_master.port, context=context, timeout=30)
    with pytest.raises(ssl.SSLError, match="alert certificate expired"), contextlib.closing(connection):
        connection.request("GET", f"/puppet/v3/node/{agent.certname}?environment=production")
        connection.getresponse()
    shared_master.until_logged("Refused a TLS handshake of 127.0.0.1: certificate has expired")


def test_a_revocation_list_is_fetched_again_when_the_agent_is_told_to(shared_master: SharedMaster, agent_of: AgentOf) -> None:
    agent, other = agent_of(shared_master), agent_of(shared_master, "web2.example.com")
    assert agent.puppet("ssl", "bootstrap").code == 0 and other.puppet("ssl", "bootstrap").code == 0
    crl, gone = agent.ssl / "crl.pem", serial_of(other.certificate)
    assert gone not in serials_in(crl)

    old = time.time() - 2 * 86400  # what is younger than a day could have been missed by an agent whose clock is fast
    os.utime(shared_master.ca / "ca_crl.pem", (old, old))
    older(crl, 10)
    current = agent.test("--crl_refresh_interval", "0s")
    assert "Refreshing CRL" in current and "CRL is unmodified, using existing CRL" in current, current.text
    shared_master.revoke(other.certname)
    assert gone not in serials_in(crl)
    older(crl, 10)
    newer = agent.test("--crl_refresh_interval", "0s")
    assert "Refreshing CRL" in newer and "unmodified" not in newer, newer.text
    assert gone in serials_in(crl)


def test_a_master_with_a_revoked_certificate_is_not_talked_to(running: MasterProcess, agent_of: AgentOf) -> None:
    agent = agent_of(running)
    assert agent.test().code == 2
    (stage_of(agent) / "plain").unlink()
    running.revoke("localhost")
    (agent.ssl / "crl.pem").unlink()
    ran = agent.test()
    assert ran.code == 1, ran.text
    assert "certificate revoked" in ran
    assert not (stage_of(agent) / "plain").exists()
