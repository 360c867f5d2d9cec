"""Plain values of the HTTP client: addresses of servers, the proxy, limits, and the record of one exchange."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yarl import URL

from shared import __version__
from shared.settings import AgentSettings
from shared.wire.dialects import MODERN

from .pace import Bounds

PROBE = "/status/v1/simple"  # servers of all versions name their version in the answer
# These say whether a server can serve agents, which takes less than all of its services; servers before Puppet 7 know only the second.
READY_PROBES = (f"{PROBE}/server", f"{PROBE}/master")


@dataclass(frozen=True, slots=True)
class Site:
    """The host and port on which a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def url(self, target: str) -> URL:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return URL(f"https://{host}:{self.port}{target}", encoded=True)


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy for CONNECT, and the hosts that are reached without it."""

    host: str = ""
    port: int = 3128
    user: str = ""
    password: str = field(default="", repr=False)
    exceptions: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: AgentSettings) -> Proxy:
        """Return the proxy of the settings, in which `none` means that there is none."""
        host, user, password = (
            "" if text == "none" else text for text in (settings.http_proxy_host, settings.http_proxy_user, settings.http_proxy_password)
        )
        return cls(host, settings.http_proxy_port, user, password, settings.no_proxy)

    def serves(self, host: str) -> bool:
        """Return whether requests to `host` use the proxy. Exceptions are names, suffixes (`.example.com`, `*.example.com`) or `*`."""
        if not self.host:
            return False
        name = host.lower()
        for exception in (pattern.lower().removeprefix("*") for pattern in self.exceptions):
            if exception in ("", name) or (exception.startswith(".") and name.endswith(exception)) or name.endswith(f".{exception}"):
                return False
        return True

    def options(self, host: str) -> dict[str, Any]:
        """Return aiohttp's keyword arguments for a request to `host`."""
        if not self.serves(host):
            return {}
        options: dict[str, Any] = {"proxy": f"http://{self.host}:{self.port}"}
        if self.user:
            credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            options["proxy_headers"] = {"Proxy-Authorization": f"Basic {credentials}"}
        return options


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The limits of every exchange, in seconds, bytes and counts."""

    connect: float = 120.0
    read: float = 600.0  # between two pieces of an answer
    keepalive: float = 4.0
    body: int = 256 * 2**20  # of an answer held in memory, after decompression
    retries: int = 10  # of a request that was answered 429 or 503 with Retry-After
    longest_wait: float = 300.0  # seconds of one such wait
    connections: int = 8
    bounds: Bounds = field(default_factory=Bounds)  # of every body, `size` of those that are streamed

    @classmethod
    def of(cls, settings: AgentSettings) -> HttpLimits:
        """Return the limits of the settings."""
        return cls(
            connect=settings.http_connect_timeout,
            read=settings.http_read_timeout,
            keepalive=settings.http_keepalive_timeout,
            body=settings.max_catalog_body,
            retries=settings.http_retries,
            longest_wait=settings.http_longest_wait,
            bounds=Bounds(size=settings.max_source_size, rate=settings.http_least_rate, seconds=settings.http_body_timeout),
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as observers receive it."""

    method: str
    target: str
    status: int
    connection: int  # counts from 1 in one pool
    reused: bool
    site: Site
    verified: bool
    seconds: float


ExchangeObserver = Callable[[Exchange], None]


def agent_headers(user_agent: str, extra_headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of all requests of an agent: those that name it take precedence over `extra_headers`."""
    own_headers = {"User-Agent": user_agent, "X-Puppet-Version": MODERN.version}
    own_names = {name.lower() for name in own_headers}
    return {name: value for name, value in extra_headers.items() if name.lower() not in own_names} | own_headers


def headers_of(settings: AgentSettings) -> dict[str, str]:
    """Return the headers of all requests with these settings."""
    return agent_headers(
        settings.http_user_agent or f"Puppet/{MODERN.version} Bunraku/{__version__}",
        {name: value.strip() for name, _, value in (header.partition(":") for header in settings.http_extra_headers)},
    )
