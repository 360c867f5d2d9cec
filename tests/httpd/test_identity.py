"""Who a peer is, without a connection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from certs import certificates
from certs.oids import OidNames
from httpd.dispatch.identity import identity_headers, peer_of, still_valid
from httpd.peers import ProxyRules, address_of
from httpd.tls.trust import Revocations
from shared.errors import ConfigError, Denied
from tests.support.raw_master import CaFolder

NAMES = OidNames()


@pytest.mark.parametrize(
    ("peername", "expected"),
    [
        (("10.1.2.3", 5), "10.1.2.3"),
        (("::ffff:10.1.2.3", 5, 0, 0), "10.1.2.3"),
        (("fe80::1%eth0", 5, 0, 2), "fe80::1"),
        (None, ""),
        ("", ""),
    ],
)
def test_the_address_is_the_plain_one(peername: object, expected: str) -> None:
    assert address_of(peername) == expected


def test_a_peer_without_certificate_is_its_address() -> None:
    peer = peer_of(None, "10.1.2.3", NAMES)
    assert (peer.client.name, peer.authenticated) == ("10.1.2.3", False)


def test_a_peer_with_one_has_its_name_and_extensions(tmp_path: Path) -> None:
    ca = CaFolder(tmp_path)
    made = ca.issue("web1", extensions=(certificates.text_extension("1.3.6.1.4.1.34380.1.1.13", "www"),))
    client = peer_of(made.public_bytes(Encoding.DER), "10.1.2.3", NAMES).client
    assert (client.name, client.authenticated, client.extensions) == ("web1", True, {"pp_role": "www"})
    assert client.alt_names == ("DNS:web1",)


def test_the_ca_itself_is_nobody(tmp_path: Path) -> None:
    ca = CaFolder(tmp_path, name="root")
    peer = peer_of(ca.certificate.public_bytes(Encoding.DER), "10.1.2.3", NAMES)
    assert not peer.authenticated
    with pytest.raises(Denied, match="names no node"):
        still_valid(peer, Revocations(), datetime.now(UTC))


def test_revoked_and_ended_certificates_are_denied_from_that_moment(tmp_path: Path) -> None:
    ca = CaFolder(tmp_path)
    made = ca.issue("web1")
    peer = peer_of(made.public_bytes(Encoding.DER), "", NAMES)
    assert still_valid(peer, Revocations(), ca.now).name == "web1"
    issuer = made.issuer.public_bytes()
    with pytest.raises(Denied, match="revoked"):
        still_valid(peer, Revocations({issuer: frozenset({made.serial_number})}), ca.now)
    assert still_valid(peer, Revocations({issuer: frozenset({made.serial_number + 1})}), ca.now)
    assert still_valid(peer, Revocations({b"another": frozenset({made.serial_number})}), ca.now)
    with pytest.raises(Denied, match="not valid at this time"):
        still_valid(peer, Revocations(), ca.now + timedelta(days=366))


@pytest.mark.parametrize(
    ("name", "claims_identity"),
    [
        ("X-Client-DN", True),
        ("x_client_verify", True),
        ("X-Client-Cert", True),
        ("X-SSL-Client-DN", True),
        ("SSL_CLIENT_S_DN", True),
        ("X-Client-Name", False),
        ("X-Puppet-Version", False),
        ("Client", False),
    ],
)
def test_headers_that_claim_an_identity_are_known_in_every_spelling(name: str, claims_identity: bool) -> None:
    assert bool(identity_headers([name])) is claims_identity


def test_proxies_count_only_when_switched_on_and_by_address() -> None:
    def rules(*, on: bool, addresses: list[str]) -> ProxyRules:
        return ProxyRules.of(switched_on=on, addresses=addresses, dn="HTTP_X_CLIENT_DN", verify="HTTP_X_CLIENT_VERIFY")

    assert rules(on=True, addresses=["10.0.0.0/8"]).trusts("10.1.2.3")
    assert not rules(on=True, addresses=["10.0.0.0/8"]).trusts("11.1.2.3")
    assert not rules(on=True, addresses=[]).trusts("10.1.2.3")
    assert not rules(on=False, addresses=["10.0.0.0/8"]).trusts("10.1.2.3")
    with pytest.raises(ConfigError, match="proxy_addresses"):
        rules(on=True, addresses=["nowhere"])
