"""The limits of a server, every one with its unit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Times are seconds, sizes bytes, rates bytes a second. The names and their documentation are those of the settings."""

    handshake_timeout: float = 10
    header_timeout: float = 15
    idle_timeout: float = 60
    body_timeout: float = 15
    body_rate: int = 1024
    write_timeout: float = 60
    close_timeout: float = 5
    drain_timeout: float = 30
    max_connections: int = 5000
    max_handshakes: int = 512
    handshake_threads: int = 0
    max_active_requests: int = 256
    max_queued_requests: int = 5000
    max_client_requests: int = 16
    max_retry_delay: int = 1800
    max_header_line: int = 8190
    max_header_count: int = 100
    max_header_bytes: int = 32 * 1024
    compress_from: int = 1024
    trust_poll_interval: float = 0.5  # not a setting: a revocation must count within a second

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return the limits among a process's settings, which have the same names."""
        names = (field.name for field in fields(cls))
        return cls(**{name: getattr(settings, name) for name in names if hasattr(settings, name)})
