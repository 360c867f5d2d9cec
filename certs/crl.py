"""Certificate revocation lists: made, extended, signed again, read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from shared.errors import PeerNotTrusted

from .certificates import BACKDATED, LAST_MOMENT, authority_identifier
from .keys import PrivateKey, digest_for
from .signatures import crl_is_genuine

log = logging.getLogger("puppet.ssl")

LIFETIME = timedelta(days=5 * 365)
REFRESH_BEFORE = timedelta(days=30)


def signed(
    issuer: x509.Certificate,
    key: PrivateKey,
    *,
    number: int,
    now: datetime,
    entries: Iterable[x509.RevokedCertificate] = (),
    lifetime: timedelta = LIFETIME,
) -> x509.CertificateRevocationList:
    """
    A CRL of `issuer`: nextUpdate `lifetime` after `now`, lastUpdate a day before it.

    The reference's is a second before, and OpenSSL refuses everybody by a list of the future: one revocation, and a server whose
    clock is then put back would be closed to all agents until its clock has caught up.
    """
    next_update = LAST_MOMENT if LAST_MOMENT - now < lifetime else now + lifetime
    extensions: list[x509.Extension[x509.ExtensionType]] = []
    for value in (x509.CRLNumber(number), authority_identifier(issuer)):
        extensions.append(x509.Extension(value.oid, False, value))
    # Handed to the builder whole: its add method copies the list each time, which is quadratic.
    builder = x509.CertificateRevocationListBuilder(
        issuer.subject, (now - BACKDATED).replace(microsecond=0), next_update.replace(microsecond=0), extensions, list(entries)
    )
    return builder.sign(key, digest_for(key))


def entry(serial: int, when: datetime) -> x509.RevokedCertificate:
    """One revoked serial, with the reason keyCompromise as Puppet gives it."""
    return (
        x509.RevokedCertificateBuilder()
        .serial_number(serial)
        .revocation_date(when.replace(microsecond=0))
        .add_extension(x509.CRLReason(x509.ReasonFlags.key_compromise), critical=False)
        .build()
    )


def revised(
    old: x509.CertificateRevocationList,
    issuer: x509.Certificate,
    key: PrivateKey,
    *,
    now: datetime,
    add: Iterable[int] = (),
    lifetime: timedelta = LIFETIME,
) -> x509.CertificateRevocationList:
    """The successor of `old`: the next number, all its entries and the serials `add` that it does not have yet."""
    entries = list(old)
    known = {revoked.serial_number for revoked in entries}
    entries += [entry(serial, now) for serial in sorted(set(add) - known)]
    return signed(issuer, key, number=number_of(old) + 1, now=now, entries=entries, lifetime=lifetime)


def number_of(crl: x509.CertificateRevocationList) -> int:
    """The crlNumber; -1 when there is none, so that the next one is 0."""
    try:
        return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return -1


def serials(crl: x509.CertificateRevocationList) -> frozenset[int]:
    """All serial numbers on the list."""
    return frozenset(revoked.serial_number for revoked in crl)


def is_delta(crl: x509.CertificateRevocationList) -> bool:
    """Whether this is only a difference to another CRL."""
    return any(extension.oid == ExtensionOID.DELTA_CRL_INDICATOR for extension in crl.extensions)


def is_due(crl: x509.CertificateRevocationList, now: datetime, *, before: timedelta = REFRESH_BEFORE) -> bool:
    """Whether it is time to sign the list again: less than `before` is left of it, or its own lifetime is over."""
    end = crl.next_update_utc
    return end is None or end - now <= before


def acceptable(
    given: Sequence[x509.CertificateRevocationList],
    known: Sequence[x509.CertificateRevocationList],
    authorities: Sequence[x509.Certificate],
) -> tuple[x509.CertificateRevocationList, ...]:
    """
    Those of `given` that one of `authorities` signed, at least one; none is older than one of the same issuer in `known`.

    One of a CA that this host does not know is left out: a CA that is being replaced serves that of the next one as well, which
    says nothing about anybody whom this host believes.

    Raises:
        PeerNotTrusted: one is not genuine, or older, or none is left.
    """
    kept = []
    for new in given:
        name = new.issuer.rfc4514_string()
        issuers = [authority for authority in authorities if authority.subject == new.issuer]
        if not issuers:
            log.info("The CRL issued by '%s' is left out: it is not from a CA that this host knows", name)
            continue
        if not any(crl_is_genuine(new, issuer) for issuer in issuers):
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
    return tuple(kept)
