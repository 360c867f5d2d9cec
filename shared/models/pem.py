"""Base of the models that travel as one PEM text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from pydantic import Field

from ..errors import BadData
from ..indirector.core import Model
from ..wire.dialects import Dialect

if TYPE_CHECKING:
    from cryptography import x509


class PemText(Model):
    """A PEM text; `pem` is the text as it came or will go, `name` the certname that it is about."""

    pem: bytes = Field(repr=False)

    def to_bytes(self, dialect: Dialect) -> bytes:
        return self.pem

    @classmethod
    def read(cls, kind: str, pem: bytes, load: Callable[[bytes], x509.Certificate | x509.CertificateSigningRequest]) -> Self:
        """Return the text, by the subject's common name, '' when it has none or several; BadData when it is not well-formed."""
        from cryptography.x509 import NameOID

        try:
            names = load(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        except ValueError as err:
            raise BadData(f"The {kind} is not well-formed: {err}") from err
        return cls(name=str(names[0].value) if len(names) == 1 else "", pem=pem)


def text_with(body: bytes, *labels: bytes) -> bytes:
    """Return `body` when it has a PEM block with one of these labels; else raise BadData."""
    if not any(b"-----BEGIN " + label + b"-----" in body for label in labels):
        raise BadData(f"There is no {labels[-1].decode('ascii').lower()} in PEM form in this text")
    return body
