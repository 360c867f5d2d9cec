"""Certificate requests: built as Puppet's agents build them, and read into plain facts that a policy can judge."""

from __future__ import annotations

import base64
import ipaddress
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type

from shared.errors import BadData, ConfigError
from shared.names import quoted_for_log

from . import der, oids
from .files import bundles
from .files.sitefiles import yaml_map
from .keys import PrivateKey, Strength, digest_for, strength

# Far more than a request with a large key and many names needs; anybody may submit one.
MAX_REQUEST_BYTES = 64 * 1024
_PRINTABLE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 '()+,-./:=?")
_CN = der.encode(der.OBJECT_IDENTIFIER, bytes([0x55, 0x04, 0x03]))
_KINDS: tuple[tuple[type[x509.GeneralName], str], ...] = (
    (x509.DNSName, "DNS"),
    (x509.IPAddress, "IP"),
    (x509.RFC822Name, "email"),
    (x509.UniformResourceIdentifier, "URI"),
    (x509.DirectoryName, "DirName"),
    (x509.RegisteredID, "Registered ID"),
    (x509.OtherName, "othername"),
)


_KEYS = "The file may have the keys custom_attributes and extension_requests."


@dataclass(frozen=True, slots=True)
class CsrAttributes:
    """The contents of csr_attributes.yaml by dotted OID: attributes stay in the request, extensions go into the certificate."""

    attributes: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, names: oids.OidNames | None = None) -> CsrAttributes:
        """
        Return the contents of csr_attributes.yaml, empty when there is no such file.

        Raises:
            ConfigError: not a map, an unexpected key, an unknown OID, or one that Puppet sets itself.
        Source: protocol reference 5.4.
        """
        document = yaml_map(path, hint=_KEYS)
        if document is None:
            return cls()
        known = {str(key).lstrip(":"): value or {} for key, value in document.items()}
        unexpected = sorted(known.keys() - {"custom_attributes", "extension_requests"})
        if unexpected:
            raise ConfigError(
                f"unexpected attributes {', '.join(map(quoted_for_log, unexpected))} in {path}",
                hint=_KEYS,
            )
        names = names or oids.OidNames()
        return cls(
            _by_oid(path, known.get("custom_attributes", {}), names, (oids.EXTENSION_REQUEST, oids.MS_EXTENSION_REQUEST)),
            _by_oid(path, known.get("extension_requests", {}), names, (oids.SUBJECT_ALT_NAME,)),
        )


def _by_oid(path: Path, entries: Any, names: oids.OidNames, private: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(entries, dict):
        raise ConfigError(f"invalid CSR attributes in {path}, expected a map of OID to text, received {type(entries).__name__}")
    texts: dict[str, str] = {}
    for name, value in entries.items():
        oid = names.oid_of(str(name).lstrip(":"))
        # These are set by the program; a site's file must not be able to contradict it.
        if oid in private:
            what = "extension request" if private == (oids.SUBJECT_ALT_NAME,) else "CSR attribute"
            raise ConfigError(
                f"Cannot specify {what} {name}: it is set by Puppet itself (file: {path})",
                hint="Alternative names come from the setting dns_alt_names." if oid == oids.SUBJECT_ALT_NAME else "",
            )
        if isinstance(value, (dict, list)) or value is None:
            raise ConfigError(f"The value of {name} in {path} is not a text")
        texts[oid] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return texts


def alternative_names(names: Iterable[str]) -> list[x509.GeneralName]:
    """Return the GeneralNames of `x`, `DNS:x` and `IP:x`, sorted as text, without duplicates; raise ConfigError for an invalid one."""
    texts = sorted({name if name.startswith(("DNS:", "IP:")) else f"DNS:{name}" for name in (n.strip() for n in names) if name})
    general_names: list[x509.GeneralName] = []
    for text in texts:
        kind, _, value = text.partition(":")
        try:
            general_names.append(x509.IPAddress(ipaddress.ip_address(value)) if kind == "IP" else x509.DNSName(value))
        except ValueError as err:
            raise ConfigError(
                f"{quoted_for_log(text)} cannot be an alternative name", hint="dns_alt_names lists host names, or IP:address."
            ) from err
    return general_names


def build(
    key: PrivateKey,
    name: str,
    *,
    dns_alt_names: Sequence[str] = (),
    attributes: CsrAttributes | None = None,
    auto_renew: bool = False,
) -> x509.CertificateSigningRequest:
    """
    Return a request for `name`, signed by `key`.

    It asks for alternative names only when `dns_alt_names` has some; then `name` itself is one of them.

    Args:
        auto_renew: announce with Puppet 8's attribute that this agent renews its certificate itself.
    Source: protocol reference 5.4.
    """
    requested = attributes or CsrAttributes()
    builder = x509.CertificateSigningRequestBuilder().subject_name(common_name(name))
    values = dict(requested.attributes)
    if auto_renew:
        values.setdefault(oids.AUTO_RENEW, "true")
    for oid, value in values.items():
        # PrintableString where possible, as in the requests of Puppet's agents.
        tag = _ASN1Type.PrintableString if _PRINTABLE.issuperset(value) else _ASN1Type.UTF8String
        builder = builder.add_attribute(x509.ObjectIdentifier(oid), value.encode(), _tag=tag)
    for oid, value in requested.extensions.items():
        content = der.encode(der.UTF8_STRING, value.encode())
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), content), critical=False)
    if dns_alt_names:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative_names([*dns_alt_names, name])), critical=False)
    return builder.sign(key, digest_for(key))


