"""Several packages installed by one command: the current package, and the following ones that are absent as well."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from shared.errors import PuppetError
from shared.ral import State
from shared.ral.providers import check_values
from shared.types.package import NOT_INSTALLED, Package

from .manager import PackageManager


class BatchInstaller:
    """
    The packages that were installed early, each with its earlier state.

    Each of them is still evaluated with its earlier state, and so gets its own event; there is only nothing left to do. A command that
    fails fails no resource: a package that it did not install is installed alone, at its turn, and shows its own error.
    """

    def __init__(self, manager: PackageManager) -> None:
        self.manager = manager
        self._states_before: dict[Package, State] = {}
        self._installed: set[Package] = set()
        self._tried: set[Package] = set()  # were part of a command for several: no second one

    def state_before(self, resource: Package) -> State | None:
        """Return the state that a package had before it was installed early; None: it was not installed early."""
        return self._states_before.pop(resource, None)

    async def install_in_batch(self, resource: Package, state: State | None) -> bool:
        """Install a package together with those that follow it; return whether a batch, this or an earlier one, installed it."""
        if resource not in self._installed and _is_absent(state):
            await self._install_with_successors(resource)
        installed = resource in self._installed
        self._installed.discard(resource)
        return installed

    async def _install_with_successors(self, resource: Package) -> None:
        key = self._batch_key(resource)
        if key is None:
            return
        successors = resource.same_provider_successors(lambda other: isinstance(other, Package) and self._batch_key(other) == key)
        absent = {package: state for package in successors if isinstance(package, Package) and (state := await self._read(package))}
        if not absent:
            return
        batch = [resource, *absent]
        self._tried.update(batch)
        names = ", ".join(package.name for package in batch)
        resource.log("debug", f"Installing {names} by one command")
        try:
            await self.manager.install_together(batch)
        except PuppetError as err:
            resource.log("debug", f"Could not install {names} by one command, so it is one by one: {err.message}")
        self._installed.update(await self._installed_of(batch))
        early = {package: state for package, state in absent.items() if package in self._installed}
        self._states_before |= early
        if resource.surroundings is not None:
            resource.surroundings.mark_applied_early(early)

    def _batch_key(self, resource: Package) -> Hashable | None:
        if resource in self._tried or resource.value_of("ensure") in (*NOT_INSTALLED, "disabled") or resource.wanted("mark") == ["hold"]:
            return None
        return self.manager.batch_key(resource)

    async def _read(self, resource: Package) -> State | None:
        """Return the state of a package that has to be installed; None: it does not have to be, or reading its state failed."""
        try:
            check_values(resource, self.manager)
            state = await self.manager.retrieve(resource)
        except (PuppetError, OSError, ValueError):
            return None  # it fails again at its turn, which reports it
        return state if _is_absent(state) else None

    async def _installed_of(self, resources: Sequence[Package]) -> list[Package]:
        """Return the packages that are now installed in the requested version, independent of the command's exit code."""
        try:
            states = await self.manager.instances()
        except PuppetError:
            states = {}  # each is queried by itself
        return [package for package in resources if await self._is_installed(package, states.get(package.name))]

    async def _is_installed(self, resource: Package, state: State | None) -> bool:
        try:
            state = state or await self.manager.query(resource) or {}
        except (PuppetError, OSError, ValueError):
            return False  # broken: its own turn reports it
        version = self.manager.version_in_ensure(resource)
        literal = version is None or state.get("ensure") == version
        return state.get("ensure") not in NOT_INSTALLED and (literal or self.manager.satisfies(resource, state, str(version)))


def _is_absent(state: State | None) -> bool:
    """Return whether a package is not installed, nor held back from being installed."""
    return state is None or (state.get("ensure", "absent") in NOT_INSTALLED and state.get("mark") != "hold")
