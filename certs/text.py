"""Certificates as text for people, in the form that OpenSSL and `puppet cert print` have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import der, oids
from .csr import general_name

_SIGNATURES = {
    "1.2.840.113549.1.1.4": "md5WithRSAEncryption",
    "1.2.840.113549.1.1.5": "sha1WithRSAEncryption",
    "1.2.840.113549.1.1.11": "sha256WithRSAEncryption",
    "1.2.840.113549.1.1.12": "sha384WithRSAEncryption",
    "1.2.840.113549.1.1.13": "sha512WithRSAEncryption",
    "1.2.840.10045.4.3.2": "ecdsa-with-SHA256",
    "1.2.840.10045.4.3.3": "ecdsa-with-SHA384",
    "1.2.840.10045.4.3.4": "ecdsa-with-SHA512",
    "1.3.101.112": "ED25519",
}
_CURVES = {"secp256r1": ("prime256v1", "P-256"), "secp384r1": ("secp384r1", "P-384"), "secp521r1": ("secp521r1", "P-521")}
_USAGES = (
    ("digital_signature", "Digital Signature"),
    ("content_commitment", "Non Repudiation"),
    ("key_encipherment", "Key Encipherment"),
    ("data_encipherment", "Data Encipherment"),
    ("key_agreement", "Key Agreement"),
    ("key_cert_sign", "Certificate Sign"),
    ("crl_sign", "CRL Sign"),
)
_EXTENDED = {"1.3.6.1.5.5.7.3.1": "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.2": "TLS Web Client Authentication"}
_TITLES = {
    "2.5.29.14": "X509v3 Subject Key Identifier",
    "2.5.29.15": "X509v3 Key Usage",
    "2.5.29.17": "X509v3 Subject Alternative Name",
    "2.5.29.19": "X509v3 Basic Constraints",
    "2.5.29.35": "X509v3 Authority Key Identifier",
    "2.5.29.37": "X509v3 Extended Key Usage",
    oids.NS_COMMENT: "Netscape Comment",
}


def certificate(thing: x509.Certificate) -> str:
    """Return the whole certificate as text, with the names of Puppet's extensions instead of their numbers."""
    serial = thing.serial_number
    number = (
        f" {serial} (0x{serial:x})" if serial < 2**63 else "\n            " + _hex(serial.to_bytes((serial.bit_length() + 8) // 8, "big"))
    )
    lines = [
        "Certificate:",
        "    Data:",
        "        Version: 3 (0x2)" if thing.version is x509.Version.v3 else "        Version: 1 (0x0)",
        f"        Serial Number:{number}",
        f"        Signature Algorithm: {_signature_name(thing.signature_algorithm_oid)}",
        f"        Issuer: {_name(thing.issuer)}",
        "        Validity",
        f"            Not Before: {_time(thing.not_valid_before_utc)}",
        f"            Not After : {_time(thing.not_valid_after_utc)}",
        f"        Subject: {_name(thing.subject)}",
        *_public_key(thing.public_key()),
        "        X509v3 extensions:",
        *_extensions(thing.extensions),
        f"    Signature Algorithm: {_signature_name(thing.signature_algorithm_oid)}",
        "    Signature Value:",
        *_octets(thing.signature, "        ", 18),
    ]
    return "\n".join(lines) + "\n"


def _signature_name(oid: x509.ObjectIdentifier) -> str:
    return _SIGNATURES.get(oid.dotted_string, oid.dotted_string)


def _name(name: x509.Name) -> str:
    return ", ".join(f"{a.rfc4514_attribute_name} = {_safe(str(a.value))}" for a in name)


def _safe(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text)


def _time(moment: datetime) -> str:
    months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905  # not the locale's names
    return f"{months[moment.month - 1]} {moment.day:2} {moment:%H:%M:%S} {moment.year} GMT"


def _hex(octets: bytes, *, upper: bool = False) -> str:
    text = octets.hex(":")
    return text.upper() if upper else text


def _octets(octets: bytes, indent: str, width: int) -> Iterable[str]:
    for start in range(0, len(octets), width):
        chunk = octets[start : start + width]
        yield f"{indent}{_hex(chunk)}{':' if start + width < len(octets) else ''}"


def _public_key(key: PublicKeyTypes) -> Iterable[str]:
    yield "        Subject Public Key Info:"
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        yield "            Public Key Algorithm: rsaEncryption"
        yield f"                Public-Key: ({key.key_size} bit)"
        yield "                Modulus:"
        yield from _octets(b"\0" + numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big"), " " * 20, 15)
        yield f"                Exponent: {numbers.e} (0x{numbers.e:x})"
    elif isinstance(key, ec.EllipticCurvePublicKey):
        yield "            Public Key Algorithm: id-ecPublicKey"
        yield f"                Public-Key: ({key.key_size} bit)"
        yield "                pub:"
        yield from _octets(key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint), " " * 20, 15)
        oid, nist = _CURVES.get(key.curve.name, (key.curve.name, ""))
        yield f"                ASN1 OID: {oid}"
        if nist:
            yield f"                NIST CURVE: {nist}"
    elif isinstance(key, ed25519.Ed25519PublicKey):
        yield "            Public Key Algorithm: ED25519"
        yield "                ED25519 Public-Key:"
        yield "                pub:"
        yield from _octets(key.public_bytes(Encoding.Raw, PublicFormat.Raw), " " * 20, 15)
    else:
        yield f"            Public Key Algorithm: {type(key).__name__.strip('_')}"


def _extensions(extensions: x509.Extensions) -> Iterable[str]:
    indent = "            "
    for extension in extensions:
        oid = extension.oid.dotted_string
        title = _TITLES.get(oid) or oids.SHORT_NAMES.get(oid, oid)
        yield f"{indent}{title}: {'critical' if extension.critical else ''}"
        show = _SHOWN.get(type(extension.value))
        text = show(extension.value) if show else _plain(extension.value.public_bytes())
        yield f"{indent}    {text}"


def _plain(value: bytes) -> str:
    """Return a value of an unknown kind as text, as OpenSSL shows raw octets."""
    return _safe(der.extension_text(value))


def _basic(value: x509.BasicConstraints) -> str:
    length = f", pathlen:{value.path_length}" if value.path_length is not None else ""
    return f"CA:{'TRUE' if value.ca else 'FALSE'}{length}"


def _authority_key(value: x509.AuthorityKeyIdentifier) -> str:
    return _hex(value.key_identifier or b"", upper=True)


_SHOWN: Mapping[type[x509.ExtensionType], Callable[[Any], str]] = {
    x509.BasicConstraints: _basic,
    x509.KeyUsage: lambda value: ", ".join(text for field, text in _USAGES if getattr(value, field)),
    x509.ExtendedKeyUsage: lambda value: ", ".join(_EXTENDED.get(u.dotted_string, u.dotted_string) for u in value),
    x509.SubjectKeyIdentifier: lambda value: _hex(value.digest, upper=True),
    x509.AuthorityKeyIdentifier: _authority_key,
    x509.SubjectAlternativeName: lambda value: ", ".join(_safe(general_name(name)).replace("IP:", "IP Address:", 1) for name in value),
}
