"""Certificate revocation lists: signing, extending and reading them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from shared.errors import PeerNotTrusted

from .certificates import BACKDATED, LAST_MOMENT, authority_identifier, extension_of
from .keys import PrivateKey, digest_for
from .signatures import crl_is_genuine

log = logging.getLogger("puppet.ssl")

LIFETIME = timedelta(days=5 * 365)
# Agents that run once a month must still find a list that is valid.
REFRESH_BEFORE = timedelta(days=30)


def sign(
    issuer: x509.Certificate,
    key: PrivateKey,
    *,
    number: int,
    now: datetime,
    entries: Iterable[x509.RevokedCertificate] = (),
    lifetime: timedelta = LIFETIME,
) -> x509.CertificateRevocationList:
    """
    Return a CRL of `issuer`: nextUpdate is `lifetime` after `now`, lastUpdate a day before it.

    The reference's lastUpdate is a second before `now`. OpenSSL refuses every certificate when the list begins in the future: after one
    revocation, a server whose clock is set back would refuse all agents until its clock has caught up.
    """
    next_update = LAST_MOMENT if LAST_MOMENT - now < lifetime else now + lifetime
    extensions: list[x509.Extension[x509.ExtensionType]] = []
    for value in (x509.CRLNumber(number), authority_identifier(issuer)):
        extensions.append(x509.Extension(value.oid, False, value))
    # The builder gets the whole list: its add method copies the list each time, which is quadratic.
    builder = x509.CertificateRevocationListBuilder(
        issuer.subject, (now - BACKDATED).replace(microsecond=0), next_update.replace(microsecond=0), extensions, list(entries)
    )
    return builder.sign(key, digest_for(key))


def entry(serial: int, when: datetime) -> x509.RevokedCertificate:
    """Return one revoked serial, with the reason keyCompromise as Puppet gives it."""
    return (
        x509.RevokedCertificateBuilder()
        .serial_number(serial)
        .revocation_date(when.replace(microsecond=0))
        # The reason that Puppet's CA writes, whatever the real one was.
        .add_extension(x509.CRLReason(x509.ReasonFlags.key_compromise), critical=False)
        .build()
    )


def successor_of(
    old: x509.CertificateRevocationList,
    issuer: x509.Certificate,
    key: PrivateKey,
    *,
    now: datetime,
    add: Iterable[int] = (),
    lifetime: timedelta = LIFETIME,
) -> x509.CertificateRevocationList:
    """Return the successor of `old`: the next number, all its entries and those serials of `add` that it lacks."""
    entries = list(old)
    known = {revoked.serial_number for revoked in entries}
    entries += [entry(serial, now) for serial in sorted(set(add) - known)]
    # The number must grow: agents refuse a list with a lower one.
    return sign(issuer, key, number=number_of(old) + 1, now=now, entries=entries, lifetime=lifetime)


def number_of(crl: x509.CertificateRevocationList) -> int:
    """Return the crlNumber; -1 when there is none, so that the next one is 0."""
    number = extension_of(crl, x509.CRLNumber)
    return -1 if number is None else number.crl_number


def serials(crl: x509.CertificateRevocationList) -> frozenset[int]:
    """Return all serial numbers on the list."""
    return frozenset(revoked.serial_number for revoked in crl)


def is_delta(crl: x509.CertificateRevocationList) -> bool:
    """Return whether this is only a difference to another CRL."""
    return any(extension.oid == ExtensionOID.DELTA_CRL_INDICATOR for extension in crl.extensions)


def is_due(crl: x509.CertificateRevocationList, now: datetime, *, before: timedelta = REFRESH_BEFORE) -> bool:
    """Return whether the list must be signed again: it expires within `before`, or has no nextUpdate."""
    end = crl.next_update_utc
    return end is None or end - now <= before


def newer_known(
    received: Iterable[x509.CertificateRevocationList], known: Iterable[x509.CertificateRevocationList]
) -> x509.CertificateRevocationList | None:
    """Return the newest CRL of `known` with a higher number than every one of its issuer in `received`; None when there is none."""
    numbers: dict[x509.Name, int] = {}
    for new in received:
        # Without a number (-1) a list is older than any that has one.
        numbers[new.issuer] = max(number_of(new), numbers.get(new.issuer, -1))
    newer = (old for old in known if old.issuer in numbers and number_of(old) > numbers[old.issuer])
    return max(newer, key=number_of, default=None)


def accept_newer(
    received: Sequence[x509.CertificateRevocationList],
    known: Sequence[x509.CertificateRevocationList],
    authorities: Sequence[x509.Certificate],
) -> tuple[x509.CertificateRevocationList, ...]:
    """
    Return those CRLs of `received` that one of `authorities` signed, at least one.

    A CRL of an unknown CA is skipped: a CA that is being replaced also serves the list of its successor, which concerns no peer that
    this host trusts.

    Raises:
        PeerNotTrusted: a CRL is not genuine or older than the one of the same issuer in `known`, or all were skipped.
    """
    accepted = []
    for new in received:
        name = new.issuer.rfc4514_string()
        if all(authority.subject != new.issuer for authority in authorities):
            log.info("The CRL issued by '%s' is left out: it is not from a CA that this host knows", name)
            continue
        if not any(crl_is_genuine(new, authority) for authority in authorities):
            raise PeerNotTrusted(f"Invalid signature for CRL issued by '{name}'")
        newer = newer_known([new], known)
        if newer is not None:
            raise PeerNotTrusted(
                f"The CRL issued by '{name}' is refused: its number {number_of(new)} is lower than {number_of(newer)} of the one on disk",
                hint="Somebody may be hiding a revocation. After the CA was restored from a backup, remove crl.pem by hand.",
            )
        accepted.append(new)
    if not accepted:
        raise PeerNotTrusted(f"The CRL issued by '{received[0].issuer.rfc4514_string()}' is not from a CA that this host knows")
    return tuple(accepted)
