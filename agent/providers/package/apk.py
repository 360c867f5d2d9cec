"""Packages by `apk`, of Alpine Linux."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

from shared.ral import Command, State
from shared.types.package import Package

from .packages import LISTING_SECONDS, PackageProvider
from .versions import compare_rpm_part

_LINE = re.compile(r"(\S+)-([^\s-]+-r\d+) .*?(\[.*\])?\s*")


def parse(text: str) -> list[tuple[str, str, bool]]:
    """Return (name, version, whether it is installed) of each line of `apk list`."""
    matches = (_LINE.fullmatch(line) for line in text.splitlines())
    return [(m[1], m[2], "[installed]" in (m[3] or "")) for m in matches if m]


def order(one: str, other: str) -> int:
    """Compare by Alpine's order; `_rc1` and its like come before the version itself."""
    return compare_rpm_part(*(re.sub(r"_(alpha|beta|pre|rc)", r"~\1", version) for version in (one, other)))


class Apk(
    PackageProvider,
    name="apk",
    features=("versionable", "version_ranges", "install_options", "uninstall_options"),
    default_for=[{"os.family": "alpine"}, {"os.name": "alpine"}],
):
    """Manages Alpine's packages."""

    apk = Command("/sbin/apk")
    order = staticmethod(order)

    async def instances(self) -> Mapping[str, State]:
        output = await self.apk("list", "--installed", seconds=LISTING_SECONDS)
        return {name: {"ensure": version} for name, version, _ in parse(output.text)}

    async def query(self, resource: Package) -> State | None:
        return (await self.instances()).get(resource.name)

    async def available(self, resource: Package) -> Sequence[str]:
        output = await self.apk("list", "--available", resource.name, seconds=LISTING_SECONDS)
        return [version for name, version, _ in parse(output.text) if name == resource.name]

    async def latest(self, resource: Package, state: State) -> str | None:
        best: str | None = state.get("ensure")
        for version in await self.available(resource):
            if best is None or order(version, best) > 0:
                best = version
        return best

    async def install(self, resource: Package, state: State | None) -> None:
        await self.install_together([resource])

    def batch_key(self, resource: Package) -> Hashable | None:
        return None if resource.source else (resource.value_of("ensure") == "latest", *self.install_options(resource))

    async def install_together(self, resources: Sequence[Package]) -> None:
        newer = ["--upgrade"] if resources[0].value_of("ensure") == "latest" else []
        words = [await self._package_word(resource) for resource in resources]
        await self.apk("--no-progress", "add", *newer, *self.install_options(resources[0]), *words)

    async def _package_word(self, resource: Package) -> str:
        version = self.version_in_ensure(resource)
        desired = f"{resource.name}={await self.chosen_version(resource, version)}" if version else resource.name
        return resource.source or desired

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self.apk("--no-progress", "del", *self.uninstall_options(resource), resource.name)
