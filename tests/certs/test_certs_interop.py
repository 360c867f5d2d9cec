"""What we issue, read by OpenSSL and by Puppet; what Puppet asks for, read by us."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs import certificates, crl, csr, keys, ocsp
from certs.files import bundles
from certs.keys import KeyKind
from tests.support.needs import needs_puppet
from tests.support.smoke import with_smoke

pytestmark = [pytest.mark.slow]
NOW = datetime.now(UTC).replace(microsecond=0)


KINDS = [KeyKind("rsa", 2048), KeyKind("ec")]


@pytest.fixture(scope="module", params=KINDS, ids=["rsa", "ec"])
def issued(request, tmp_path_factory) -> Path:
    """An ssldir with a good and a revoked certificate, and the CA's files."""
    root = tmp_path_factory.mktemp("ssl")
    for folder in ("certs", "private_keys"):
        (root / folder).mkdir()
    key = request.param.generate()
    authority = certificates.self_signed_authority(key, "Puppet CA: m.example.com", serial=1, ttl=10**8, now=NOW)
    (root / "certs" / "ca.pem").write_bytes(certificates.pem(authority))
    (root / "crl.pem").write_bytes(bundles.dump([crl.sign(authority, key, number=3, now=NOW, entries=[crl.entry(3, NOW)])]))
    for serial, name in ((2, "good.example.com"), (3, "bad.example.com")):
        own = request.param.generate()
        keys.save(root / "private_keys" / f"{name}.pem", own)
        made = certificates.leaf(
            name,
            own.public_key(),
            issuer=authority,
            issuer_key=key,
            serial=serial,
            ttl=10**7,
            now=NOW,
            alternative_names=["IP:10.0.0.1", "www"],
        )
        (root / "certs" / f"{name}.pem").write_bytes(certificates.pem(made))
    return root


def test_openssl_verifies_the_chain_strictly_and_sees_the_revocation(issued: Path) -> None:
    ca, lists = str(issued / "certs" / "ca.pem"), str(issued / "crl.pem")
    for name, code in (("good", 0), ("bad", 2)):
        leaf = str(issued / "certs" / f"{name}.example.com.pem")
        for purpose in ("sslserver", "sslclient"):
            command = ["openssl", "verify", "-x509_strict", "-crl_check_all", "-CAfile", ca, "-CRLfile", lists, "-purpose", purpose, leaf]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            assert found.returncode == code, found.stderr
            assert code == 0 or "certificate revoked" in found.stderr


@needs_puppet
@pytest.mark.interop
@pytest.mark.parametrize("issued", with_smoke(KINDS, KINDS[0]), ids=["rsa", "ec"], indirect=True)
def test_puppet_verifies_the_chain_and_sees_the_revocation(issued: Path, tmp_path: Path) -> None:
    for name, code, words in (
        ("good", 0, "Verified client certificate 'CN=good.example.com'"),
        ("bad", 1, "Certificate 'CN=bad.example.com' is revoked"),
    ):
        ssl = tmp_path / name
        shutil.copytree(issued, ssl)
        places = ["--confdir", str(tmp_path), "--vardir", str(tmp_path / "var"), "--ssldir", str(ssl), "--color", "false"]
        command = ["/usr/bin/puppet", "ssl", "verify", "--certname", f"{name}.example.com", *places]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert found.returncode == code, found.stderr
        assert words in found.stdout + found.stderr


@needs_puppet
@pytest.mark.interop
def test_a_request_of_puppet_is_read_whole(tmp_path: Path) -> None:
    script = """
      require 'puppet'; require 'puppet/ssl/certificate_request'
      Puppet.initialize_settings(['--confdir', ARGV[0], '--vardir', ARGV[0]])
      Puppet::SSL::Oids.register_puppet_oids
      request = Puppet::SSL::CertificateRequest.new('web1.example.com')
      request.generate(OpenSSL::PKey::RSA.new(2048), dns_alt_names: 'www,IP:10.0.0.1',
        csr_attributes: {'1.2.840.113549.1.9.7' => 's3cret'},
        extension_requests: {'pp_role' => 'web', '1.3.6.1.4.1.34380.1.2.1' => 'gruen'})
      puts request.content.to_pem
    """
    found = subprocess.run(["ruby", "-e", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120)
    facts = csr.parse(found.stdout.encode())
    assert facts.name == "web1.example.com"
    assert facts.signature_valid
    assert facts.strength == keys.Strength("rsa", 2048, 65537)
    assert facts.alternative_names == ("DNS:web1.example.com", "DNS:www", "IP:10.0.0.1")
    assert {e.oid: e.text for e in facts.extensions} == {"1.3.6.1.4.1.34380.1.1.13": "web", "1.3.6.1.4.1.34380.1.2.1": "gruen"}
    assert facts.attribute("1.2.840.113549.1.9.7") == "s3cret"


@needs_puppet
@pytest.mark.interop
def test_puppet_reads_our_requests(tmp_path: Path) -> None:
    attributes = csr.CsrAttributes({"1.2.840.113549.1.9.7": "s3cret"}, {"1.3.6.1.4.1.34380.1.1.13": "web"})
    request = csr.build(KeyKind("ec").generate(), "web1", dns_alt_names=["www"], attributes=attributes)
    (tmp_path / "r.pem").write_bytes(bundles.dump([request]))
    script = """
      require 'puppet'; require 'puppet/ssl/certificate_request'
      Puppet::SSL::Oids.register_puppet_oids
      request = Puppet::SSL::CertificateRequest.from_s(File.read(ARGV[0]))
      p request.name, request.subject_alt_names, request.custom_attributes.map(&:values),
        request.request_extensions.reject { |e| e['oid'] == 'subjectAltName' }.map(&:values),
        request.content.verify(request.content.public_key)
    """
    found = subprocess.run(["ruby", "-e", script, str(tmp_path / "r.pem")], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.splitlines() == [
        '"web1"',
        '["DNS:web1", "DNS:www"]',
        '[["challengePassword", "s3cret"]]',
        '[["pp_role", "web"]]',
        "true",
    ]


def test_openssl_asks_and_believes_our_ocsp_answers(tmp_path: Path) -> None:
    key = KeyKind("ec").generate()
    authority = certificates.self_signed_authority(key, "ca", serial=1, ttl=10**8, now=NOW)
    (tmp_path / "ca.pem").write_bytes(certificates.pem(authority))
    for serial, status in ((2, "good"), (3, "revoked"), (4, "unknown")):
        made = certificates.leaf(
            f"web{serial}", KeyKind("ec").generate().public_key(), issuer=authority, issuer_key=key, serial=serial, ttl=10**7, now=NOW
        )
        (tmp_path / "leaf.pem").write_bytes(certificates.pem(made))
        ask = ["openssl", "ocsp", "-issuer", "ca.pem", "-cert", "leaf.pem", "-reqout", "request.der"]
        subprocess.run(ask, cwd=tmp_path, check=True, capture_output=True)
        asked = ocsp.parse_request((tmp_path / "request.der").read_bytes())
        answer = ocsp.build_response(asked, status, authority=authority, key=key, now=NOW)  # type: ignore[arg-type]
        (tmp_path / "answer.der").write_bytes(answer)
        read = [
            "openssl",
            "ocsp",
            "-issuer",
            "ca.pem",
            "-cert",
            "leaf.pem",
            "-reqin",
            "request.der",
            "-respin",
            "answer.der",
            "-CAfile",
            "ca.pem",
            "-no_nonce",  # it would add another one to the request that it reads
        ]
        found = subprocess.run(read, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert "Response verify OK" in found.stderr
        assert f"leaf.pem: {status}" in found.stdout
