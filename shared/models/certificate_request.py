"""A certificate request on its way to the CA."""

from __future__ import annotations

from typing import Self

from ..errors import BadData
from ..indirector.core import Indirection
from .pem import PemText, text_with


class CertificateRequest(PemText):
    """`name` is the subject's common name, '' when there is none or several; whether the request is any good, the CA says."""

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        from cryptography import x509

        try:
            found = x509.load_pem_x509_csr(text_with(body, b"NEW CERTIFICATE REQUEST", b"CERTIFICATE REQUEST"))
            names = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        except ValueError as err:
            raise BadData(f"The certificate request is not well-formed: {err}") from err
        return cls(name=str(names[0].value) if len(names) == 1 else "", pem=body)


CERTIFICATE_REQUEST = Indirection(
    name="certificate_request",
    model=CertificateRequest,
    formats=("s",),
    needs_environment=False,
    doc="Certificate requests that wait to be signed.",
)
