"""Services of init scripts. Source: resource layer reference 8."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from shared.errors import ResourceError
from shared.ral import Confine, Platform, State, execute
from shared.types.exec import Words
from shared.types.service import Service

from .base import STATUS_SECONDS, ServiceProvider, script_has

FOLDERS = ("/etc/init.d",)
NOT_SERVICES = frozenset(
    """
    functions.sh reboot.sh shutdown.sh functions halt killall single linuxconf reboot boot wait-for-state portmap-wait rcS
    module-init-tools plymouth-ready idmapd-mounting startpar-bridge cryptdisks-udev statd-mounting gssd-mounting
    """.split()  # noqa: SIM905
)


def _no_better_one(platform: Platform) -> bool:
    name, family = str(platform.fact("os.name")).lower(), str(platform.fact("os.family")).lower()
    return name not in ("debian", "ubuntu") and family != "redhat"


class Scripts(ServiceProvider, name="scripts"):
    """The common base of providers of init scripts."""

    folders: tuple[str, ...] = FOLDERS

    async def script(self, resource: Service) -> str:
        """Return the path of a service's script: its name, else with .sh, in the first folder that has it."""

        def search() -> str | None:
            folders = [folder for folder in resource.path or self.folders if Path(folder).is_dir()]
            for suffix in ("", ".sh"):
                for folder in folders:
                    path = Path(folder) / f"{resource.name}{suffix}"
                    if path.exists():
                        return str(path)
            return None

        if "/" in resource.name or resource.name in (".", ".."):
            raise ResourceError(f"'{resource.name}' is not the name of a service")
        script_path = await asyncio.to_thread(search)
        if script_path is None:
            raise ResourceError(f"Could not find init script for '{resource.name}'")
        return script_path

    async def command(self, resource: Service, action: str) -> Words | None:
        return [await self.script(resource), action] if script_has(resource, action) else None

    async def instances(self) -> Mapping[str, State]:
        names = await asyncio.to_thread(lambda: [name for folder in self.folders for name in scripts_in(Path(folder))])
        return {name: await self.state_of(name) for name in dict.fromkeys(names)}

    async def state_of(self, name: str) -> State:
        """Return the state of one service, for a listing."""
        resource = Service(name, {})
        resource.handler = self
        words = await self.command(resource, "status") or []
        output = await execute(words, seconds=STATUS_SECONDS, fail=False)
        enable = await self.enablement(resource) if "enableable" in self.features else {}
        return {"ensure": "stopped" if output.code else "running", **enable}


def scripts_in(folder: Path) -> list[str]:
    """Return the names of the init scripts in a folder, sorted."""
    if not folder.is_dir():
        return []
    names = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in NOT_SERVICES or path.is_dir() or not os.access(path, os.X_OK):
            continue
        if path.is_symlink() and str(path.readlink()) == "/lib/init/upstart-job":
            continue
        names.append(path.name)
    return names


class Init(Scripts, name="init", confine=[Confine("a system without a provider of its own for init scripts", _no_better_one)]):
    """Manages plain init scripts; whether they start at boot is not managed."""
