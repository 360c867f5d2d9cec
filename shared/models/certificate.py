"""A certificate, or the bundle of the CA's under the name `ca`."""

from __future__ import annotations

from typing import Self

from ..indirector.core import Indirection
from .pem import PemText, text_with


class Certificate(PemText):
    """A certificate or bundle; `name` is the first certificate's common name, '' when it has none or several."""

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        from cryptography.x509 import load_pem_x509_certificate

        return cls.read("certificate", text_with(body, b"CERTIFICATE"), load_pem_x509_certificate)


CERTIFICATE = Indirection(
    name="certificate",
    model=Certificate,
    formats=("s",),
    needs_environment=False,
    doc="Certificates of nodes, and the CA's own under the name ca.",
)
