"""Base of the models that travel as one PEM text."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from ..dialects import Dialect
from ..errors import BadData
from ..indirector.core import Model


class PemText(Model):
    """`pem` is the text as it came or will go; `name` the certname it is about."""

    pem: bytes = Field(repr=False)

    def to_bytes(self, dialect: Dialect) -> bytes:
        return self.pem

    @classmethod
    def named(cls, name: str, pem: bytes) -> Self:
        return cls(name=name, pem=pem)


def text_with(body: bytes, *labels: bytes) -> bytes:
    """`body`, when it has a PEM block with one of these labels; else BadData."""
    if not any(b"-----BEGIN " + label + b"-----" in body for label in labels):
        raise BadData(f"There is no {labels[-1].decode('ascii').lower()} in PEM form in this text")
    return body
