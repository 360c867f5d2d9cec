"""Online certificate status, RFC 6960: a request as the key, the signed answer as the instance."""

from __future__ import annotations

import base64
import binascii
from typing import Self

from ..errors import BadRequest
from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect


class Ocsp(Model):
    """An answer; `content` is its DER (or, saved, that of a request), `name` the request that it belongs to, as `key_of` writes it."""

    content: bytes

    def to_bytes(self, dialect: Dialect) -> bytes:
        return self.content

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        return cls(name="", content=body)


def key_of(request: bytes) -> str:
    """Return the key of a request's DER: base64, in the alphabet that is safe in paths."""
    return base64.urlsafe_b64encode(request).decode("ascii")


def request_of(key: str) -> bytes:
    """Return the DER of a request in a key, in either alphabet of base64 (RFC 6960 A.1 has the standard one); else BadRequest."""
    try:
        return base64.b64decode(key.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as err:
        raise BadRequest("The key of an OCSP request must be the base64 of its DER") from err


OCSP = Indirection(
    name="ocsp",
    model=Ocsp,
    plural="ocsps",
    formats=("binary", "raw"),
    needs_environment=False,
    doc="Whether a certificate is good, revoked or unknown, signed by the CA.",
)
