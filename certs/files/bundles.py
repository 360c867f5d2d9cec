"""PEM files with several blocks: certificates and CRLs, read strictly and within limits."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from shared.errors import BadData, TooLarge

T = TypeVar("T")

MAX_BYTES = 1024 * 1024  # of a bundle of certificates; a chain of ten is 20 KB
MAX_CRL_BYTES = 64 * 1024 * 1024  # a CRL with a million entries
MAX_BLOCKS = 100

CERTIFICATE = b"CERTIFICATE"
CRL = b"X509 CRL"
REQUEST = b"CERTIFICATE REQUEST"
_SPELLINGS = {REQUEST: (REQUEST, b"NEW CERTIFICATE REQUEST")}


def blocks(pem: bytes, label: bytes, *, max_bytes: int = MAX_BYTES, max_blocks: int = MAX_BLOCKS) -> tuple[bytes, ...]:
    """
    Return the DER of each PEM block with this `label`, in order; other text and blocks are skipped.

    Raises:
        BadData: a block is cut off or is not base64: a torn file must not pass for a shorter one.
        TooLarge: more bytes or blocks than allowed.
    """
    if len(pem) > max_bytes:
        raise TooLarge(f"A PEM bundle of {len(pem)} bytes is over the limit of {max_bytes}")
    contents: list[bytes] = []
    labels = _SPELLINGS.get(label, (label,))
    position = 0
    while (start := pem.find(b"-----BEGIN ", position)) >= 0:
        head = pem.find(b"-----", start + 11)
        if head < 0 or head - start > 100:
            raise BadData("A PEM block is cut off in its first line")
        name = pem[start + 11 : head]
        end = pem.find(b"-----END " + name + b"-----", head)
        following = pem.find(b"-----BEGIN ", head)
        if end < 0 or -1 < following < end:
            raise BadData(f"A PEM block {name.decode('ascii', 'replace')!r} has no end: the text is cut off")
        position = end + len(name) + 14
        if name not in labels:
            continue
        if len(contents) == max_blocks:
            raise TooLarge(f"A PEM bundle has more than {max_blocks} blocks")
        try:
            der = base64.b64decode(b"".join(pem[head + 5 : end].split()), validate=True)
        except binascii.Error as err:
            raise BadData(f"A PEM block {name.decode('ascii', 'replace')!r} is not base64") from err
        if not der:
            raise BadData(f"A PEM block {name.decode('ascii', 'replace')!r} is empty")
        contents.append(der)
    return tuple(contents)


def certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return all certificates of a bundle; raise BadData when there is none."""
    return _load_all(pem, CERTIFICATE, x509.load_der_x509_certificate, "certificate", MAX_BYTES)


def certificate(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM text; raise BadData when there is none."""
    return certificates(pem)[0]


def revocation_lists(pem: bytes, *, max_bytes: int = MAX_CRL_BYTES) -> tuple[x509.CertificateRevocationList, ...]:
    """Return all CRLs of a bundle; raise BadData when there is none."""
    return _load_all(pem, CRL, x509.load_der_x509_crl, "CRL", max_bytes)


def _load_all(pem: bytes, label: bytes, load: Callable[[bytes], T], noun: str, max_bytes: int) -> tuple[T, ...]:
    things = []
    for der in blocks(pem, label, max_bytes=max_bytes):
        try:
            things.append(load(der))
        except (ValueError, TypeError) as err:
            raise BadData(f"A PEM block is not a {noun}: {err}") from err
    if not things:
        raise BadData(f"There is no {noun} in this text", hint=f"A PEM file begins with -----BEGIN {label.decode()}-----.")
    return tuple(things)


def dump(things: Iterable[x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList]) -> bytes:
    """Return the PEM texts of all `things`, one after the other."""
    return b"".join(thing.public_bytes(Encoding.PEM) for thing in things)
