"""`puppet dns`: the zones at the DNS provider, without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from puppet_provider_dnszone_rest import ask

from shared.errors import NotFound
from shared.faces import Face, action, option


class Dns(Face, name="dns"):
    """
    See what the DNS provider has.

    Examples:
        puppet dns zones --credentials /tmp/dns.json
    """

    credentials: Path = option(Path("/etc/puppet/dns.json"), 'Where the provider is, in JSON: {"url": …, "token": …}.')

    @action(default=True)
    async def zones(self, *, email: str = "") -> dict[str, str]:
        """
        Print all zones, each with the mailbox of its administrator.

        Args:
            email: Only the zones of this mailbox.
        """
        zones = await ask(self.credentials, "GET", "/zones")
        return {name: str(zone.get("email", "")) for name, zone in sorted(zones.items()) if email in ("", zone.get("email"))}

    @action
    async def records(self, zone: str) -> list[dict[str, Any]]:
        """
        Print the records of a zone.

        Args:
            zone: Its name, as `zones` prints it.
        """
        if zone not in await self.zones():
            raise NotFound(f"The provider has no zone {zone}", hint="'puppet dns zones' prints those that it has.")
        records = await ask(self.credentials, "GET", f"/zones/{zone}/records")
        names = {key: key.rpartition("/") for key in sorted(records)}  # NAME/TYPE
        return [{"name": name, "type": kind, **records[key]} for key, (name, _, kind) in names.items()]

    @records.renders("console")
    def as_lines(self, records: list[dict[str, Any]]) -> str:
        return "\n".join(f"{record['name']} {record['type']} {' '.join(as_values(record.get('value')))}" for record in records)


def as_values(value: Any) -> list[str]:
    """The values of a record, of which one may stand alone."""
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]
