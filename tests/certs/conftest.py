"""A throw-away CA in memory, made once: EC keys, since making RSA keys is slow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from cryptography import x509

from certs import certificates, crl
from certs.keys import KeyKind, PrivateKey

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
YEAR = 365 * 86400


@dataclass(frozen=True)
class Authority:
    key: PrivateKey
    certificate: x509.Certificate
    crl: x509.CertificateRevocationList

    @classmethod
    def new(cls, name: str = "Puppet CA: test", now: datetime = NOW) -> Authority:
        key = KeyKind("ec").generate()
        certificate = certificates.self_signed_authority(key, name, serial=1, ttl=5 * YEAR, now=now)
        return cls(key, certificate, crl.sign(certificate, key, number=0, now=now))

    def leaf(self, name: str, *, serial: int = 2, ttl: int = YEAR, now: datetime = NOW, **rest: object) -> x509.Certificate:
        public = KeyKind("ec").generate().public_key()
        return certificates.leaf(name, public, issuer=self.certificate, issuer_key=self.key, serial=serial, ttl=ttl, now=now, **rest)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def ca() -> Authority:
    return Authority.new()


@pytest.fixture(scope="session")
def stranger() -> Authority:
    """Another CA with the same name."""
    return Authority.new()


@pytest.fixture
def now() -> datetime:
    return NOW
