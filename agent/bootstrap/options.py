"""The settings that the bootstrap uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from certs.keys import KeyKind
from certs.verify import Revocation


@dataclass(frozen=True, slots=True)
class BootstrapOptions:
    """The settings that the bootstrap uses; durations are in seconds, 0 means never."""

    environment: str = "production"
    waitforcert: int = 120
    maxwaitforcert: int | None = None
    waitforlock: float = 0.0
    ca_fingerprint: str = ""
    revocation: Revocation = "chain"
    key: KeyKind = field(default_factory=KeyKind)
    dns_alt_names: tuple[str, ...] = ()
    csr_attributes: Path | None = None
    oid_mapping: Path | None = None
    ca_refresh: int = 0
    crl_refresh: int = 0
    renewal: int = 0
    expire_warning: int = 60 * 86400
