"""The client of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_SUBQUERIES = "X-No-Subqueries"
"""The header by which a master has its store refuse subqueries of a client."""


@dataclass(frozen=True, slots=True)
class Client:
    """
    The client of a request. `name` is the certificate's common name, or the address of an anonymous peer.

    `extensions` are the certificate's trusted extensions by short name or OID, `certificate` its DER.
    """

    name: str
    address: str
    authenticated: bool
    extensions: Mapping[str, str] = field(default_factory=dict)
    alt_names: tuple[str, ...] = ()
    certificate: bytes | None = None
