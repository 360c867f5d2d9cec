"""Packages by `dpkg` alone, which installs from files. Source: resource layer reference 7.3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, State
from shared.types.package import Package

from .packages import LISTING_SECONDS, PackageProvider, query_output

FORMAT = "${Status} ${Package} ${Version}\\n"
_PROVIDES = "${Status} ${Package} ${Version} [${Provides}]\\n"
_LINE = re.compile(r"(\S+) +(\S+) +(\S+) (\S+) (\S*)(?: \[(.*)\])?")
_HALF = ("config-files", "half-installed", "unpacked", "half-configured")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+.](:[a-z0-9-]+)?|[a-z0-9](:[a-z0-9-]+)?")
NONINTERACTIVE = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTBUGS_FRONTEND": "none", "APT_LISTCHANGES_FRONTEND": "none"}


def parse_line(line: str) -> dict[str, Any] | None:
    """Return one line of `dpkg-query -W` in FORMAT as name, ensure, mark, error and version; None: the line is malformed."""
    match = _LINE.fullmatch(line.strip("'"))
    if match is None:
        return None
    desired, error, status, name, version, _ = match.groups()
    ensure = version
    if status == "not-installed":
        ensure = "purged"
    elif status in _HALF:
        ensure = "absent"
    return {"name": name, "ensure": ensure, "mark": "hold" if desired == "hold" else "none", "error": error, "version": version}


def parse(text: str) -> dict[str, dict[str, Any]]:
    """Return all packages of a listing, by name."""
    return {package["name"]: package for package in map(parse_line, text.splitlines()) if package is not None}


def package_providing(text: str, name: str) -> str | None:
    """Return the installed package of a listing with provides that is or provides `name`; None: there is none."""
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip("'"))
        if match and (match[4] == name or name in re.split(r"[ ,]+", match[6] or "")):
            return match[4]
    return None


class Dpkg(PackageProvider, name="dpkg", features=("holdable", "purgeable", "virtual_packages")):
    """Manages Debian's packages, from files."""

    dpkg = Command("/usr/bin/dpkg", environment=NONINTERACTIVE)
    dpkg_query = Command("/usr/bin/dpkg-query", seconds=LISTING_SECONDS)
    dpkg_deb = Command("/usr/bin/dpkg-deb", seconds=LISTING_SECONDS)

    async def instances(self) -> Mapping[str, State]:
        output = await self.dpkg_query("-W", "--showformat", FORMAT)
        return {name: package for name, package in parse(output.text).items() if package["error"] == "ok"}

    async def query(self, resource: Package) -> State | None:
        name = await self._real_name(resource)
        output = await query_output(self.dpkg_query, "-W", "--showformat", FORMAT, "--", name)
        package = next((line for line in map(parse_line, output.text.splitlines()) if line), None) if output else None
        if output is not None and package is None:
            return {"ensure": "absent", "mark": "none"}
        if package is not None and package["error"] != "ok":
            raise ResourceError(f"Package {package['name']}, version {package['version']} is in error state: {package['error']}")
        return package or {"ensure": "purged", "mark": "none"}

    async def _real_name(self, resource: Package) -> str:
        """Return the name of the package to query; with allow_virtual that may be one that provides the name."""
        if not _NAME.fullmatch(resource.name):
            raise ResourceError(
                f"'{resource.name}' is not the name of a Debian package",
                hint="Names have small letters, digits and + . - only; a file is given as `source`.",
            )
        if not resource.allow_virtual:
            return resource.name
        output = await query_output(self.dpkg_query, "-W", "--showformat", _PROVIDES)
        real = package_providing(output.text, resource.name) if output else None
        if real and real != resource.name:
            resource.log("info", f"Package {resource.name} is virtual, defaulting to {real}")
        return real or resource.name

    def _source(self, resource: Package) -> str:
        if not resource.source:
            raise ResourceError("You cannot install dpkg packages without a source", hint="Give the path of the .deb file as `source`.")
        return resource.source

    async def latest(self, resource: Package, state: State) -> str | None:
        output = await self.dpkg_deb("--show", "--", self._source(resource))
        name, _, version = output.text.strip().partition("\t")
        if name != resource.name:
            resource.log("warning", f"source doesn't contain named package, but {name}")
        return version

    async def install(self, resource: Package, state: State | None) -> None:
        keep = "--force-confold" if resource.configfiles == "keep" else "--force-confnew"
        source = self._source(resource)
        await self.with_hold_lifted(resource, state, lambda: self.dpkg(keep, "-i", "--", source))

    async def with_hold_lifted(self, resource: Package, state: State | None, action: Any) -> None:
        """Run `action` on a package that may be on hold; afterwards it is on hold again if `mark` requires that."""
        if (state or {}).get("mark") == "hold":
            await self._select(resource, "install")
        try:
            await action()
        finally:
            if resource.mark == "hold":
                await self._select(resource, "hold")

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self.dpkg("-r", "--", resource.name)

    async def purge(self, resource: Package, state: State | None) -> None:
        await self.dpkg("--purge", "--", resource.name)

    async def set_mark(self, resource: Package, desired: str, state: State | None) -> None:
        await self._select(resource, "hold" if desired == "hold" else "install")

    async def _select(self, resource: Package, selection: str) -> None:
        await self.dpkg("--set-selections", stdin=f"{resource.name} {selection}\n".encode())
