"""The CRLs of the CA's chain, as one text."""

from __future__ import annotations

from typing import Self

from ..indirector.core import Indirection
from .pem import PemText, text_with


class CertificateRevocationList(PemText):
    """The CRLs in PEM, the same for every key; `name` is `ca`."""

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        return cls(name="ca", pem=text_with(body, b"X509 CRL"))


CERTIFICATE_REVOCATION_LIST = Indirection(
    name="certificate_revocation_list",
    model=CertificateRevocationList,
    formats=("s",),
    limit="max_crl_body",
    needs_environment=False,
    doc="What the CA has revoked.",
)
