"""The check of validate_x509_rsa_key_pair that a certificate belongs to a key."""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from shared.errors import EvaluationError


def check_key_pair(certificate: str, key: str) -> None:
    """
    Raise an error when a certificate was not signed by a key; both are PEM text.

    Raises:
        EvaluationError: a text cannot be read, or the signature is by another key.
    """
    try:
        cert = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise EvaluationError(f"Not a valid x509 certificate: {error}") from error
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise EvaluationError("Not a valid RSA key: it cannot be read") from None  # the cause might show the key
    if not isinstance(private, rsa.RSAPrivateKey):
        raise EvaluationError("Not a valid RSA key: it is of another kind")
    algorithm = cert.signature_hash_algorithm
    try:
        if algorithm is None:
            raise InvalidSignature
        private.public_key().verify(cert.signature, cert.tbs_certificate_bytes, padding.PKCS1v15(), algorithm)
    except InvalidSignature:
        raise EvaluationError("Certificate signature does not match supplied key") from None
