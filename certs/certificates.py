"""Certificates: issued as Puppet's authorities issue them, and their fields read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from . import der, oids
from .csr import alternative_names as general_names
from .csr import common_name, general_name
from .keys import PrivateKey, digest_for

E = TypeVar("E", bound=x509.ExtensionType)

COMMENT = "Puppet Ruby/OpenSSL Internal Certificate"  # what every 3.8 CA writes into its certificates
BACKDATED = timedelta(days=1)  # for peers with a slow clock
LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def not_after(now: datetime, ttl: int, issuer: x509.Certificate | None = None) -> datetime:
    """Return `now` plus `ttl` seconds, but never later than the issuer's own notAfter or the last date that X.509 can express."""
    limit = issuer.not_valid_after_utc if issuer is not None else LAST_MOMENT
    seconds = (limit - now).total_seconds()
    # Never beyond the issuer's own end: agents would refuse the chain although the leaf seems valid.
    return limit if ttl >= seconds else (now + timedelta(seconds=ttl)).replace(microsecond=0)


def _builder(subject: x509.Name, issuer: x509.Name, public_key: CertificatePublicKeyTypes, serial: int) -> x509.CertificateBuilder:
    comment = der.encode(der.IA5_STRING, COMMENT.encode("ascii"))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(serial)
        .add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(oids.NS_COMMENT), comment), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_encipherment=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def self_signed_authority(key: PrivateKey, name: str, *, serial: int, ttl: int, now: datetime) -> x509.Certificate:
    """
    Return a self-signed CA certificate with the subject `CN=name`.

    Args:
        ttl: Seconds from `now` to notAfter; notBefore is one day before `now`.
    Source: protocol reference 5.1.
    """
    subject = common_name(name)
    public = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    return (
        _builder(subject, subject, public, serial)
        .not_valid_before((now - BACKDATED).replace(microsecond=0))
        .not_valid_after(not_after(now, ttl))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, digest_for(key))
    )


def renewed_authority(old: x509.Certificate, key: PrivateKey, *, serial: int, ttl: int, now: datetime) -> x509.Certificate:
    """Return the CA certificate `old` with new dates. Subject, key and extensions are the same, so that its leaves stay valid."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(old.issuer)
        .public_key(old.public_key())
        .serial_number(serial)
        .not_valid_before((now - BACKDATED).replace(microsecond=0))
        .not_valid_after(not_after(now, ttl))
    )
    for extension in old.extensions:
        value = extension.value
        if isinstance(value, x509.AuthorityKeyIdentifier):  # may name the serial of the old one
            value = authority_identifier(old)
        builder = builder.add_extension(value, critical=extension.critical)
    return builder.sign(key, digest_for(key))


def names_issuers_serial(certificate: x509.Certificate) -> bool:
    """Return whether the authority key identifier names one certificate of the issuer, not only its key."""
    identifier = extension_of(certificate, x509.AuthorityKeyIdentifier)
    return identifier is not None and identifier.authority_cert_serial_number is not None


def leaf(  # noqa: PLR0913
    name: str,
    public_key: CertificatePublicKeyTypes,
    *,
    issuer: x509.Certificate,
    issuer_key: PrivateKey,
    serial: int,
    ttl: int,
    now: datetime,
    alternative_names: Iterable[str] = (),
    extensions: Sequence[tuple[str, bytes]] = (),
) -> x509.Certificate:
    """
    Return a certificate for the node `name`: always CA:FALSE, for signing and key encipherment, for servers and clients.

    Args:
        ttl: Seconds from `now` to notAfter, cut at the issuer's own end.
        alternative_names: `DNS:x`, `IP:x`; `name` itself is always among them.
        extensions: (OID, DER value) to copy; the caller has checked that they are allowed.
    Source: protocol reference 5.1. The authority key identifier names the key only, so that leaves stay valid
    when the CA's certificate is renewed with the same key.
    """
    builder = (
        _builder(common_name(name), issuer.subject, public_key, serial)
        .not_valid_before((now - BACKDATED).replace(microsecond=0))
        .not_valid_after(not_after(now, ttl, issuer))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        # Both purposes, because a master's certificate is that of its agent, too.
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(authority_identifier(issuer), critical=False)
        # With the name itself: clients that find alternative names ignore the common name.
        .add_extension(x509.SubjectAlternativeName(general_names([name, *alternative_names])), critical=False)
    )
    for oid, value in extensions:
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), value), critical=False)
    return builder.sign(issuer_key, digest_for(issuer_key))


def text_extension(oid: str, value: str) -> tuple[str, bytes]:
    """Return an extension as `leaf` takes it, with a DER UTF8String as Puppet 4 and later write it."""
    return oid, der.encode(der.UTF8_STRING, value.encode())


def authority_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Return the key identifier of `issuer`, taken from its certificate, else computed."""
    known = extension_of(issuer, x509.SubjectKeyIdentifier) or x509.SubjectKeyIdentifier.from_public_key(issuer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def extension_of(thing: x509.Certificate | x509.CertificateRevocationList, kind: type[E]) -> E | None:
    """Return the extension of a kind; None when there is none."""
    try:
        return thing.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def name_of(certificate: x509.Certificate) -> str:
    """Return the common name; '' when there is none or more than one."""
    common_names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    value = common_names[0].value if len(common_names) == 1 else ""
    return value if isinstance(value, str) else ""


def alternative_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the alternative names as `DNS:x`, `IP:x` and so on, in the certificate's order."""
    return tuple(general_name(name) for name in extension_of(certificate, x509.SubjectAlternativeName) or ())


def puppet_extensions(certificate: x509.Certificate) -> tuple[tuple[str, bytes], ...]:
    """Return (OID, value) of all extensions below Puppet's arc, in the certificate's order."""
    return tuple(
        (extension.oid.dotted_string, extension.value.public_bytes())
        for extension in certificate.extensions
        if oids.in_arc(extension.oid.dotted_string, oids.PUPPET_ARC)
    )


def trusted_extensions(certificate: x509.Certificate, names: oids.OidNames | None = None) -> dict[str, str]:
    """Return the `extensions` of the trusted facts as `{short name or OID: text}`."""
    known = names or oids.OidNames()
    return {known.name_of(oid): der.extension_text(value) for oid, value in puppet_extensions(certificate)}


def authorization_extensions(certificate: x509.Certificate) -> dict[str, str]:
    """Return the extensions that grant rights on the server as `{short name or OID: text}`."""
    return {
        oids.SHORT_NAMES.get(oid, oid): der.extension_text(value)
        for oid, value in puppet_extensions(certificate)
        if oids.is_authorization(oid)
    }


def is_authority(certificate: x509.Certificate) -> bool:
    """Return whether basicConstraints say CA:TRUE."""
    constraints = extension_of(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def time_text(moment: datetime) -> str:
    """Return `2026-11-19T21:47:57UTC`, the form of times in the inventory and in certificate status."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SUTC")