def common_name(name: str) -> x509.Name:
    """Return the subject `CN=name`."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


@dataclass(frozen=True, slots=True)
class CommonName:
    """One CN of a subject: its text, whether it is a PrintableString or UTF8String, whether it is alone in its RDN."""

    value: str
    usual_string: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class RequestedExtension:
    oid: str
    critical: bool
    value: bytes

    @property
    def text(self) -> str:
        return der.extension_text(self.value)


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The fields of a request that a policy may consider, as plain data; `sent` is the DER as received."""

    sent: bytes
    subject: str  # as /CN=x, safe to show
    common_names: tuple[CommonName, ...]
    other_names: bool  # the subject has more than CNs
    alternative_names: tuple[str, ...]  # DNS:x, IP:x, email:x, URI:x, …
    extensions: tuple[RequestedExtension, ...]  # without the alternative names
    attributes: tuple[tuple[str, bytes], ...]
    public_key: PublicKeyTypes
    strength: Strength
    signature_hash: str  # 'sha256'; '' for Ed25519
    signature_valid: bool

    @property
    def name(self) -> str:
        """The common name; '' when there is not exactly one."""
        return self.common_names[0].value if len(self.common_names) == 1 else ""

    @property
    def pem(self) -> bytes:
        return self.public_bytes(Encoding.PEM)

    def public_bytes(self, encoding: Encoding) -> bytes:
        """Return the request as it was received, DER or PEM."""
        if encoding is Encoding.DER:
            return self.sent
        lines = textwrap.wrap(base64.b64encode(self.sent).decode(), 64)
        return "\n".join(["-----BEGIN CERTIFICATE REQUEST-----", *lines, "-----END CERTIFICATE REQUEST-----", ""]).encode()

    @property
    def announces_renewal(self) -> bool:
        """True if the agent announces that it renews its certificate itself, as agents of Puppet 8 do."""
        return self.attribute(oids.AUTO_RENEW) == "true"

    def attribute(self, oid: str) -> str | None:
        """Return the text of a custom attribute; None when the request lacks it."""
        return next((value.decode("utf-8", "replace") for known, value in self.attributes if known == oid), None)


def parse(pem: bytes, *, max_bytes: int = MAX_REQUEST_BYTES) -> RequestFacts:
    """
    Return the facts of the one request in a PEM text. This checks only that the text is one complete, well-formed request.

    Raises:
        BadData: no request, more than one, not DER, an extension twice, a key of an unknown kind.
        TooLarge: longer than `max_bytes`.
    """
    requests = bundles.blocks(pem, bundles.REQUEST, max_bytes=max_bytes)
    # Which of several would be signed is ambiguous between parsers.
    if len(requests) != 1:
        raise BadData("There is no certificate request in this text" if not requests else "There is more than one certificate request here")
    try:
        return _facts(_load(requests[0]), requests[0])
    except x509.InvalidVersion as err:
        raise BadData(f"The certificate request has a version that does not exist: {err.parsed_version}") from err
    except x509.DuplicateExtension as err:
        raise BadData(f"The certificate request has the extension {err.oid.dotted_string} twice") from err
    except UnsupportedAlgorithm as err:
        raise BadData(f"The certificate request has a key or signature of a kind that is not supported: {err}") from err
    except (ValueError, TypeError, x509.UnsupportedGeneralNameType) as err:
        raise BadData(f"The certificate request is not well-formed: {err}") from err


def _load(sent: bytes) -> x509.CertificateSigningRequest:
    """
    Return the request in a DER text.

    `puppetserver ca generate` writes version 2, although only 0 exists, and its CA accepts that. Such a request is read as version 0.
    """
    try:
        return x509.load_der_x509_csr(sent)
    except x509.InvalidVersion:
        body, *signature = der.elements(der.element(sent)[1])
        version, *rest = der.elements(body[1])
        if version != (der.INTEGER, b"\x02"):
            raise
        written = der.encode(der.SEQUENCE, _join([(der.INTEGER, b"\x00"), *rest]))
        return x509.load_der_x509_csr(der.encode(der.SEQUENCE, written + _join(signature)))


