"""Services of init scripts on Debian. Source: resource layer reference 8."""

from __future__ import annotations

import asyncio
import glob
from pathlib import Path
from typing import Any

from shared.ral import Command, Confine, State
from shared.types.exec import Words
from shared.types.service import Service

from .base import STATUS_SECONDS
from .init import Scripts
from .systemd import OLD_DEBIAN, is_systemd

_ENABLED, _ASK_LINKS = (104, 106), (101, 105)  # exit codes of `invoke-rc.d --query`
_LINKS = 4  # an enabled service is started in so many runlevels


def enabled_of(code: int, links: int) -> str:
    """Return `enable` from the exit code of `invoke-rc.d --query` and the number of start links."""
    return "true" if code in _ENABLED or (code in _ASK_LINKS and links >= _LINKS) else "false"


class Debian(
    Scripts,
    name="debian",
    features=("enableable",),
    confine=[Confine("another process 1 than systemd", lambda _: not is_systemd())],
    default_for=[{"os.name": "debian", "os.release.major": OLD_DEBIAN}, {"os.name": "devuan"}],
):
    """Manages init scripts, enabled and disabled by `update-rc.d`."""

    update_rc_d = Command("/usr/sbin/update-rc.d")
    invoke_rc_d = Command("/usr/sbin/invoke-rc.d")
    service = Command("/usr/sbin/service")

    async def command(self, resource: Service, action: str) -> Words | None:
        if action == "status":
            return [self.service.path, resource.name, "status"] if resource.hasstatus else None
        return await super().command(resource, action)

    async def enablement(self, resource: Service) -> dict[str, Any]:
        output = await self.invoke_rc_d("--quiet", "--query", resource.name, "start", seconds=STATUS_SECONDS, fail=False)
        links = await asyncio.to_thread(self._links, resource.name)
        return {"enable": enabled_of(output.code, links)}

    def _links(self, name: str, etc: Path = Path("/etc")) -> int:
        return len(list(etc.glob(f"rc*.d/S[0-9][0-9]{glob.escape(name)}")))

    async def set_enable(self, resource: Service, desired: str, state: State | None) -> None:
        if desired == "true":
            await self.update_rc_d("-f", resource.name, "remove")
            await self.update_rc_d(resource.name, "defaults")
        else:
            await self.update_rc_d(resource.name, "disable")
