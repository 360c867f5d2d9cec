"""For tests of whoever needs certificates: a CA that is thrown away."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs import certificates, crl, keys
from certs.files import bundles
from certs.files.ssldir import SslDir
from certs.keys import KeyKind, PrivateKey

YEAR = 365 * 86400  # seconds


@dataclass
class ThrowAwayCa:
    """An authority with EC keys (fast), its CRL, and what it signed."""

    key: PrivateKey
    certificate: x509.Certificate
    serial: int = 1
    revoked: list[int] = field(default_factory=list)

    @classmethod
    def new(cls, name: str = "Puppet CA: test", *, now: datetime | None = None) -> ThrowAwayCa:
        key = KeyKind("ec").generate()
        return cls(key, certificates.self_signed_authority(key, name, serial=1, ttl=5 * YEAR, now=now or datetime.now(UTC)))

    @property
    def pem(self) -> bytes:
        return bundles.dump([self.certificate])

    def crl_pem(self, *, now: datetime | None = None, **options: Any) -> bytes:
        """A CRL over all that was revoked, which its number counts; options as of certs.crl.signed."""
        moment = now or datetime.now(UTC)
        entries = [crl.entry(serial, moment) for serial in self.revoked]
        return bundles.dump([crl.sign(self.certificate, self.key, number=len(self.revoked), now=moment, entries=entries, **options)])

    def sign(self, name: str, public: CertificatePublicKeyTypes, *, names: tuple[str, ...] = (), **options: Any) -> x509.Certificate:
        """A certificate for `name` and its alternative `names`; options as of certs.certificates.leaf."""
        self.serial += 1
        given = {"serial": self.serial, "ttl": YEAR, "now": datetime.now(UTC), **options}
        if names:
            given["alternative_names"] = [f"DNS:{each}" for each in names]
        return certificates.leaf(name, public, issuer=self.certificate, issuer_key=self.key, **given)

    def sign_request(self, pem: bytes) -> bytes:
        """The certificate for a request, as an autosigning CA gives it."""
        request = x509.load_pem_x509_csr(pem)
        name = request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
        return bundles.dump([self.sign(str(name), request.public_key())])

    def serving(self, folder: Path, name: str = "localhost", **options: Any) -> ssl.SSLContext:
        """A server's context with a fresh certificate for `name`; clients may show a certificate of this CA."""
        key = KeyKind("ec").generate()
        certificate = self.sign(name, key.public_key(), **{"names": (name,), **options})
        return server_context(folder, key, certificate, self.pem)

    def ssldir(self, root: Path, name: str) -> SslDir:
        """An ssldir that has been through bootstrap."""
        layout = SslDir.at(root, name)
        layout.create()
        key = KeyKind("ec").generate()
        layout.save_key(key)
        layout.save_authorities(self.pem)
        layout.save_crls(self.crl_pem())
        layout.save_certificate(self.sign(name, key.public_key()))
        return layout


def server_context(folder: Path, key: PrivateKey, certificate: x509.Certificate, authorities: bytes) -> ssl.SSLContext:
    """A server context of these; asks for a client certificate and does not insist."""
    files = {"key": keys.private_pem(key), "cert": bundles.dump([certificate]), "ca": authorities}
    serial = certificate.serial_number
    for name, pem in files.items():
        (folder / f"server-{serial}-{name}.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(folder / f"server-{serial}-cert.pem"), str(folder / f"server-{serial}-key.pem"))
    context.load_verify_locations(str(folder / f"server-{serial}-ca.pem"))
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
