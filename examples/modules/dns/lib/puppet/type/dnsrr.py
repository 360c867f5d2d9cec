"""`dnsrr`: the records of one kind and name in a DNS zone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shared.ral import Param, Property, Ref, Type, ensurable


class DnsRecord(Type, name="dnsrr"):
    """Manage the records of one kind that a name has."""

    ensure = ensurable()
    name = Param(str, namevar=True, match=r"[a-z0-9._-]+", doc="The full name, such as www.example.com.")
    value = Property(str, many=True, doc="What the records hold; their order counts.")
    ttl = Property(int, default=3600, doc="Seconds that resolvers may keep them.")
    type = Param(str, values=("A", "AAAA", "CNAME", "MX", "NS", "TXT"), default="A", doc="The kind of record.")
    zone = Param(str, default=lambda record: record.name.partition(".")[2], doc="The zone; by default what is behind the first dot.")
    credentials = Param(Path, default=Path("/etc/puppet/dns.json"), doc="As of dnszone.")

    def validate(self) -> None:
        if not f".{self.name}".endswith(f".{self.zone}"):
            raise ValueError(f"{self.name} is not in the zone {self.zone}")
        if self.ensure == "present" and not self.value:
            raise ValueError("a record needs a value")

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("dnszone", self.zone)
        yield Ref("file", str(self.credentials))
