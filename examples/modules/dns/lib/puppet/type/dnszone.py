"""`dnszone`: a DNS zone at a hosting provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shared.ral import Param, Property, Ref, Type, ensurable


class DnsZone(Type, name="dnszone"):
    """Manage a DNS zone at a hosting provider."""

    ensure = ensurable()
    name = Param(str, namevar=True, match=r"[a-z0-9.-]+", doc="The zone; a domain name in lower case.")
    email = Property(str, match=r".+@.+", doc="Mailbox of the zone's administrator.")
    credentials = Param(Path, default=Path("/etc/puppet/dns.json"), doc='Where the provider is, in JSON: {"url": …, "token": …}.')

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(self.credentials))
