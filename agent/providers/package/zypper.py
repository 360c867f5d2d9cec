"""Packages by `zypper`. Source: resource layer reference 7.3."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

from shared.errors import ResourceError
from shared.ral import Command, State, fact
from shared.types.package import Package

from .packages import LISTING_SECONDS
from .rpm import Rpm
from .versions import compare_rpm
from .yum import with_epoch

_SYSTEMS = ["suse", "sles", "sled", "opensuse", "opensuse leap", "opensuse tumbleweed"]
_BEFORE_INSTALL = ("--no-gpg-check", "--no-gpg-checks")  # options of zypper itself, not of its `install`


def parse_table(text: str) -> list[list[str]]:
    """Return the rows of a table as zypper draws it."""
    return [re.split(r"\s*\|\s*", line.strip()) for line in text.splitlines() if "|" in line]


def parse_updates(text: str) -> dict[str, str]:
    """Return the newer version by name, from the output of `list-updates`."""
    return {row[2]: row[4] for row in parse_table(text) if len(row) > 4 and row[0] == "v"}


def parse_version(text: str) -> tuple[int, ...]:
    """Return zypper's own version."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


class Zypper(
    Rpm,
    name="zypper",
    features=("version_ranges",),
    confine=[fact("os.name", *_SYSTEMS)],
    default_for=[{"os.name": _SYSTEMS}],
):
    """Manages RPM packages of SUSE's repositories."""

    zypper = Command("/usr/bin/zypper")
    order = staticmethod(compare_rpm)

    def __init__(self) -> None:
        super().__init__()
        self._updates: Mapping[str, str] | None = None

    async def latest(self, resource: Package, state: State) -> str | None:
        if self._updates is None:
            self._updates = parse_updates((await self.zypper("list-updates", seconds=LISTING_SECONDS)).text)
        return self._updates.get(resource.name) or state.get("ensure")

    async def available(self, resource: Package) -> Sequence[str]:
        words = ("search", "--match-exact", "--type", "package", "--uninstalled-only", "-s", resource.name)
        rows = parse_table((await self.zypper(*words, seconds=LISTING_SECONDS)).text)
        return [with_epoch(row[3]) for row in rows if len(row) > 3 and row[1] == resource.name]

    async def _version(self) -> tuple[int, ...]:
        output = await self.zypper("--version", seconds=LISTING_SECONDS, fail=False)
        return parse_version(output.text) or (1, 0, 0)

    async def install(self, resource: Package, state: State | None) -> None:
        await self._install(resource)
        if await self.query(resource) is None:
            raise ResourceError(f"Could not find package {resource.name}")

    def batch_key(self, resource: Package) -> Hashable | None:
        return None if resource.allow_virtual is False else tuple(self.install_options(resource))

    async def install_together(self, resources: Sequence[Package]) -> None:
        await self._install(*resources)

    async def _install(self, *resources: Package) -> None:
        """Install one package, or several of one `batch_key`."""
        resource = resources[0]
        version = self.version_in_ensure(resource)
        own = await self._version()
        options = self.install_options(resource)
        words = ["--quiet" if own[0] >= 1 else "--terse", *(option for option in options if option in _BEFORE_INSTALL), "install"]
        if own > (0, 6, 13):
            words.append("--auto-agree-with-licenses")
        words += ["--no-confirm", *(option for option in options if option not in _BEFORE_INSTALL)]
        if own[0] >= 1 and resource.allow_virtual is False and not version:
            words.append("--name")
        await self.zypper(*words, *[await self._package_word(resource) for resource in resources])

    async def _package_word(self, resource: Package) -> str:
        version = self.version_in_ensure(resource)
        return f"{resource.name}-{(await self.chosen_version(resource, version)).removeprefix('0:')}" if version else resource.name

    async def uninstall(self, resource: Package, state: State | None) -> None:
        own = await self._version()
        if own[0] < 1:
            await super().uninstall(resource, state)
            return
        forced = ["--force-resolution"] if own < (1, 6) else []
        await self.zypper("remove", "--no-confirm", *forced, resource.name)
