"""Zones by the provider's REST API; one listing per run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from puppet_type_dnszone import DnsZone

from shared.errors import ResourceError
from shared.ral import Provider, State, feature

TIMEOUT = 30  # seconds of one request


async def ask(credentials: Path, method: str, path: str, body: Any = None) -> Any:
    """The provider's answer; ResourceError when it refuses or is away."""
    return await asyncio.to_thread(_ask, credentials, method, path, body)


def _ask(credentials: Path, method: str, path: str, body: Any) -> Any:
    try:
        access = json.loads(credentials.read_bytes())
        url, token = f"{access['url']}{path}", access["token"]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise ResourceError(f"Could not read the credentials {credentials}: {err}") from err
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Authorization": f"Bearer {token}"}, method=method)  # noqa: S310  # the URL is the administrator's
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            return json.load(answer)
    except HTTPError as err:
        with err:
            raise ResourceError(f"{method} {url} was answered with {err.code}: {err.read(500).decode('utf-8', 'replace')}") from err
    except (URLError, OSError, ValueError) as err:
        raise ResourceError(f"{method} {url} failed: {err}") from err


class Rest(Provider[DnsZone], type=DnsZone, confine=[feature("posix")]):
    """Reads all zones at once, and writes each after its last change."""

    async def prefetch(self, wanted: Mapping[str, DnsZone]) -> Mapping[str, State | None]:
        found: dict[Path, Any] = {}
        for zone in wanted.values():
            if zone.credentials not in found:
                found[zone.credentials] = await ask(zone.credentials, "GET", "/zones")
        return {name: found[zone.credentials].get(name) for name, zone in wanted.items()}

    async def flush(self, zone: DnsZone, now: State | None) -> None:
        if zone.ensure == "absent":
            await ask(zone.credentials, "DELETE", f"/zones/{zone.name}")
        else:
            await ask(zone.credentials, "PUT", f"/zones/{zone.name}", {**(now or {}), "email": zone.email})
