"""The common base of package managers of languages: a host may have several, and `command` chooses one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from shared.errors import ResourceError
from shared.ral import Confine, Output, Platform, execute, which
from shared.types.package import Package

from .packages import LISTING_SECONDS, PackageProvider


def one_of(*programs: str) -> Confine:
    """Return a confine that holds where at least one of the programs exists."""

    def holds(platform: Platform) -> bool:
        return any(platform.find_program(name) for name in programs)

    return Confine(f"program {' or '.join(programs)}", holds)


class Targeted(PackageProvider, name="targeted", features=("versionable", "install_options", "targetable")):
    """Never a system's default. `programs`: names of its command, the first that exists is used; `environment`: its variables."""

    last_resort = True
    programs: ClassVar[Sequence[str]] = ()
    environment: ClassVar[Mapping[str, str]] = {}

    async def run(self, resource: Package | None, *words: str, seconds: float | None = None, fail: bool = True) -> Output:
        """Run the resource's own command, or the first of `programs` that exists."""
        program = await asyncio.to_thread(self._program, resource)
        home = {"HOME": os.environ["HOME"]} if "HOME" in os.environ else {}
        return await execute([program, *words], environment={**home, **self.environment}, seconds=seconds, fail=fail)

    async def query_manager(self, resource: Package | None, *words: str, fail: bool = True) -> Output:
        """Run the command for a query, which may take no more than LISTING_SECONDS."""
        return await self.run(resource, *words, seconds=LISTING_SECONDS, fail=fail)

    def _program(self, resource: Package | None) -> str:
        own: str | None = resource.value_of("command") if resource else None
        if own:
            program = which(own) if own.startswith("/") and Path(own).name else None
            if program is None:
                raise ResourceError(f"Provider {self.name} package command '{own}' does not exist on this host")
            return program
        for name in self.programs:
            program = which(name)
            if program:
                return program
        raise ResourceError(
            f"Provider {self.name} package command is not functional on this host", hint=f"It needs: {', '.join(self.programs)}"
        )