def _join(parts: list[tuple[int, bytes]]) -> bytes:
    return b"".join(der.encode(tag, content) for tag, content in parts)


def _is_signed_by_own_key(csr: x509.CertificateSigningRequest, sent: bytes) -> bool:
    """Return whether the request's own key signed the received bytes, whichever version they claim."""
    # A request whose version was rewritten above no longer has the bytes that were signed.
    if csr.public_bytes(Encoding.DER) == sent:
        return csr.is_signature_valid
    signed = der.encode(*der.elements(der.element(sent)[1])[0])
    key, how = csr.public_key(), csr.signature_algorithm_parameters
    with suppress(InvalidSignature):
        if isinstance(key, rsa.RSAPublicKey) and isinstance(how, padding.PKCS1v15) and csr.signature_hash_algorithm is not None:
            key.verify(csr.signature, signed, how, csr.signature_hash_algorithm)
            return True
    return False


def _facts(csr: x509.CertificateSigningRequest, sent: bytes) -> RequestFacts:
    key = csr.public_key()
    common, others = _subject(csr.subject)
    extensions, alternatives = [], []
    for extension in csr.extensions:
        oid = extension.oid.dotted_string
        if oid == oids.SUBJECT_ALT_NAME:
            alternatives = [general_name(name) for name in extension.value]
        else:
            extensions.append(RequestedExtension(oid, extension.critical, extension.value.public_bytes()))
    digest = csr.signature_hash_algorithm
    private = (oids.EXTENSION_REQUEST, oids.MS_EXTENSION_REQUEST)
    return RequestFacts(
        sent=sent,
        subject=subject_text(csr.subject),
        common_names=common,
        other_names=others,
        alternative_names=tuple(alternatives),
        extensions=tuple(extensions),
        attributes=tuple((a.oid.dotted_string, a.value) for a in csr.attributes if a.oid.dotted_string not in private),
        public_key=key,
        strength=strength(key) if _named_curve(csr, key) else Strength("EC with explicit parameters", strength(key).bits),
        signature_hash=digest.name if digest else "",
        signature_valid=_is_signed_by_own_key(csr, sent),
    )


def _named_curve(csr: x509.CertificateSigningRequest, key: PublicKeyTypes) -> bool:
    """Return False for an EC key that spells out its curve: parsers disagree on those, and some accepted a forged base point."""
    parts = der.elements(der.element(csr.tbs_certrequest_bytes)[1])
    algorithm = der.elements(der.elements(parts[2][1])[0][1])
    return not isinstance(key, ec.EllipticCurvePublicKey) or algorithm[1][0] == der.OBJECT_IDENTIFIER


def _subject(name: x509.Name) -> tuple[tuple[CommonName, ...], bool]:
    """Return the CNs of a subject with their string types, and whether it has other attributes. Only the DER has both."""
    common_names, others = [], False
    _, content, _ = der.element(name.public_bytes())
    for _, rdn in der.elements(content):
        members = der.elements(rdn)
        for _, member in members:
            if not member.startswith(_CN):
                others = True
                continue
            tag, value, _ = der.element(member[len(_CN) :])
            usual = tag in (der.UTF8_STRING, der.PRINTABLE_STRING)
            common_names.append(CommonName(value.decode("utf-8" if usual else "latin-1", "replace"), usual, len(members) == 1))
    return tuple(common_names), others


def general_name(name: x509.GeneralName) -> str:
    """Return `DNS:x`, `IP:x` and so on, with OpenSSL's labels."""
    label = next((label for cls, label in _KINDS if isinstance(name, cls)), type(name).__name__)
    value = name.value
    if isinstance(value, x509.Name):
        return f"{label}:{subject_text(value)}"
    if isinstance(value, x509.ObjectIdentifier):
        return f"{label}:{value.dotted_string}"
    return f"{label}:{'<unsupported>' if isinstance(name, x509.OtherName) else value}"


def subject_text(name: x509.Name) -> str:
    """Return `/CN=x/O=y`, OpenSSL's one-line form; control and non-ASCII characters are escaped."""
    parts = (f"/{a.rfc4514_attribute_name}={a.value if isinstance(a.value, str) else a.value.hex()}" for a in name)
    return "".join(c if c.isascii() and c.isprintable() else f"\\u{{{ord(c):x}}}" for c in "".join(parts))
