"""Packages by `rpm` alone, which installs from files. Source: resource layer reference 7.3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, State
from shared.types.package import NOT_INSTALLED, Package

from .packages import LISTING_SECONDS, PackageProvider, query_output
from .versions import compare_rpm

FORMAT = "%{NAME} %|EPOCH?{%{EPOCH}}:{0}| %{VERSION} %{RELEASE} %{ARCH}\\n"
QUICK = ("--nosignature", "--nodigest")
SEPARATOR = "; "  # between the versions of a package that is installed several times
_LINE = re.compile(r"'?(\S+) (\S+) (\S+) (\S+) (\S+)")


def parse(text: str) -> dict[str, dict[str, Any]]:
    """Return the packages of a listing in FORMAT by name; several versions of one are joined."""
    packages: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        name, epoch, version, release, arch = match.groups()
        full = f"{version}-{release}" if epoch == "0" else f"{epoch}:{version}-{release}"
        known = packages.setdefault(name, {"name": name, "version": version, "release": release, "arch": arch, "ensure": full})
        if full not in known["ensure"].split(SEPARATOR):
            known["ensure"] += SEPARATOR + full
    return packages


class Rpm(
    PackageProvider, name="rpm", features=("versionable", "install_options", "uninstall_options", "virtual_packages", "install_only")
):
    """Manages RPM packages, from files."""

    rpm = Command("rpm")

    async def instances(self) -> Mapping[str, State]:
        output = await self.rpm("-qa", *QUICK, "--qf", FORMAT, seconds=LISTING_SECONDS)
        return parse(output.text)

    async def query(self, resource: Package) -> State | None:
        words = ("-q", *QUICK, "--qf", FORMAT)
        output = await query_output(self.rpm, *words, "--", resource.name)
        if output is None and resource.allow_virtual is not False:
            output = await query_output(self.rpm, *words, "--whatprovides", "--", resource.name)
        return next(iter(parse(output.text).values()), None) if output else None

    def satisfies(self, resource: Package, state: State, desired: str) -> bool:
        versions = str(state.get("ensure")).split(SEPARATOR)
        if len(versions) > 1 and not resource.install_only:
            return False
        inside = self.range_of(desired)
        if inside is not None and not inside.exact:
            return any(inside.has(version) for version in versions)
        return any(compare_rpm(version, desired) == 0 for version in versions)

    def _source(self, resource: Package) -> str:
        if not resource.source:
            raise ResourceError("RPMs must specify a package source", hint="Give the path or URL of the .rpm file as `source`.")
        return resource.source

    async def latest(self, resource: Package, state: State) -> str | None:
        output = await self.rpm("-q", "--qf", FORMAT, "-p", "--", self._source(resource), seconds=LISTING_SECONDS)
        package = next(iter(parse(output.text).values()), None)
        return package["ensure"] if package else None

    async def install(self, resource: Package, state: State | None) -> None:
        source = self._source(resource)
        is_installed = (state or {}).get("ensure") not in NOT_INSTALLED
        flags = ["-U", "--oldpackage"] if is_installed else ["-i"]
        await self.rpm(*flags, *self.install_options(resource), "--", source)

    async def uninstall(self, resource: Package, state: State | None) -> None:
        state_now = await self.query(resource)
        names = self._identifiers(resource, state_now) if state_now else [resource.name]
        await self.rpm("-e", *self.uninstall_options(resource), "--", *names)

    def _identifiers(self, resource: Package, state: State) -> list[str]:
        """Return the packages for `rpm -e`, as exact as the resource's name is."""
        name, version, arch = state["name"], f"{state['name']}-{state['version']}", f".{state['arch']}"
        full = f"{version}-{state['release']}"
        if resource.name.startswith(full):
            chosen = [full]
        elif resource.name.startswith(version):
            chosen = [version]
        elif resource.install_only:
            chosen = [f"{name}-{version}" for version in str(state["ensure"]).split(SEPARATOR)]
        else:
            chosen = [name]
        return [package + arch for package in chosen] if resource.name.endswith(arch) else chosen
