"""Services of init scripts on Red Hat's systems. Source: resource layer reference 8."""

from __future__ import annotations

import re
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, State
from shared.types.exec import Words
from shared.types.service import Service

from .base import STATUS_SECONDS, script_has
from .init import Scripts


def enabled_of(name: str, output: str, code: int, *, suse: bool) -> str:
    """Return `enable` from the output of `chkconfig NAME`; SUSE's is in words."""
    if code:
        return "false"
    return "true" if not suse or re.search(rf"^{re.escape(name)}\s+(on|B)$", output, re.MULTILINE) else "false"


class Redhat(
    Scripts,
    name="redhat",
    features=("enableable",),
    default_for=[{"os.family": "redhat"}, {"os.family": "suse", "os.release.major": ["10", "11"]}],
):
    """
    Manages init scripts by `service`, enabled and disabled by `chkconfig`.

    Args:
        suse: whether chkconfig is SUSE's.
    """

    chkconfig = Command("/sbin/chkconfig")
    service = Command("/sbin/service")

    def __init__(self, *, suse: bool = False) -> None:
        self.suse = suse

    async def command(self, resource: Service, action: str) -> Words | None:
        return [self.service.path, resource.name, action] if script_has(resource, action) else None

    async def enablement(self, resource: Service) -> dict[str, Any]:
        output = await self.chkconfig(resource.name, seconds=STATUS_SECONDS, fail=False)
        return {"enable": enabled_of(resource.name, output.text, output.code, suse=self.suse)}

    async def set_enable(self, resource: Service, desired: str, state: State | None) -> None:
        word = "enable" if desired == "true" else "disable"
        try:
            if desired == "true":
                await self.chkconfig("--add", resource.name)
                await self.chkconfig(resource.name, "on")
            else:
                await self.chkconfig("--level", "0123456", resource.name, "off")
        except ResourceError as err:
            raise ResourceError(f"Could not {word} {resource.name}: {err.message}") from err
