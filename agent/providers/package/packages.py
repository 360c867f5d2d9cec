"""The common base of all package providers: packages are listed once, and queried again after a possible change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import PuppetError, ResourceError
from shared.ral import Command, Output, State
from shared.types.package import NOT_INSTALLED, PURGED, Package

from .batch import BatchInstaller
from .manager import PackageManager

LISTING_SECONDS = 300.0  # the time limit of queries


class PackageProvider(PackageManager):
    """Base of the providers: reads the state of packages and changes it by the operations of the package manager."""

    def __init__(self) -> None:
        self._listed: dict[str, State] = {}
        self._batch = BatchInstaller(self)

    # --- reading

    @property
    def not_installed(self) -> str:
        """Return the value of `ensure` for a package that is not installed."""
        return PURGED if "purgeable" in self.features else "absent"

    async def prefetch(self, resources: Mapping[str, Package]) -> Mapping[str, State | None]:
        # Kept and not returned: a package that another one of the run may bring along is queried again at its own turn.
        self._listed = dict(await self.instances())
        return {}

    async def retrieve(self, resource: Package) -> State | None:
        before = self._batch.state_before(resource)
        if before is not None:
            return before
        state: State | None = self._listed.pop(resource.name, None) if resource.value_of("command") is None else None
        if state is None:
            state = await self.query(resource)
        if state is None:
            state = {"ensure": self.not_installed}
        return await self._with_versions(resource, state)

    async def _with_versions(self, resource: Package, state: State) -> State:
        """Return the state with the data for comparing it with `ensure`: `latest` or `latest_error`, and `satisfied`."""
        desired = resource.wanted("ensure") or []
        more: dict[str, Any] = {}
        if "latest" in desired and state.get("ensure") not in NOT_INSTALLED:
            try:
                resource.latest = more["latest"] = await self.latest(resource, state)
            except PuppetError as err:
                more["latest_error"] = err.message
        versions = [value for value in desired if value not in ("present", "absent", PURGED, "disabled", "latest")]
        if versions and state.get("ensure") not in NOT_INSTALLED:
            more["satisfied"] = any(self.satisfies(resource, state, version) for version in versions)
        return {**state, **more}

    # --- changing

    async def create(self, resource: Package, state: State | None) -> None:
        if not await self._batch.install_in_batch(resource, state):
            await self.install(resource, state)

    async def destroy(self, resource: Package, state: State | None) -> None:
        await self.uninstall(resource, state)

    async def set(self, resource: Package, attribute: str, desired: Any, state: State | None) -> None:
        if attribute != "ensure":
            await super().set(resource, attribute, desired, state)
        elif desired == PURGED:
            await self.purge(resource, state)
        else:
            try:
                if await self._batch.install_in_batch(resource, state):
                    return
                await (self.update(resource, state) if desired == "latest" else self.install(resource, state))
            except PuppetError as err:
                raise ResourceError(f"Could not update: {err.message}", hint=err.hint) from err

    async def refresh(self, resource: Package) -> None:
        if "reinstallable" in self.features and resource.reinstall_on_refresh and resource.ensure not in NOT_INSTALLED:
            await self.install(resource, None)


async def query_output(command: Command, *words: str, stdin: bytes = b"") -> Output | None:
    """Return the output of a question to a package manager; None: it ended with an error, which means `no`."""
    output = await command(*words, stdin=stdin, seconds=LISTING_SECONDS, fail=False)
    return None if output.code else output
