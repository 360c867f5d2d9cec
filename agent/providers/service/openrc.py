"""Services of OpenRC, on Gentoo and Alpine. Source: resource layer reference 8."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.ral import Command, State
from shared.types.exec import Words
from shared.types.service import Service

from .base import STATUS_SECONDS, ServiceProvider, script_has

_LINE = re.compile(r"\s+(.*?)\s*\[\s*(.*)\s*\]")


def parse_status(text: str) -> dict[str, bool]:
    """
    Return by name whether each service in the output of `rc-status -C -a` is in a runlevel.

    Services below `Runlevel: …` are, those below `Dynamic Runlevel: …` only happen to run.
    """
    enabled: dict[str, bool] = {}
    in_runlevel = False
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            enabled.setdefault(match[1], in_runlevel)
        elif line[:1].strip():
            in_runlevel = line.startswith("Runlevel: ")
    return enabled


class Openrc(
    ServiceProvider,
    name="openrc",
    features=("enableable",),
    default_for=[{"os.name": "gentoo"}, {"os.name": "funtoo"}, {"os.name": "alpine"}],
):
    """Manages scripts of OpenRC, by `rc-service` and `rc-update`."""

    rc_status = Command("/bin/rc-status", environment={"RC_SVCNAME": ""})
    rc_service = Command("/sbin/rc-service")
    rc_update = Command("/sbin/rc-update")

    async def command(self, resource: Service, action: str) -> Words | None:
        return [self.rc_service.path, resource.name, action] if script_has(resource, action) else None

    async def _levels(self) -> dict[str, bool]:
        return parse_status((await self.rc_status("-C", "-a", seconds=STATUS_SECONDS)).text)

    async def enablement(self, resource: Service) -> dict[str, Any]:
        return {"enable": "true" if (await self._levels()).get(resource.name) else "false"}

    async def instances(self) -> Mapping[str, State]:
        names = (await self.rc_service("-C", "--list", seconds=STATUS_SECONDS)).text.split()
        levels = await self._levels()
        states: dict[str, State] = {}
        for name in names:
            output = await self.rc_service(name, "status", seconds=STATUS_SECONDS, fail=False)
            states[name] = {"ensure": "stopped" if output.code else "running", "enable": "true" if levels.get(name) else "false"}
        return states

    async def set_enable(self, resource: Service, desired: str, state: State | None) -> None:
        await self.rc_update("-C", "add" if desired == "true" else "del", resource.name)
