"""Records by the provider's REST API."""

from __future__ import annotations

from collections.abc import Mapping

from puppet_provider_dnszone_rest import ask
from puppet_type_dnsrr import DnsRecord

from shared.ral import Provider, State, feature


class Rest(Provider[DnsRecord], type=DnsRecord, confine=[feature("posix")]):
    """Reads each zone's records at once."""

    async def prefetch(self, wanted: Mapping[str, DnsRecord]) -> Mapping[str, State | None]:
        places = {(record.credentials, record.zone) for record in wanted.values()}
        found = {(path, zone): await ask(path, "GET", f"/zones/{zone}/records") for path, zone in places}
        return {name: found[each.credentials, each.zone].get(f"{name}/{each.type}") for name, each in wanted.items()}

    async def flush(self, record: DnsRecord, now: State | None) -> None:
        path = f"/zones/{record.zone}/records/{record.name}/{record.type}"
        if record.ensure == "absent":
            await ask(record.credentials, "DELETE", path)
        else:
            await ask(record.credentials, "PUT", path, {"value": record.wanted("value"), "ttl": record.ttl})
