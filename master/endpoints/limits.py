"""The limits of a master: those of its server, and of the bodies that its endpoints take."""

from __future__ import annotations

from dataclasses import dataclass

from httpd.limits import ServerLimits
from shared.errors import ConfigError


@dataclass(frozen=True, slots=True)
class MasterLimits(ServerLimits):
    """The limits of a server, and the bytes of each kind of body. The names and their documentation are those of the settings."""

    max_request_body: int = 64 * 1024
    max_facts_body: int = 16 * 1024 * 1024
    max_report_body: int = 64 * 1024 * 1024
    max_bucket_body: int = 1024 * 1024 * 1024
    max_crl_body: int = 64 * 1024 * 1024

    def body(self, name: str) -> int:
        """Return the limit that an indirection names; raise ConfigError when there is no such limit."""
        if name not in self.__dataclass_fields__:
            raise ConfigError(f"There is no limit called {name}", hint=f"Limits are {', '.join(sorted(self.__dataclass_fields__))}.")
        return int(getattr(self, name))
