"""Snaps, by `snap`; a channel is chosen with `install_options => ['--channel=latest/stable']`."""

from __future__ import annotations

from collections.abc import Mapping

from shared.ral import Command, State
from shared.types.package import Package

from .packages import LISTING_SECONDS, PackageProvider


def parse(text: str) -> dict[str, str]:
    """Return versions by name, from the table that `snap list` and `snap refresh --list` print."""
    rows = [line.split() for line in text.splitlines()]
    start = next((number for number, row in enumerate(rows) if row[:2] == ["Name", "Version"]), None)
    return {} if start is None else {row[0]: row[1] for row in rows[start + 1 :] if len(row) > 1}


class Snap(PackageProvider, name="snap", features=("purgeable", "install_options", "uninstall_options")):
    """Manages snaps; used only when a resource names it, never by default."""

    last_resort = True
    snap = Command("snap")

    async def instances(self) -> Mapping[str, State]:
        output = await self.snap("list", seconds=LISTING_SECONDS, fail=False)
        return {name: {"ensure": version} for name, version in parse(output.text).items()}

    async def query(self, resource: Package) -> State | None:
        return (await self.instances()).get(resource.name)

    async def latest(self, resource: Package, state: State) -> str | None:
        output = await self.snap("refresh", "--list", seconds=LISTING_SECONDS, fail=False)
        return parse(output.text).get(resource.name) or state.get("ensure")

    async def install(self, resource: Package, state: State | None) -> None:
        await self.snap("install", *self.install_options(resource), resource.source or resource.name)

    async def update(self, resource: Package, state: State | None) -> None:
        is_installed = (state or {}).get("ensure") not in ("absent", "purged", None)
        await self.snap("refresh" if is_installed else "install", *self.install_options(resource), resource.name)

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self.snap("remove", *self.uninstall_options(resource), resource.name)

    async def purge(self, resource: Package, state: State | None) -> None:
        await self.snap("remove", "--purge", resource.name)
