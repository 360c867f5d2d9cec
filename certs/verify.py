"""
Whether a certificate can be trusted: its chain, dates, revocation and names. Pure, with `now` as an argument.

cryptography's own verifier cannot take its place: it knows no revocation lists, does not say which certificate fails and why, refuses
Ed25519 and small RSA keys, and takes every certificate of a bundle for an anchor (tests/certs/test_verify_against_cryptography.py).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

from shared.errors import PeerNotTrusted

from .signatures import crl_is_genuine, issued

Revocation = Literal["chain", "leaf", False]
Purpose = Literal["server", "client"]
Reason = Literal[
    "not-yet-valid",
    "expired",
    "crl-not-yet-valid",
    "crl-expired",
    "signature",
    "crl-signature",
    "no-issuer",
    "no-crl",
    "revoked",
    "not-an-authority",
    "purpose",
    "critical-extension",
    "path-length",
    "name",
]

MAX_CHAIN = 10  # certificates, leaf and root included
CRL_FROM_THE_FUTURE = timedelta(minutes=5)  # clocks differ; the reference ignores that much
_UNDERSTOOD = {
    ExtensionOID.BASIC_CONSTRAINTS,
    ExtensionOID.KEY_USAGE,
    ExtensionOID.EXTENDED_KEY_USAGE,
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    ExtensionOID.CERTIFICATE_POLICIES,
}
_PURPOSES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


class NotVerified(PeerNotTrusted):
    """Raised for a certificate that does not verify; `reason` is for programs, the message (in the reference's words) for people."""

    def __init__(self, message: str, reason: Reason, certificate: x509.Certificate, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.certificate = certificate


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The trust anchors: the CA bundle, its CRLs, and how far revocation is checked."""

    authorities: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...] = ()
    revocation: Revocation = "chain"


def subject_of(certificate: x509.Certificate) -> str:
    """Return the subject in the form of RFC 4514, as `CN=web1`."""
    return certificate.subject.rfc4514_string()


def issuer_of(certificate: x509.Certificate) -> str:
    return certificate.issuer.rfc4514_string()


def verify(
    certificate: x509.Certificate,
    trust: TrustStore,
    *,
    now: datetime,
    purpose: Purpose | None = None,
    untrusted: Sequence[x509.Certificate] = (),
) -> tuple[x509.Certificate, ...]:
    """
    Return the chain from `certificate` to a self-signed authority of the bundle, both included.

    Args:
        purpose: the extended key usage that the certificate must allow, when it has any.
        untrusted: intermediates that the peer sent along.
    Raises:
        NotVerified: with the reference's message and a reason.
    Source: protocol reference 5.12; the order of checks is OpenSSL's: chain, extensions, revocation, signatures and dates.
    """
    chain = _chain(certificate, trust.authorities, untrusted, now)
    # The order of checks decides which of several faults is reported.
    _check_extensions(chain, purpose)
    if trust.revocation:
        for index, member in enumerate(chain if trust.revocation == "chain" else chain[:1]):
            _check_not_revoked(member, chain[min(index + 1, len(chain) - 1)], trust.crls, now)
    # From the root down: a fault of a CA explains those of everything below it.
    for index in range(len(chain) - 1, -1, -1):
        _check_signature_and_dates(chain[index], chain[min(index + 1, len(chain) - 1)], now)
    return chain


def _chain(
    leaf: x509.Certificate, authorities: Sequence[x509.Certificate], untrusted: Sequence[x509.Certificate], now: datetime
) -> tuple[x509.Certificate, ...]:
    chain = [leaf]
    while not (chain[-1].issuer == chain[-1].subject and chain[-1] in authorities):
        current = chain[-1]
        missing = f"The issuer '{issuer_of(current)}' of certificate '{subject_of(current)}' is missing"
        # Trusted ones first; a peer's own certificates can complete a chain, but never end it.
        named = [c for c in (*authorities, *untrusted) if c.subject == current.issuer and c not in chain]
        # Bounded, since two cross-signed CAs can lead to each other.
        if not named or len(chain) == MAX_CHAIN:
            raise NotVerified(missing, "no-issuer", current, hint="The CA bundle must hold every issuer up to the self-signed root.")
        # Several of one name: the one whose key fits, then the one that is valid now (a renewed CA certificate).
        chain.append(max(named, key=lambda c: (issued(current, c), c.not_valid_before_utc <= now <= c.not_valid_after_utc)))
    return tuple(chain)


def _failure(certificate: x509.Certificate, number: int, text: str, reason: Reason) -> NotVerified:
    return NotVerified(f"Certificate '{subject_of(certificate)}' failed verification ({number}): {text}", reason, certificate)


def _check_extensions(chain: tuple[x509.Certificate, ...], purpose: Purpose | None) -> None:
    for depth, certificate in enumerate(chain):
        try:
            extensions = certificate.extensions
        except (ValueError, x509.DuplicateExtension) as err:
            raise _failure(certificate, 41, "invalid or inconsistent certificate extension", "critical-extension") from err
        # RFC 5280: a critical extension that is not understood makes the certificate unusable.
        if any(e.critical and e.oid not in _UNDERSTOOD for e in extensions):
            raise _failure(certificate, 34, "unhandled critical extension", "critical-extension")
        if depth:
            _check_may_issue(certificate, extensions, depth - 1)
        elif purpose:
            _check_purpose(certificate, extensions, purpose)


def _check_may_issue(certificate: x509.Certificate, extensions: x509.Extensions, below: int) -> None:
    """Check for CA:TRUE, keyCertSign if usages are present, and a path length that allows `below` authorities down to the leaf."""
    try:
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = x509.BasicConstraints(ca=False, path_length=None)
    # Otherwise any agent could issue certificates with its own key.
    if not constraints.ca:
        raise _failure(certificate, 79, "invalid CA certificate", "not-an-authority")
    if constraints.path_length is not None and below > constraints.path_length:
        raise _failure(certificate, 25, "path length constraint exceeded", "path-length")
    try:
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not usage.key_cert_sign:
        raise _failure(certificate, 32, "key usage does not include certificate signing", "not-an-authority")


def _check_purpose(certificate: x509.Certificate, extensions: x509.Extensions, purpose: Purpose) -> None:
    try:
        allowed = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if _PURPOSES[purpose] not in allowed and ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE not in allowed:
        raise _failure(certificate, 26, "unsuitable certificate purpose", "purpose")


def _check_not_revoked(
    certificate: x509.Certificate, issuer: x509.Certificate, crls: Sequence[x509.CertificateRevocationList], now: datetime
) -> None:
    name = issuer_of(certificate)
    issued = [crl for crl in crls if crl.issuer == certificate.issuer]
    if not issued:
        raise NotVerified(f"The CRL issued by '{name}' is missing", "no-crl", certificate)
    genuine = [crl for crl in issued if crl_is_genuine(crl, issuer)]
    if not genuine:
        raise NotVerified(f"Invalid signature for CRL issued by '{name}'", "crl-signature", certificate)
    started = [crl for crl in genuine if crl.last_update_utc <= now + CRL_FROM_THE_FUTURE]
    if not started:
        message = f"The CRL issued by '{name}' is not yet valid, verify time is synchronized"
        raise NotVerified(message, "crl-not-yet-valid", certificate)
    # At least one list must be current: an attacker could otherwise withhold all newer ones.
    current = [crl for crl in started if crl.next_update_utc is None or now <= crl.next_update_utc]
    if not current:
        raise NotVerified(f"The CRL issued by '{name}' has expired, verify time is synchronized", "crl-expired", certificate)
    for crl in genuine:  # whatever its date, what its issuer once revoked stays revoked
        revoked = crl.get_revoked_certificate_by_serial_number(certificate.serial_number)
        if revoked is not None:
            raise NotVerified(f"Certificate '{subject_of(certificate)}' is revoked", "revoked", certificate)


def _check_signature_and_dates(certificate: x509.Certificate, issuer: x509.Certificate, now: datetime) -> None:
    subject = subject_of(certificate)
    if not issued(certificate, issuer):
        raise NotVerified(f"Invalid signature for certificate '{subject}'", "signature", certificate)
    if now < certificate.not_valid_before_utc:
        raise NotVerified(f"The certificate '{subject}' is not yet valid, verify time is synchronized", "not-yet-valid", certificate)
    if now > certificate.not_valid_after_utc:
        raise NotVerified(f"The certificate '{subject}' has expired, verify time is synchronized", "expired", certificate)


def verify_bundle(authorities: Sequence[x509.Certificate]) -> None:
    """Check a downloaded CA bundle before it is stored: raise NotVerified unless all are authorities and one is self-signed."""
    for certificate in authorities:
        try:
            _check_may_issue(certificate, certificate.extensions, 0)
        except (ValueError, x509.DuplicateExtension) as err:
            raise _failure(certificate, 41, "invalid or inconsistent certificate extension", "critical-extension") from err
    roots = [c for c in authorities if c.issuer == c.subject]
    if not roots:
        first = authorities[0]
        raise NotVerified(f"The issuer '{issuer_of(first)}' of certificate '{subject_of(first)}' is missing", "no-issuer", first)
    for root in roots:
        if not issued(root, root):
            raise NotVerified(f"Invalid signature for certificate '{subject_of(root)}'", "signature", root)


def host_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the names that a server certificate is valid for: its alternative names (DNS and IP), or its CN when it has none."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        # Certificates of very old CAs have no alternative names; with any of them the common name does not count.
        return tuple(str(a.value) for a in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME))
    dns_names = list(names.get_values_for_type(x509.DNSName))
    return (*dns_names, *(str(address) for address in names.get_values_for_type(x509.IPAddress)))


def verify_host(certificate: x509.Certificate, host: str) -> None:
    """Raise NotVerified unless the certificate is valid for `host` by RFC 6125 (a wildcard is one complete leftmost label)."""
    expected = tuple(dict.fromkeys(host_names(certificate)))
    lower_host = host.rstrip(".").lower()
    if not any(_matches(name, lower_host) for name in expected):
        listed = f"one of {', '.join(expected)}" if len(expected) > 1 else "".join(expected)
        raise NotVerified(
            f"Server hostname '{host}' did not match server certificate; expected {listed}",
            "name",
            certificate,
            hint="Set 'server' to one of these names, or reissue the server's certificate with this name in dns_alt_names.",
        )


def _matches(name: str, host: str) -> bool:
    with suppress(ValueError):
        # Compared as numbers: an IPv6 address has many spellings.
        return ipaddress.ip_address(name) == ipaddress.ip_address(host)
    name = name.rstrip(".").lower()
    if name.startswith("*."):
        label, _, rest = host.partition(".")
        # A wildcard is for exactly one label, and never for a whole top-level domain.
        return bool(label) and "." in rest and rest == name[2:]
    return name == host
