"""What all providers of packages share: what is installed is listed once, and asked again where something may have changed it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from shared.errors import PuppetError, ResourceError, Unsupported
from shared.ral import Command, Output, Provider, State
from shared.types.arguments import joined
from shared.types.package import GONE, PURGED, Package

from .joint import Joint
from .versions import Order, Range, range_of

EVERYWHERE = ("installable", "uninstallable", "upgradeable")
LISTING_SECONDS = 300.0  # the most that a question about what is installed may take


class Packages(Provider[Package], type=Package, features=EVERYWHERE):
    """
    Base of the package managers: they list and query, install, remove and purge, and know the latest version.

    `order` says how versions are compared, for ranges; None: a version is only ever meant literally.
    """

    order: Order | None = None

    def __init__(self) -> None:
        self._listed: dict[str, State] = {}
        self._joint = Joint(self)

    # --- what a package manager does

    async def query(self, resource: Package) -> State | None:
        """One package as it is now: `ensure` is its version, or absent or purged; None: not there at all."""
        raise Unsupported(f"The package provider '{self.name}' cannot query a package")

    async def latest(self, resource: Package, state: State) -> str | None:
        """The version that `latest` means."""
        raise Unsupported(f"The package provider '{self.name}' does not know latest versions")

    async def available(self, resource: Package) -> Sequence[str]:
        """The versions that could be installed, for ranges."""
        raise Unsupported(f"The package provider '{self.name}' cannot choose from a range of versions")

    async def install(self, resource: Package, state: State | None) -> None:
        """Install what `ensure` wants."""
        raise Unsupported(f"The package provider '{self.name}' cannot install")

    def alike(self, resource: Package) -> Hashable | None:
        """What packages must have in common to be installed by one command; None: this one is installed by itself."""
        return None

    async def install_together(self, resources: Sequence[Package]) -> None:
        """Install what `ensure` of several packages wants, none of which is there; they are alike."""
        raise Unsupported(f"The package provider '{self.name}' installs packages one by one")

    async def uninstall(self, resource: Package, state: State | None) -> None:
        raise Unsupported(f"The package provider '{self.name}' cannot remove")

    async def purge(self, resource: Package, state: State | None) -> None:
        raise Unsupported(f"The package provider '{self.name}' cannot purge")

    async def update(self, resource: Package, state: State | None) -> None:
        """Bring it to the latest version."""
        await self.install(resource, state)

    # --- reading

    @property
    def gone(self) -> str:
        """What a package is that is not there."""
        return PURGED if "purgeable" in self.features else "absent"

    async def prefetch(self, wanted: Mapping[str, Package]) -> Mapping[str, State | None]:
        # Kept and not given: what another package of the run may bring along is asked for again at its own turn.
        self._listed = dict(await self.instances())
        return {}

    async def retrieve(self, resource: Package) -> State | None:
        before = self._joint.state_before(resource)
        if before is not None:
            return before
        state: State | None = self._listed.pop(resource.name, None) if resource.value_of("command") is None else None
        if state is None:
            state = await self.query(resource)
        if state is None:
            state = {"ensure": self.gone}
        return await self._compared(resource, state)

    async def _compared(self, resource: Package, state: State) -> State:
        """The state, and what comparing it with what is wanted needs."""
        wanted = resource.wanted("ensure") or []
        more: dict[str, Any] = {}
        if "latest" in wanted and state.get("ensure") not in GONE:
            try:
                resource.latest = more["latest"] = await self.latest(resource, state)
            except PuppetError as err:
                more["latest_error"] = err.message
        literal = [each for each in wanted if each not in ("present", "absent", PURGED, "disabled", "latest")]
        if literal and state.get("ensure") not in GONE:
            more["satisfied"] = any(self.satisfies(resource, state, each) for each in literal)
        return {**state, **more}

    def satisfies(self, resource: Package, state: State, wanted: str) -> bool:
        """Whether what is installed is a wanted version, or inside a wanted range; equality was seen to already."""
        inside = self.range_of(wanted)
        current = state.get("ensure")
        versions = current if isinstance(current, list | tuple) else [current]
        return inside is not None and any(inside.has(str(version)) for version in versions)

    def range_of(self, wanted: str) -> Range | None:
        """The range that a wanted version is, if it is one."""
        return range_of(wanted, self.order) if self.order else None

    async def chosen_version(self, resource: Package, wanted: str) -> str:
        """The version to install for a wanted version or range."""
        inside = self.range_of(wanted)
        if inside is None or inside.exact:
            return wanted
        best = inside.best(await self.available(resource))
        if best is None:
            raise ResourceError(f"No available version of package {resource.name} is in range {wanted}")
        return best

    # --- changing

    async def create(self, resource: Package, state: State | None) -> None:
        if not await self._joint.brought(resource, state):
            await self.install(resource, state)

    async def destroy(self, resource: Package, state: State | None) -> None:
        await self.uninstall(resource, state)

    async def set(self, resource: Package, attribute: str, wanted: Any, state: State | None) -> None:
        if attribute != "ensure":
            await super().set(resource, attribute, wanted, state)
        elif wanted == PURGED:
            await self.purge(resource, state)
        else:
            try:
                if await self._joint.brought(resource, state):
                    return
                await (self.update(resource, state) if wanted == "latest" else self.install(resource, state))
            except PuppetError as err:
                raise ResourceError(f"Could not update: {err.message}", hint=err.hint) from err

    async def refresh(self, resource: Package) -> None:
        if "reinstallable" in self.features and resource.reinstall_on_refresh and resource.ensure not in GONE:
            await self.install(resource, None)

    # --- words for commands

    def install_options(self, resource: Package) -> list[str]:
        return joined(resource.install_options or [])

    def uninstall_options(self, resource: Package) -> list[str]:
        return joined(resource.uninstall_options or [])

    def version_wanted(self, resource: Package) -> str | None:
        """The version, or range of versions, that `ensure` names; None: it names none."""
        wanted = resource.value_of("ensure")
        return None if wanted in (None, "present", "absent", PURGED, "disabled", "latest") else str(wanted)


async def attempted(command: Command, *words: str, stdin: bytes = b"") -> Output | None:
    """What a question to a package manager was answered; None: it ended with an error, which means `no`."""
    said = await command(*words, stdin=stdin, seconds=LISTING_SECONDS, fail=False)
    return None if said.code else said
