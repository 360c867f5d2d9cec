"""Online certificate status (RFC 6960): requests for one certificate, read, and the responses to them, built."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import ocsp

from shared.errors import BadData

from . import der
from .keys import PrivateKey, digest_for

Status = Literal["good", "revoked", "unknown"]
REQUEST_MIME = "application/ocsp-request"
RESPONSE_MIME = "application/ocsp-response"
MAX_REQUEST_BYTES = 16 * 1024
MAX_NONCE = 32  # octets, RFC 8954
LIFETIME = timedelta(hours=1)  # how long an answer may be kept
_DIGESTS: dict[str, Callable[[], HashAlgorithm]] = {"sha1": SHA1, "sha256": SHA256, "sha384": SHA384, "sha512": SHA512}


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """The question of a request: one certificate, named by digests of its issuer and by its serial."""

    algorithm: str
    issuer_name_hash: bytes
    issuer_key_hash: bytes
    serial: int
    nonce: bytes | None


def parse_request(request: bytes) -> StatusRequest:
    """Return the question in the DER of a request; raise BadData when it is not about exactly one certificate."""
    if len(request) > MAX_REQUEST_BYTES:
        raise BadData(f"An OCSP request of {len(request)} bytes is over the limit of {MAX_REQUEST_BYTES}")
    try:
        parsed = ocsp.load_der_ocsp_request(request)
        nonce = next((e.value.nonce for e in parsed.extensions if isinstance(e.value, x509.OCSPNonce)), None)
        question = StatusRequest(parsed.hash_algorithm.name, parsed.issuer_name_hash, parsed.issuer_key_hash, parsed.serial_number, nonce)
    except (ValueError, TypeError, NotImplementedError, UnsupportedAlgorithm, x509.DuplicateExtension) as err:
        raise BadData("This is not an OCSP request for one certificate") from err
    if nonce is not None and len(nonce) > MAX_NONCE:
        raise BadData(f"The nonce of an OCSP request is longer than {MAX_NONCE} octets")
    return question


def is_issued_by(question: StatusRequest, issuer: x509.Certificate) -> bool:
    """Return whether the certificate in question was issued under `issuer`'s name by `issuer`'s key."""
    if question.algorithm not in _DIGESTS:
        return False
    spki = issuer.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    _, content, _ = der.element(spki)
    bits = der.elements(content)[1][1][1:]  # the BIT STRING's octets, without the count of unused bits
    return (
        hashlib.new(question.algorithm, issuer.subject.public_bytes()).digest() == question.issuer_name_hash
        and hashlib.new(question.algorithm, bits).digest() == question.issuer_key_hash
    )


def build_response(
    question: StatusRequest,
    status: Status,
    *,
    authority: x509.Certificate,
    key: PrivateKey,
    now: datetime,
    revoked_at: datetime | None = None,
) -> bytes:
    """Return the DER of a response by the authority itself, with the request's nonce; valid for an hour from `now`."""
    statuses = {"good": ocsp.OCSPCertStatus.GOOD, "revoked": ocsp.OCSPCertStatus.REVOKED, "unknown": ocsp.OCSPCertStatus.UNKNOWN}
    now = now.replace(microsecond=0)
    builder = (
        ocsp.OCSPResponseBuilder()
        .add_response_by_hash(
            question.issuer_name_hash,
            question.issuer_key_hash,
            question.serial,
            _DIGESTS[question.algorithm](),
            statuses[status],
            now,
            now + LIFETIME,
            (revoked_at or now) if status == "revoked" else None,
            x509.ReasonFlags.key_compromise if status == "revoked" else None,
        )
        .responder_id(ocsp.OCSPResponderEncoding.HASH, authority)
    )
    if question.nonce is not None:
        builder = builder.add_extension(x509.OCSPNonce(question.nonce), critical=False)
    return builder.sign(key, digest_for(key)).public_bytes(Encoding.DER)


def build_refusal(kind: Literal["malformed", "unauthorized"]) -> bytes:
    """Return the DER of a refusal: of a malformed request, or about another authority's certificate."""
    status = {
        "malformed": ocsp.OCSPResponseStatus.MALFORMED_REQUEST,
        "unauthorized": ocsp.OCSPResponseStatus.UNAUTHORIZED,
    }[kind]
    return ocsp.OCSPResponseBuilder.build_unsuccessful(status).public_bytes(Encoding.DER)
