"""Packages by `yum` and `dnf`. Source: resource layer reference 7.3."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from shared.errors import ResourceError
from shared.ral import Command, State
from shared.types.package import NOT_INSTALLED, Package

from .packages import LISTING_SECONDS
from .rpm import Rpm
from .versions import compare_rpm

_VERSION = re.compile(r"(?:(\d+):)?(\S+)-(\S+)")
_ARCH = re.compile(r"(.+)(\.(?:noarch|i[3-6]86|x86_64|amd64|aarch64|armv7hl|ppc64le|ppc64|s390x|src))-(.+)")
_REPO_OPTIONS = ("--disablerepo", "--enablerepo", "--disableexcludes")
OLD_REDHAT = ["4", "5", "6", "7"]
UPDATES = 100  # the exit code of check-update that says that there are some


def parse_updates(text: str) -> dict[str, str]:
    """Return `epoch:version-release` by name and by name.arch, from the output of `check-update`: words in threes, over several lines."""
    versions: dict[str, str] = {}
    body = re.split(r"^(?:Obsoleting|Security:|Update)", text, maxsplit=1, flags=re.MULTILINE)[0]
    for block in re.split(r"^\s*\n", body, flags=re.MULTILINE):
        words = block.split()
        for package, version in zip(words[0::3], words[1::3], strict=False):
            match = _VERSION.fullmatch(version)
            name, dot, _arch = package.rpartition(".")
            if match and dot and name:
                full = f"{match[1] or '0'}:{match[2]}-{match[3]}"
                versions.setdefault(name, full)
                versions.setdefault(package, full)
    return versions


def parse_available(text: str) -> list[str]:
    """Return the versions below `Available Packages` in the output of `list NAME --showduplicates`."""
    _, _, rest = text.partition("Available Packages")
    rows = (line.split() for line in rest.splitlines())
    return [with_epoch(row[1]) for row in rows if len(row) > 1]


def with_epoch(version: str) -> str:
    """Return the version with its epoch, 0 where it has none, so that it can be compared with any other."""
    return version if ":" in version else f"0:{version}"


def repositories(options: Sequence[str]) -> list[str]:
    """Return those install options that choose repositories, and so decide which version is the latest."""
    return [option for option in options if option.partition("=")[0] in _REPO_OPTIONS]


class Yum(
    Rpm,
    name="yum",
    features=("purgeable", "version_ranges"),
    default_for=[{"os.name": "amazon"}, {"os.family": "redhat", "os.release.major": OLD_REDHAT}],
):
    """Manages RPM packages, from repositories, by `yum`."""

    manager = Command("yum")
    error_level: ClassVar[str] = "0"
    upgrade: ClassVar[str] = "update"
    order = staticmethod(compare_rpm)

    def __init__(self) -> None:
        super().__init__()
        self._updates: dict[tuple[str, ...], Mapping[str, str]] = {}

    async def prefetch(self, resources: Mapping[str, Package]) -> Mapping[str, State | None]:
        if os.geteuid() != 0:
            raise ResourceError(f"The {self.name} provider can only be used as root")
        return await super().prefetch(resources)

    async def latest(self, resource: Package, state: State) -> str | None:
        options = repositories(self.install_options(resource))
        key = tuple(options)
        if key not in self._updates:
            self._updates[key] = await self._check_updates(resource, options)
        newer = self._updates[key].get(resource.name)
        return newer.removeprefix("0:") if newer else state.get("ensure")

    async def _check_updates(self, resource: Package, options: Sequence[str]) -> Mapping[str, str]:
        output = await self.manager("check-update", *options, seconds=LISTING_SECONDS, fail=False)
        if output.code == UPDATES:
            return parse_updates(output.text)
        if output.code:
            resource.log("warning", f"Could not check for updates, '{self.manager.path} check-update' exited with {output.code}")
        return {}

    async def available(self, resource: Package) -> Sequence[str]:
        options = repositories(self.install_options(resource))
        output = await self.manager("list", resource.name, "--showduplicates", *options, seconds=LISTING_SECONDS, fail=False)
        return parse_available(output.text)

    async def install(self, resource: Package, state: State | None) -> None:
        quiet = self._options(resource)
        if resource.allow_virtual is False:
            await self.manager(*quiet, "list", resource.name)
        operation, argument, version = await self._operation(resource, state or {})
        output = await self.manager(*quiet, operation, argument)
        if re.search(rf"^No package {re.escape(argument)} available\.$", output.text, re.MULTILINE):
            raise ResourceError(f"Could not find package {argument}")
        if version is not None:
            await self._check_installed(resource, version)

    def _options(self, resource: Package) -> list[str]:
        return ["-d", "0", "-e", self.error_level, "-y", *self.install_options(resource)]

    def batch_key(self, resource: Package) -> Hashable | None:
        if resource.source or resource.install_only or resource.allow_virtual is False:
            return None
        return tuple(self.install_options(resource))

    async def install_together(self, resources: Sequence[Package]) -> None:
        words = [(await self._operation(resource, {}))[1] for resource in resources]
        await self.manager(*self._options(resources[0]), "install", *words)

    async def _operation(self, resource: Package, state: Mapping[str, Any]) -> tuple[str, str, str | None]:
        """Return the operation, its argument, and the version that must be installed afterwards."""
        current = state.get("ensure")
        if resource.value_of("ensure") == "latest":
            return ("install" if current in NOT_INSTALLED else self.upgrade), resource.name, None
        version = self.version_in_ensure(resource)
        if version is None:
            return "install", resource.source or resource.name, None
        argument = resource.source
        if argument is None:
            version = re.sub(r"^\d+:", "", await self.chosen_version(resource, version))
            argument = f"{resource.name}-{version}"
            match = _ARCH.fullmatch(argument)
            argument = f"{match[1]}-{match[3]}{match[2]}" if match else argument
        if current in NOT_INSTALLED:
            return "install", argument, version
        if resource.install_only:
            return self.upgrade, argument, version
        comparison = compare_rpm(str(current).split("; ")[-1], version)
        return ("downgrade" if comparison > 0 else self.upgrade if comparison < 0 else "install"), argument, version

    async def _check_installed(self, resource: Package, version: str) -> None:
        now = await self.query(resource)
        if now is None:
            raise ResourceError(f"Could not find package {resource.name}")
        if not self.satisfies(resource, now, version):
            raise ResourceError(f"Failed to update to version {version}, got version {now['ensure']} instead")

    async def purge(self, resource: Package, state: State | None) -> None:
        await self.manager("-y", "erase", resource.name)


class Dnf(
    Yum,
    name="dnf",
    default_for=[{"os.name": "fedora"}, {"os.family": "redhat"}, {"os.name": "amazon", "os.release.major": ["2023"]}],
    not_default_for=[
        {"os.name": "fedora", "os.release.major": ["19", "20", "21"]},
        {"os.family": "redhat", "os.release.major": OLD_REDHAT},
    ],
):
    """Manages RPM packages, from repositories, by `dnf`, which has replaced yum."""

    manager = Command("dnf")
    error_level = "1"
    upgrade = "upgrade"
