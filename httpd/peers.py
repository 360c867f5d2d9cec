"""The other ends of connections, and the proxies among them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from shared.client import Client
from shared.errors import ConfigError
from shared.names import quoted_for_log

if TYPE_CHECKING:
    from cryptography import x509  # a server without TLS does not load it: 10 MB


class CheckedParts(NamedTuple):
    """
    The parts of a certificate that are checked at each request, cached because reading them takes as long as the check. `issuer` is the
    DER of a name.
    """

    issuer: bytes
    serial_number: int
    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Peer:
    """A connection's other end. `problem` is the reason why its verified certificate has no valid name."""

    client: Client
    certificate: x509.Certificate | None = None
    problem: str = ""

    @property
    def authenticated(self) -> bool:
        return self.client.authenticated

    @cached_property
    def checked_parts(self) -> CheckedParts | None:
        """The parts of the certificate that are checked at each request; None without a certificate."""
        own = self.certificate
        if own is None:
            return None
        return CheckedParts(own.issuer.public_bytes(), own.serial_number, own.not_valid_before_utc, own.not_valid_after_utc)


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """The proxies whose identity headers count; without `networks` there are none. Header names are lower case with dashes."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    dn_header: str = "x-client-dn"
    verify_header: str = "x-client-verify"
    certificate_header: str = "x-client-cert"

    @classmethod
    def of(cls, *, switched_on: bool, addresses: Iterable[str], dn: str, verify: str) -> ProxyRules:
        """Return the rules of the settings, which have CGI's names of headers (`HTTP_X_CLIENT_DN`); ConfigError for a bad address."""
        networks = []
        for address in addresses if switched_on else ():
            try:
                networks.append(ipaddress.ip_network(address, strict=False))
            except ValueError as err:
                raise ConfigError(f"proxy_addresses: {quoted_for_log(address)} is not an address or network") from err
        return cls(tuple(networks), dn_header=_header(dn), verify_header=_header(verify))

    def trusts(self, address: str) -> bool:
        """Return whether the identity headers of the peer at `address` count."""
        if not self.networks or not address:
            return False
        peer = ipaddress.ip_address(address)
        return any(peer in network for network in self.networks)


def _header(variable: str) -> str:
    return variable.removeprefix("HTTP_").replace("_", "-").lower()


def address_of(peername: object) -> str:
    """Return the address in a socket's name of its peer, as IPv4 also when the peer connected over IPv6; '' when there is none."""
    if not isinstance(peername, Sequence) or not peername:
        return ""
    text = str(peername[0]).split("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
