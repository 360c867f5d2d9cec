"""What a CA sends is looked at before it replaces what is on disk. All of it blocks: call it in a thread."""

from __future__ import annotations

from datetime import datetime

from cryptography import x509

from certs import bundles, verify
from certs.ssldir import SslDir
from certs.verify import Trust
from shared.errors import PeerNotTrusted


def keep_authorities(layout: SslDir, pem: bytes, now: datetime) -> None:
    """Keep a new CA bundle under which our own certificate still verifies; PeerNotTrusted, BadData or TooLarge otherwise."""
    authorities = bundles.certificates(pem)
    verify.verify_bundle(authorities)
    certificate = layout.certificate()
    if certificate is not None:
        verify.verify(certificate, Trust(authorities, revocation=False), now=now)
    layout.save_authorities(pem)


def keep_crls(layout: SslDir, pem: bytes) -> None:
    """Keep CRLs that our own CA signed and that are not older than those on disk; PeerNotTrusted, BadData or TooLarge otherwise."""
    authorities = layout.authorities() or ()
    known = layout.crls() or ()
    for new in bundles.revocation_lists(pem):
        name = new.issuer.rfc4514_string()
        issuers = [authority for authority in authorities if authority.subject == new.issuer]
        if not issuers:
            raise PeerNotTrusted(f"The CRL issued by '{name}' is not from a CA that this host knows")
        if not any(verify.crl_is_genuine(new, issuer) for issuer in issuers):
            raise PeerNotTrusted(f"Invalid signature for CRL issued by '{name}'")
        for old in known:
            if old.issuer == new.issuer and number_of(old) > number_of(new):
                raise PeerNotTrusted(
                    f"The CRL issued by '{name}' is refused: its number {number_of(new)} is lower than {number_of(old)} of the one on disk",
                    hint="Somebody may be hiding a revocation. After the CA was restored from a backup, remove crl.pem by hand.",
                )
    layout.save_crls(pem)


def number_of(crl: x509.CertificateRevocationList) -> int:
    """The CRL's number; 0 when it has none."""
    try:
        return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0
