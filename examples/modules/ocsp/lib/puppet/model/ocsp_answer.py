"""An answer of the CA about one certificate, by RFC 6960."""

from __future__ import annotations

import base64

from shared.indirector import Indirection, Model


class OcspAnswer(Model):
    """`name` is the certname, `response` the DER of what the CA has signed, in base64."""

    response: str

    @property
    def der(self) -> bytes:
        return base64.b64decode(self.response, validate=True)

    @classmethod
    def of(cls, name: str, der: bytes) -> OcspAnswer:
        """Return the answer about a certificate in DER."""
        return cls(name=name, response=base64.b64encode(der).decode())


INDIRECTION = Indirection(
    name="ocsp_answer",
    model=OcspAnswer,
    formats=("json", "pson"),
    options=frozenset({"nonce"}),
    needs_environment=False,
    doc="Whether the certificate of a name is good, revoked or unknown, signed by the CA.",
)
