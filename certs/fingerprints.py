"""Fingerprints as Puppet prints them: upper-case hex pairs of a digest over the DER, joined by colons."""

from __future__ import annotations

import hashlib
from typing import Protocol

from cryptography.hazmat.primitives.serialization import Encoding

from shared.errors import BadRequest
from shared.names import quoted_for_log

DEFAULT = "SHA256"
ALGORITHMS = ("MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512")


def of_bytes(der: bytes, algorithm: str = DEFAULT) -> str:
    """Return `AA:BB:…`, the digest of `der`; raise BadRequest, which names the supported algorithms, for any other."""
    name = algorithm.upper().replace("-", "")
    if name not in ALGORITHMS:
        raise BadRequest(f"Unsupported digest algorithm {quoted_for_log(algorithm)}", hint=f"Choose one of {', '.join(ALGORITHMS)}.")
    return hashlib.new(name.lower(), der, usedforsecurity=False).digest().hex(":").upper()


class Encoded(Protocol):
    """A certificate, a request, or the facts of one."""

    def public_bytes(self, encoding: Encoding, /) -> bytes: ...


def fingerprint(thing: Encoded, algorithm: str = DEFAULT) -> str:
    """Return `AA:BB:…`, the digest of a certificate's or request's DER."""
    return of_bytes(thing.public_bytes(Encoding.DER), algorithm)


def labelled(thing: Encoded, algorithm: str = DEFAULT) -> str:
    """Return `(SHA256) AA:BB:…`."""
    return f"({algorithm.upper()}) {fingerprint(thing, algorithm)}"


def matches(pinned: str, actual: str) -> bool:
    """Return whether a pinned digest, with or without colons and in any case, equals `actual` (`AA:BB:…`)."""
    return bool(pinned) and pinned.replace(":", "").strip().upper() == actual.replace(":", "")


def of_bundle(pem: bytes) -> str:
    """Return the digest that `ca_fingerprint` pins: of the text of the CA bundle as downloaded. Source: protocol reference 5.12."""
    return of_bytes(pem)
