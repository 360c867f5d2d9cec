"""Modules of `dnf`: a stream of one, with one of its profiles. Source: resource layer reference 7.3."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import ABSENT, Command, State
from shared.types.package import NOT_INSTALLED, Package

from .packages import LISTING_SECONDS, PackageProvider
from .versions import compare_rpm

QUIET = ("-d", "0", "-e", "1")
SINCE = "3.0.1"
_CHOSEN = re.compile(r"\[[eix]\][, ]")  # enabled, installed, disabled


def parse(text: str) -> dict[str, State]:
    """Return the modules with a chosen stream in the output of `dnf module list`: the stream or `disabled`, and the installed profile."""
    states: dict[str, State] = {}
    for line in text.splitlines():
        if not _CHOSEN.search(line):
            continue
        line = line.replace("[d]", "")
        words = line.split()
        before = line.partition("[i]")[0].split() if "[i]" in line else []
        states.setdefault(words[0], {"ensure": "disabled" if "[x]" in line else words[1], "flavor": before[-1] if before else ABSENT})
    return states


class DnfModule(PackageProvider, name="dnfmodule", features=("versionable", "purgeable", "disableable", "supports_flavors")):
    """Manages modules: `ensure` is a stream, `flavor` a profile of it; there is no order of streams, and so no latest one."""

    manager = Command("dnf")
    last_resort = True

    def __init__(self) -> None:
        super().__init__()
        self.features = self.features - {"upgradeable"}

    async def prefetch(self, resources: Mapping[str, Package]) -> Mapping[str, State | None]:
        if os.geteuid() != 0:
            raise ResourceError(f"The {self.name} provider can only be used as root")
        output = (await self.manager("--version", seconds=LISTING_SECONDS)).text.split()
        if output and compare_rpm(output[0], SINCE) < 0:
            raise ResourceError(f"Modules are not supported on DNF versions lower than {SINCE}")
        return await super().prefetch(resources)

    async def instances(self) -> Mapping[str, State]:
        return parse((await self.manager("module", "list", *QUIET, seconds=LISTING_SECONDS)).text)

    async def query(self, resource: Package) -> State | None:
        return dict(await self.instances()).get(resource.name)

    async def install(self, resource: Package, state: State | None) -> None:
        if (state or {}).get("ensure", ABSENT) not in NOT_INSTALLED:
            await self.uninstall(resource, state)  # two streams cannot be chosen at once
        module = resource.name
        if stream := self.version_in_ensure(resource):
            module += f":{stream}"
        if resource.flavor:
            module += f"/{resource.flavor}"
        if resource.enable_only:
            await self._module("enable", module)
            return
        try:
            await self._module("install", module)
        except ResourceError as err:
            # dnf up to 4.2.7 takes a module without a default profile for none.
            missing = rf"^(?:missing|broken) groups or modules: {re.escape(resource.name)}(?::\S+)?$"
            if resource.flavor or not re.search(missing, err.message, re.MULTILINE):
                raise
            await self._module("enable", module)

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self._module("remove", resource.name)
        await self._module("reset", resource.name)

    async def purge(self, resource: Package, state: State | None) -> None:
        await self.uninstall(resource, state)

    async def set(self, resource: Package, attribute: str, desired: Any, state: State | None) -> None:
        if attribute == "flavor":
            await self.install(resource, state)
        elif desired == "disabled":
            await self._module("disable", resource.name)
        else:
            await super().set(resource, attribute, desired, state)

    async def _module(self, action: str, module: str) -> None:
        await self.manager("module", action, *QUIET, "-y", module)
