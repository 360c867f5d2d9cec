"""The operations of a package manager, which its provider defines, and the versions that `ensure` means."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from shared.errors import ResourceError, Unsupported
from shared.ral import Provider, State
from shared.types.kinds.arguments import option_arguments
from shared.types.package import PURGED, Package

from .versions import Order, Range, range_of

EVERYWHERE = ("installable", "uninstallable", "upgradeable")


class PackageManager(Provider[Package], type=Package, features=EVERYWHERE):
    """
    The operations of one package manager.

    `order` says how versions are compared, for ranges; None: a version is only ever meant literally.
    """

    order: Order | None = None

    async def query(self, resource: Package) -> State | None:
        """Return one package's present state: `ensure` is its version, or absent or purged; None: the manager does not know it."""
        raise Unsupported(f"The package provider '{self.name}' cannot query a package")

    async def latest(self, resource: Package, state: State) -> str | None:
        """Return the version that `latest` means."""
        raise Unsupported(f"The package provider '{self.name}' does not know latest versions")

    async def available(self, resource: Package) -> Sequence[str]:
        """Return the versions that could be installed, for ranges."""
        raise Unsupported(f"The package provider '{self.name}' cannot choose from a range of versions")

    async def install(self, resource: Package, state: State | None) -> None:
        """Install the version that `ensure` names."""
        raise Unsupported(f"The package provider '{self.name}' cannot install")

    def batch_key(self, resource: Package) -> Hashable | None:
        """Return a key that packages must share to be installed by one command; None: install this one alone."""
        return None

    async def install_together(self, resources: Sequence[Package]) -> None:
        """Install several packages, none of which is installed, in the versions of `ensure`; their `batch_key` is the same."""
        raise Unsupported(f"The package provider '{self.name}' installs packages one by one")

    async def uninstall(self, resource: Package, state: State | None) -> None:
        raise Unsupported(f"The package provider '{self.name}' cannot remove")

    async def purge(self, resource: Package, state: State | None) -> None:
        raise Unsupported(f"The package provider '{self.name}' cannot purge")

    async def update(self, resource: Package, state: State | None) -> None:
        """Bring a package to the latest version."""
        await self.install(resource, state)

    # --- versions

    def satisfies(self, resource: Package, state: State, version: str) -> bool:
        """Return whether the installed version lies inside `version`, when that is a range; the caller has compared for equality."""
        version_range = self.range_of(version)
        current = state.get("ensure")
        versions = current if isinstance(current, list | tuple) else [current]
        return version_range is not None and any(version_range.has(str(installed)) for installed in versions)

    def range_of(self, version: str) -> Range | None:
        """Return the range that the text of `ensure` writes; None: it is not a range."""
        return range_of(version, self.order) if self.order else None

    async def chosen_version(self, resource: Package, version: str) -> str:
        """Return the version to install for a version or range; ResourceError when no available version lies in the range."""
        version_range = self.range_of(version)
        if version_range is None or version_range.exact:
            return version
        best = version_range.best(await self.available(resource))
        if best is None:
            raise ResourceError(f"No available version of package {resource.name} is in range {version}")
        return best

    def version_in_ensure(self, resource: Package) -> str | None:
        """Return the version, or range of versions, that `ensure` names; None: it names none."""
        ensure = resource.value_of("ensure")
        return None if ensure in (None, "present", "absent", PURGED, "disabled", "latest") else str(ensure)

    # --- words for commands

    def install_options(self, resource: Package) -> list[str]:
        return option_arguments(resource.install_options or [])

    def uninstall_options(self, resource: Package) -> list[str]:
        return option_arguments(resource.uninstall_options or [])
