"""A certificate request on its way to the CA."""

from __future__ import annotations

from typing import Self

from ..indirector.core import Indirection
from .pem import PemText, text_with


class CertificateRequest(PemText):
    """`name` is the subject's common name, '' when there is none or several; the CA decides whether the request is valid."""

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        from cryptography.x509 import load_pem_x509_csr

        return cls.read("certificate request", text_with(body, b"NEW CERTIFICATE REQUEST", b"CERTIFICATE REQUEST"), load_pem_x509_csr)


CERTIFICATE_REQUEST = Indirection(
    name="certificate_request",
    model=CertificateRequest,
    formats=("s",),
    needs_environment=False,
    doc="Pending certificate requests.",
)
