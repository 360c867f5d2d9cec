"""TLS of the agent: which servers it trusts, and which certificate it shows."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shared.clock import utc_now
from shared.errors import BadData, PeerNotTrusted
from shared.settings import AgentSettings

if TYPE_CHECKING:
    from certs.verify import Revocation, TrustStore

HANDSHAKE_HINTS = {
    "CERTIFICATE_REVOKED": "The master reports that our certificate is revoked. For a new one: 'puppet cert clean NAME' on the CA,"
    " 'puppet ssl clean' here, and the agent again.",
    "CERTIFICATE_EXPIRED": "The master reports that our certificate has expired.",
    "UNKNOWN_CA": "The master does not know the CA that issued our certificate.",
    "CERTIFICATE_UNKNOWN": "The master does not accept our certificate.",
    "BAD_CERTIFICATE": "The master does not accept our certificate.",
    "CERTIFICATE_REQUIRED": "The master wants a certificate from us.",
}


_WHILE_IMPORTING = {"SSL_CERT_FILE": os.devnull, "FROZENLIST_NO_EXTENSIONS": "1"}


@contextmanager
def light_imports() -> Iterator[None]:
    """
    Prevent imports that aiohttp makes within this block and that no client here uses.

    aiohttp makes a default TLS context; reading some 140 certificates of the system's CAs, which this agent never trusts, took 30 of the
    120 ms of that import. The extension of frozenlist is the only one that needs C++'s library, of 1 MB; its class in Python does the same.
    """
    before = {name: os.environ.get(name) for name in _WHILE_IMPORTING}
    os.environ.update(_WHILE_IMPORTING)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# There is no DHE: a puppetmaster of 3.x brings a group of 1024 bits, which OpenSSL refuses only after it was chosen. That master has no
# elliptic curves either, so plain RSA stands last in the list; servers that have anything better never use it.
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:kRSA+AESGCM:kRSA+AES:!aNULL:!eNULL:!aDSS:!PSK:!SRP:!AESCCM"


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Puppet 3.8's WEBrick master speaks TLS 1.2; nothing older has to be allowed.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    return context


def unverified_context() -> ssl.SSLContext:
    """Return a context for the one request that has to go to an unverified server: the one for the CA's certificate."""
    context = _context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True, slots=True)
class Verifier:
    """
    The trust of a connection: the CA bundle, the CRLs, and the rules of certs.verify.

    OpenSSL checks chain, dates and name in the handshake; `check` tests revocation before a single byte of a request is sent.
    `certificate` and `key` are our own, for servers that ask for them.
    """

    authorities: Path
    crls: Path | None
    revocation: Revocation
    now: Callable[[], datetime]
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def of(cls, settings: AgentSettings) -> Verifier:
        """Return the trust of a host that has been through its bootstrap."""
        revocation: Revocation = False if settings.certificate_revocation == "false" else settings.certificate_revocation
        has_certificate = settings.hostcert.exists()
        return cls(
            settings.localcacert,
            settings.hostcrl if revocation else None,
            revocation,
            utc_now,
            settings.hostcert if has_certificate else None,
            settings.hostprivkey if has_certificate else None,
        )

    def context(self) -> ssl.SSLContext:
        """Return the context for all connections of one pool; raise BadData, which names the file, when a file cannot be used."""
        context = _context()
        try:
            context.load_verify_locations(cafile=str(self.authorities))
            if self.certificate and self.key:
                context.load_cert_chain(str(self.certificate), str(self.key))
        except ssl.SSLError as err:
            name = self.authorities if "KEY" not in (err.reason or "") and not self.certificate else f"{self.certificate} and {self.key}"
            raise BadData(f"Could not use {name} for TLS: {err.reason or err}") from err
        return context

    def trust(self) -> TrustStore:
        """Return the CA bundle and the CRLs as certs.verify takes them. Blocks."""
        from certs import verify
        from certs.files import bundles

        # Without a CRL (before the first download) revocation cannot be checked, and the bootstrap fetches it first.
        crls = bundles.revocation_lists(self.crls.read_bytes()) if self.revocation and self.crls is not None and self.crls.exists() else ()
        revocation: Revocation = self.revocation if crls else False
        return verify.TrustStore(bundles.certificates(self.authorities.read_bytes()), crls, revocation)

    def check(self, der: bytes, host: str, trust: TrustStore) -> None:
        """Check the peer's certificate in every respect; raise NotVerified with the reference's text."""
        from cryptography import x509

        from certs import verify

        try:
            certificate = x509.load_der_x509_certificate(der)
        except ValueError as err:
            raise PeerNotTrusted(f"The certificate of {host} cannot be read: {err}") from err
        verify.verify(certificate, trust, now=self.now(), purpose="server")
        # OpenSSL has checked the name already; this gives the error that names the certificate's own names.
        verify.verify_host(certificate, host)


def refusal_of(err: BaseException) -> tuple[str, str] | None:
    """Return (reason, hint) when `err` or one of its causes is a TLS alert about our own certificate; else None."""
    seen: BaseException | None = err
    # Bounded, because the chain of causes can be a cycle.
    for _ in range(10):
        if seen is None:
            return None
        reason = getattr(seen, "reason", None) if isinstance(seen, ssl.SSLError) else None  # aiohttp's own SSLError has none
        if reason and "ALERT" in reason:
            hint = next((hint for word, hint in HANDSHAKE_HINTS.items() if word in reason), "")
            return reason.lower().replace("_", " "), hint
        seen = seen.__cause__ or seen.__context__
    return None
