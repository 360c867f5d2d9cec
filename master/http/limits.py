"""The limits of the HTTP layer, every one with its unit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from shared.errors import ConfigError


@dataclass(frozen=True, slots=True)
class HttpLimits:
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
    max_request_body: int = 64 * 1024
    max_facts_body: int = 16 * 1024 * 1024
    max_report_body: int = 64 * 1024 * 1024
    max_bucket_body: int = 1024 * 1024 * 1024
    max_crl_body: int = 64 * 1024 * 1024
    compress_from: int = 1024
    trust_poll_interval: float = 0.5  # not a setting: a revocation must count within a second

    def body(self, name: str) -> int:
        """The limit that an indirection names."""
        if name not in _NAMES:
            raise ConfigError(f"There is no limit called {name}", hint=f"Limits are {', '.join(sorted(_NAMES))}.")
        return int(getattr(self, name))

    @classmethod
    def of(cls, settings: Any) -> HttpLimits:
        """The limits among the master's settings."""
        return cls(**{name: getattr(settings, name) for name in _NAMES if hasattr(settings, name)})


_NAMES = frozenset(field.name for field in fields(HttpLimits))
