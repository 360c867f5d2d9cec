"""Packages and groups of packages by `pacman`. Source: resource layer reference 7.3."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from shared.errors import ResourceError
from shared.ral import Command, State, fact
from shared.types.package import Package

from .packages import LISTING_SECONDS, PackageProvider, query_output

_SYSTEMS = ["archlinux", "manjarolinux", "arch", "manjaro"]
_QUIET = ("--noconfirm", "--noprogressbar")


def parse(text: str) -> dict[str, str]:
    """Return versions by name, from the output of `pacman -Q`."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) > 1}


def parse_groups(text: str, installed: Mapping[str, str]) -> dict[str, str]:
    """Return the groups in the output of `pacman -Sgg` that are wholly installed; their version is that of all their packages."""
    groups: dict[str, list[str]] = {}
    for words in map(str.split, text.splitlines()):
        if len(words) == 2:
            groups.setdefault(words[0], []).append(words[1])
    return {
        name: ", ".join(f"{member} {installed[member]}" for member in sorted(members))
        for name, members in groups.items()
        if all(member in installed for member in members)
    }


def path_of(source: str) -> str:
    """Return the path or URL that pacman can fetch a source from."""
    parts = urlsplit(source)
    scheme = parts.scheme.lower()
    if scheme == "file":
        return unquote(parts.path)
    if scheme in ("", "http", "https", "ftp"):
        return source
    if scheme == "puppet":
        raise ResourceError("puppet:// URL is not supported by pacman", hint="Fetch it with a `file` resource and give its path.")
    raise ResourceError(f"Source {source} is not supported by pacman")


class Pacman(
    PackageProvider,
    name="pacman",
    features=("install_options", "uninstall_options", "virtual_packages"),
    confine=[fact("os.name", *_SYSTEMS)],
    default_for=[{"os.name": _SYSTEMS}],
):
    """Manages Arch Linux' packages."""

    pacman = Command("/usr/bin/pacman")

    async def _installed_versions(self) -> dict[str, str]:
        return parse((await self.pacman("-Q", seconds=LISTING_SECONDS)).text)

    async def instances(self) -> Mapping[str, State]:
        installed = await self._installed_versions()
        groups = await query_output(self.pacman, "-Sgg")
        both = installed | (parse_groups(groups.text, installed) if groups else {})
        return {name: {"ensure": version} for name, version in both.items()}

    async def query(self, resource: Package) -> State | None:
        installed = await self._installed_versions()
        output = await query_output(self.pacman, "-Sgg", "--", resource.name)
        group = parse_groups(output.text, installed).get(resource.name) if output else None
        if group and resource.allow_virtual is False:
            resource.log("warning", f"{resource.name} is a group, but allow_virtual is false.")
            return None
        version = group or installed.get(resource.name)
        return {"ensure": version} if version else None

    async def _is_group(self, resource: Package) -> bool:
        output = await query_output(self.pacman, "-Sg", "--", resource.name)
        return bool(output and output.text.strip())

    async def latest(self, resource: Package, state: State) -> str | None:
        format_ = "%n %v" if await self._is_group(resource) else "%v"
        output = await self.pacman("-Sp", "--print-format", format_, "--", resource.name, seconds=LISTING_SECONDS)
        return ", ".join(sorted(line.strip() for line in output.text.splitlines() if line.strip()))

    async def install(self, resource: Package, state: State | None) -> None:
        if resource.source:
            await self.pacman(*_QUIET, "-U", "--", path_of(resource.source))
        else:
            await self._refuse_group(resource, "install")
            await self.install_together([resource])
        if await self.query(resource) is None:
            raise ResourceError(f"Could not find package '{resource.name}'")

    def batch_key(self, resource: Package) -> Hashable | None:
        return None if resource.source or resource.allow_virtual is False else tuple(self.install_options(resource))

    async def install_together(self, resources: Sequence[Package]) -> None:
        words = ["--noconfirm", "--needed", "--noprogressbar", *self.install_options(resources[0]), "-S", "--"]
        await self.pacman(*words, *(resource.name for resource in resources))

    async def _refuse_group(self, resource: Package, action: str) -> bool:
        group = await self._is_group(resource)
        if group and resource.allow_virtual is False:
            raise ResourceError(f"Refusing to {action} package group {resource.name}, because allow_virtual is false.")
        return group

    async def uninstall(self, resource: Package, state: State | None) -> None:
        group = await self._refuse_group(resource, "uninstall")
        words = [*_QUIET, *self.uninstall_options(resource), "-R", *(["-s"] if group else [])]
        await self.pacman(*words, "--", resource.name)
