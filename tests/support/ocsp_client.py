"""The client of an OCSP responder (RFC 6960): requests, built, and responses, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from certs.ocsp import Status, StatusRequest, is_issued_by
from shared.errors import BadData, PeerNotTrusted

CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class StatusResponse:
    """The answer of a responder; `revoked_at` (UTC) is set only with `revoked`."""

    status: Status
    serial: int
    this_update: datetime
    next_update: datetime | None
    revoked_at: datetime | None = None


def build_request(certificate: x509.Certificate, issuer: x509.Certificate, *, nonce: bytes | None = None) -> bytes:
    """Return the DER of a request about `certificate`."""
    builder = ocsp.OCSPRequestBuilder().add_certificate(certificate, issuer, SHA1())  # an identifier, which RFC 5019 fixes
    if nonce is not None:
        builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
    return builder.build().public_bytes(Encoding.DER)


def verify_response(
    response: bytes, *, certificate: x509.Certificate, issuer: x509.Certificate, now: datetime, nonce: bytes | None = None
) -> StatusResponse:
    """
    Return a responder's answer about `certificate`, after checking that the issuer signed it, for this certificate, recently.

    Raises:
        BadData: not a response, or one that refuses.
        PeerNotTrusted: signed by another key, about another certificate, out of date, or with another nonce.
    """
    try:
        parsed = ocsp.load_der_ocsp_response(response)
    except (ValueError, TypeError) as err:
        raise BadData("This is not an OCSP response") from err
    if parsed.response_status != ocsp.OCSPResponseStatus.SUCCESSFUL:
        raise BadData(f"The OCSP responder refuses: {parsed.response_status.name.lower().replace('_', ' ')}")
    try:
        _verify(parsed, issuer)
        nonce_answered = next((e.value.nonce for e in parsed.extensions if isinstance(e.value, x509.OCSPNonce)), None)
        answered = StatusRequest(
            parsed.hash_algorithm.name, parsed.issuer_name_hash, parsed.issuer_key_hash, parsed.serial_number, nonce_answered
        )
    except (InvalidSignature, UnsupportedAlgorithm) as err:
        raise PeerNotTrusted("The OCSP response is not signed by the certificate's issuer") from err
    except (ValueError, TypeError) as err:
        raise BadData("The OCSP response is not for exactly one certificate") from err
    if answered.serial != certificate.serial_number or not is_issued_by(answered, issuer):
        raise PeerNotTrusted("The OCSP response is about another certificate")
    if nonce is not None and nonce_answered is not None and nonce_answered != nonce:
        raise PeerNotTrusted("The OCSP response answers another request: its nonce differs")
    next_update = parsed.next_update_utc
    if parsed.this_update_utc > now + CLOCKS_DIFFER or (next_update is not None and next_update < now - CLOCKS_DIFFER):
        raise PeerNotTrusted("The OCSP response is not of now")
    names: dict[ocsp.OCSPCertStatus, Status] = {ocsp.OCSPCertStatus.GOOD: "good", ocsp.OCSPCertStatus.REVOKED: "revoked"}
    status = names.get(parsed.certificate_status, "unknown")
    return StatusResponse(status, answered.serial, parsed.this_update_utc, next_update, parsed.revocation_time_utc)


def _verify(response: ocsp.OCSPResponse, issuer: x509.Certificate) -> None:
    """Check the signature of the responder, which must be the issuer; raise InvalidSignature otherwise."""
    key, digest = issuer.public_key(), response.signature_hash_algorithm
    if isinstance(key, rsa.RSAPublicKey) and digest is not None:
        key.verify(response.signature, response.tbs_response_bytes, padding.PKCS1v15(), digest)
    elif isinstance(key, ec.EllipticCurvePublicKey) and digest is not None:
        key.verify(response.signature, response.tbs_response_bytes, ec.ECDSA(digest))
    elif isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(response.signature, response.tbs_response_bytes)
    else:
        raise UnsupportedAlgorithm(f"an OCSP response cannot be checked with {type(key).__name__}")
