"""Checks on CA certificates and CRLs before they replace those on disk. All functions block: call them in a thread."""

from __future__ import annotations

from datetime import datetime

from certs import verify
from certs.files import bundles
from certs.files.ssldir import SslDir
from certs.verify import TrustStore


def save_authorities(layout: SslDir, pem: bytes, now: datetime) -> None:
    """Save a CA bundle under which our own certificate still verifies; raise PeerNotTrusted, BadData or TooLarge for any other."""
    authorities = bundles.certificates(pem)
    verify.verify_bundle(authorities)
    certificate = layout.certificate()
    if certificate is not None:
        verify.verify(certificate, TrustStore(authorities, revocation=False), now=now)
    layout.save_authorities(pem)


def save_crls(layout: SslDir, pem: bytes) -> None:
    """Save CRLs that our own CAs signed and that are not older than those on disk; raise PeerNotTrusted, BadData or TooLarge for others."""
    from certs import crl

    crls = bundles.revocation_lists(pem)
    acceptable_crls = crl.accept_newer(crls, layout.crls() or (), layout.authorities() or ())
    layout.save_crls(pem if len(acceptable_crls) == len(crls) else bundles.dump(acceptable_crls))
