"""What a CA sends is looked at before it replaces what is on disk. All of it blocks: call it in a thread."""

from __future__ import annotations

import logging
from datetime import datetime

from cryptography import x509

from certs import bundles, verify
from certs.ssldir import SslDir
from certs.verify import Trust
from shared.errors import PeerNotTrusted

log = logging.getLogger("puppet.ssl")


def keep_authorities(layout: SslDir, pem: bytes, now: datetime) -> None:
    """Keep a new CA bundle under which our own certificate still verifies; PeerNotTrusted, BadData or TooLarge otherwise."""
    authorities = bundles.certificates(pem)
    verify.verify_bundle(authorities)
    certificate = layout.certificate()
    if certificate is not None:
        verify.verify(certificate, Trust(authorities, revocation=False), now=now)
    layout.save_authorities(pem)


def keep_crls(layout: SslDir, pem: bytes) -> None:
    """
    Keep CRLs that our own CAs signed and that are not older than those on disk; PeerNotTrusted, BadData or TooLarge otherwise.

    One of a CA that this host does not know is left out: a CA that is being replaced serves that of the next one as well, which
    says nothing about anybody whom this host believes.
    """
    authorities = layout.authorities() or ()
    known = layout.crls() or ()
    kept = []
    given = bundles.revocation_lists(pem)
    for new in given:
        name = new.issuer.rfc4514_string()
        issuers = [authority for authority in authorities if authority.subject == new.issuer]
        if not issuers:
            log.info("The CRL issued by '%s' is left out: it is not from a CA that this host knows", name)
            continue
        if not any(verify.crl_is_genuine(new, issuer) for issuer in issuers):
            raise PeerNotTrusted(f"Invalid signature for CRL issued by '{name}'")
        for old in known:
            if old.issuer == new.issuer and number_of(old) > number_of(new):
                raise PeerNotTrusted(
                    f"The CRL issued by '{name}' is refused: its number {number_of(new)} is lower than {number_of(old)} of the one on disk",
                    hint="Somebody may be hiding a revocation. After the CA was restored from a backup, remove crl.pem by hand.",
                )
        kept.append(new)
    if not kept:
        raise PeerNotTrusted(f"The CRL issued by '{given[0].issuer.rfc4514_string()}' is not from a CA that this host knows")
    layout.save_crls(pem if len(kept) == len(given) else bundles.dump(kept))


def number_of(crl: x509.CertificateRevocationList) -> int:
    """The CRL's number; 0 when it has none."""
    try:
        return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0
