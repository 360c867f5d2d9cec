"""Check that one certificate's key signed another certificate or a CRL, SHA-1 included where old CAs of Puppet need it."""

from __future__ import annotations

from contextlib import suppress

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.x509.oid import SignatureAlgorithmOID


def issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """
    Return whether `issuer` is named as the issuer of `certificate` and its key signed it.

    SHA-1 counts for a self-signed root only: it is trusted because it is configured, and its own signature proves nothing
    more than that the file is whole. Roots of Puppet before 3.0 have one.
    """
    with suppress(InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
        certificate.verify_directly_issued_by(issuer)
        return True
    is_old_root = certificate == issuer and certificate.signature_algorithm_oid == SignatureAlgorithmOID.RSA_WITH_SHA1
    return is_old_root and _rsa_sha1(issuer, certificate.signature, certificate.tbs_certificate_bytes)


def crl_is_genuine(crl: x509.CertificateRevocationList, issuer: x509.Certificate) -> bool:
    """
    Return whether `issuer` issued a CRL, by name and signature.

    SHA-1 counts: CRLs of Puppet 3 to 5 have it, and only the CA chooses their entries.
    """
    if crl.issuer != issuer.subject:
        return False
    with suppress(TypeError, ValueError, UnsupportedAlgorithm):
        if crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type]  # DH keys raise TypeError
            return True
    is_old = crl.signature_algorithm_oid == SignatureAlgorithmOID.RSA_WITH_SHA1
    return is_old and _rsa_sha1(issuer, crl.signature, crl.tbs_certlist_bytes)


def _rsa_sha1(issuer: x509.Certificate, signature: bytes, signed: bytes) -> bool:
    key = issuer.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    try:
        key.verify(signature, signed, padding.PKCS1v15(), SHA1())  # noqa: S303  # see above: where no better one exists
    except InvalidSignature:
        return False
    return True
