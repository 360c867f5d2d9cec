"""A certificate, or the bundle of the CA's under the name `ca`."""

from __future__ import annotations

from typing import Self

from ..errors import BadData
from ..indirector.core import Indirection
from .pem import PemText, text_with


class Certificate(PemText):
    """`name` is the first certificate's common name, '' when it has none or several."""

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        from cryptography import x509

        try:
            found = x509.load_pem_x509_certificate(text_with(body, b"CERTIFICATE"))
            names = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        except ValueError as err:
            raise BadData(f"The certificate is not well-formed: {err}") from err
        return cls(name=str(names[0].value) if len(names) == 1 else "", pem=body)


CERTIFICATE = Indirection(
    name="certificate",
    model=Certificate,
    formats=("s",),
    needs_environment=False,
    doc="Certificates of nodes, and the CA's own under the name ca.",
)
