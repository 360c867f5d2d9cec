"""Node's packages by `npm`, installed for all users."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from shared.errors import ResourceError
from shared.ral import State
from shared.types.kinds.arguments import option_arguments
from shared.types.package import Package

from .targeted import Targeted, one_of


def parse(text: str) -> dict[str, str]:
    """Return versions by name, from the output of `npm list --json`; ResourceError when it is not such output."""
    start = text.find("{")
    try:
        tree = json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else {}
    except ValueError as err:
        raise ResourceError(f"npm's list of packages does not parse: {err}") from err
    entries = tree.get("dependencies")
    if not isinstance(entries, Mapping):
        return {}
    return {name: str(entry["version"]) for name, entry in entries.items() if isinstance(entry, Mapping) and entry.get("version")}


class Npm(Targeted, name="npm", features=("uninstall_options",), confine=[one_of("npm")]):
    """Manages Node's global packages."""

    programs = ("npm",)

    async def _list(self, resource: Package | None) -> dict[str, State]:
        # It ends with an error for any package that misses another; the list is complete all the same.
        output = await self.query_manager(resource, "list", "--json", "--global", "--depth=0", fail=False)
        return {name: {"ensure": version} for name, version in parse(output.text).items()}

    async def instances(self) -> Mapping[str, State]:
        return await self._list(None)

    async def query(self, resource: Package) -> State | None:
        return (await self._list(resource)).get(resource.name)

    async def latest(self, resource: Package, state: State) -> str | None:
        output = await self.query_manager(resource, "view", resource.name, "version")
        return output.text.strip().splitlines()[-1] if output.text.strip() else None

    async def install(self, resource: Package, state: State | None) -> None:
        version = "latest" if resource.value_of("ensure") == "latest" else self.version_in_ensure(resource)
        requirement = resource.source or (f"{resource.name}@{version}" if version else resource.name)
        await self.run(resource, "install", "--global", *self._words(resource.install_options), requirement)

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self.run(resource, "uninstall", "--global", *self._words(resource.uninstall_options), resource.name)

    def _words(self, options: Sequence[object] | None) -> list[str]:
        return option_arguments(list(options or ()))
