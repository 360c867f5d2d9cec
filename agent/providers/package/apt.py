"""Packages by `apt-get`. Source: resource layer reference 7.3."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Hashable, Sequence
from pathlib import Path

from shared.errors import ResourceError
from shared.ral import Command, State
from shared.types.package import NOT_INSTALLED, Package

from .dpkg import NONINTERACTIVE, Dpkg
from .packages import LISTING_SECONDS
from .versions import compare_debian

LOCK_SECONDS = 120  # how long apt waits for another one to be done


def parse_policy(text: str) -> str | None:
    """Return the candidate in the output of `apt-cache policy`; None: there is none."""
    match = re.search(r"Candidate:\s+(\S+)", text)
    return match[1] if match and match[1] != "(none)" else None


def parse_madison(text: str) -> list[str]:
    """Return the versions in the output of `apt-cache madison`."""
    rows = (line.split("|") for line in text.splitlines())
    return list(dict.fromkeys(row[1].strip() for row in rows if len(row) > 2))


class Apt(Dpkg, name="apt", features=("versionable", "version_ranges", "install_options"), default_for=[{"os.family": "debian"}]):
    """Manages Debian's packages, from repositories."""

    apt_get = Command("/usr/bin/apt-get", environment=NONINTERACTIVE)
    apt_cache = Command("/usr/bin/apt-cache", seconds=LISTING_SECONDS)
    apt_mark = Command("/usr/bin/apt-mark", seconds=LISTING_SECONDS)
    debconf_set_selections = Command("/usr/bin/debconf-set-selections", optional=True, seconds=LISTING_SECONDS)

    order = staticmethod(compare_debian)

    def __init__(self, *, sources: Path = Path("/etc/apt/sources.list")) -> None:
        super().__init__()
        self.sources = sources

    async def latest(self, resource: Package, state: State) -> str | None:
        candidate = parse_policy((await self.apt_cache("policy", "--", resource.name)).text)
        if candidate is None:
            resource.log("err", "Could not find latest version")
        return candidate

    async def available(self, resource: Package) -> Sequence[str]:
        return parse_madison((await self.apt_cache("madison", "--", resource.name)).text)

    async def install(self, resource: Package, state: State | None) -> None:
        await self._preseed(resource)
        await asyncio.to_thread(self._refuse_cdrom, resource)
        version = self.version_in_ensure(resource)
        # Puppet passes --force-yes, which also installs unsigned packages.
        down = ["--allow-downgrades"] if version is not None and not resource.source else []
        words = [*self._options(resource), *down, *self.install_options(resource), "install", "--", await self._package_word(resource)]
        await self.with_hold_lifted(resource, state, lambda: self.apt_get(*words))
        if resource.source and version is not None:
            await self._check_version(resource, version)
        # Marked as manual, since apt would else remove it as an unused dependency of another package.
        await self.apt_mark("manual", "--", resource.name, fail=False)

    def batch_key(self, resource: Package) -> Hashable | None:
        if resource.source or resource.responsefile:
            return None
        return (resource.configfiles, resource.allowcdrom, *self.install_options(resource))

    async def install_together(self, resources: Sequence[Package]) -> None:
        # Without --allow-downgrades, which would hold for all dependencies too: a package that needs it is installed by itself.
        await asyncio.to_thread(self._refuse_cdrom, resources[0])
        words = [await self._package_word(resource) for resource in resources]
        await self.apt_get(*self._options(resources[0]), *self.install_options(resources[0]), "install", "--", *words)
        await self.apt_mark("manual", "--", *(resource.name for resource in resources), fail=False)

    def _options(self, resource: Package) -> list[str]:
        configuration = "--force-confold" if resource.configfiles == "keep" else "--force-confnew"
        return ["-q", "-y", "-o", f"DPkg::Options::={configuration}", "-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}"]

    async def _package_word(self, resource: Package) -> str:
        """Return the word that names a package to apt: its file, or its name and the desired version."""
        version = self.version_in_ensure(resource)
        if resource.source or version is None:
            return resource.source or resource.name
        return f"{resource.name}={await self.chosen_version(resource, version)}"

    async def _check_version(self, resource: Package, version: str) -> None:
        now = (await self.query(resource) or {}).get("ensure")
        if now in NOT_INSTALLED:
            raise ResourceError(f"Could not find package {resource.name}")
        if now != version and not self.satisfies(resource, {"ensure": now}, version):
            raise ResourceError(f"Failed to update to version {version}, got version {now} instead")

    def _refuse_cdrom(self, resource: Package) -> None:
        try:
            text = self.sources.read_text("utf-8", "replace")
        except OSError:
            return
        if re.search(r"^[^#\n]*cdrom:", text, re.MULTILINE) and not resource.allowcdrom:
            raise ResourceError(f"{self.sources} contains a cdrom source; not installing.  Use 'allowcdrom' to override this failure.")

    async def _preseed(self, resource: Package) -> None:
        if not resource.responsefile:
            return
        if await asyncio.to_thread(Path(resource.responsefile).exists):
            resource.log("info", f"Preseeding {resource.responsefile} to debconf-set-selections")
            await self.debconf_set_selections("--", resource.responsefile)
        else:
            resource.log("info", "No responsefile specified or non existent, not preseeding anything")

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self._remove(resource, state)

    async def purge(self, resource: Package, state: State | None) -> None:
        await self._remove(resource, state, "--purge")
        await self.dpkg("--purge", "--", resource.name)

    async def _remove(self, resource: Package, state: State | None, *more: str) -> None:
        await self._preseed(resource)
        held = ["--allow-change-held-packages"] if (state or {}).get("mark") == "hold" else []
        await self.apt_get("-y", "-q", "-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}", *held, "remove", *more, "--", resource.name)
