import subprocess

import pytest

from certs import certificates, text
from certs.files import bundles
from certs.keys import KeyKind


@pytest.mark.slow
@pytest.mark.parametrize("kind", [KeyKind("ec"), KeyKind("rsa", 2048)])
def test_a_certificate_reads_as_openssl_prints_it(ca, now, kind) -> None:
    made = certificates.leaf(
        "web1.example.com",
        kind.generate().public_key(),
        issuer=ca.certificate,
        issuer_key=ca.key,
        serial=4711,
        ttl=86400,
        now=now,
        alternative_names=["puppet", "IP:10.0.0.1"],
    )
    for thing in (made, ca.certificate):
        command = ["openssl", "x509", "-noout", "-text", "-nameopt", "oneline"]
        wanted = subprocess.run(command, input=bundles.dump([thing]), check=True, capture_output=True).stdout.decode()
        found = text.certificate(thing)
        assert [line.rstrip() for line in found.splitlines()] == [line.rstrip() for line in wanted.splitlines()]


def test_puppet_extensions_are_shown_by_name_and_controls_are_escaped(ca) -> None:
    leaf = ca.leaf("web1", extensions=[certificates.text_extension("1.3.6.1.4.1.34380.1.1.13", "web\x1b[2K")])
    shown = text.certificate(leaf)
    assert "pp_role: \n                web\\u{1b}[2K\n" in shown
    assert "\x1b" not in shown
