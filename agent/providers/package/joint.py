"""Several packages by one command: those that come right after the one that is due, and are as absent as it is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from shared.errors import PuppetError
from shared.ral import State
from shared.ral.providers import check_values
from shared.types.package import GONE, Package

if TYPE_CHECKING:
    from .packages import Packages


class Joint:
    """
    What was installed before its turn, and how it was found before that.

    Each of the packages still gets its turn, with the state that it had, and so its own event; there is only nothing left to do.
    A command that fails fails nobody: who was not installed by it is installed alone, at its turn, and shows its own error.
    """

    def __init__(self, provider: Packages) -> None:
        self.provider = provider
        self._before: dict[Package, State] = {}
        self._done: set[Package] = set()
        self._tried: set[Package] = set()  # were part of a command for several: no second one

    def state_before(self, resource: Package) -> State | None:
        """The state of a package that was seen to before its turn; None: it was not."""
        return self._before.pop(resource, None)

    async def brought(self, resource: Package, state: State | None) -> bool:
        """Whether a package that is to be installed now is there by a command for several, earlier or right now."""
        if resource not in self._done and _absent(state):
            await self._install(resource)
        done = resource in self._done
        self._done.discard(resource)
        return done

    async def _install(self, resource: Package) -> None:
        alike = self._alike(resource)
        if alike is None:
            return
        followers = resource.followers(lambda other: isinstance(other, Package) and self._alike(other) == alike)
        absent = {each: state for each in followers if isinstance(each, Package) and (state := await self._read(each))}
        if not absent:
            return
        several = [resource, *absent]
        self._tried.update(several)
        names = ", ".join(each.name for each in several)
        resource.log("debug", f"Installing {names} by one command")
        try:
            await self.provider.install_together(several)
        except PuppetError as err:
            resource.log("debug", f"Could not install {names} by one command, so it is one by one: {err.message}")
        self._done.update(await self._there(several))
        early = {each: state for each, state in absent.items() if each in self._done}
        self._before |= early
        if resource.surroundings is not None:
            resource.surroundings.keep_turn(early)

    def _alike(self, resource: Package) -> Hashable | None:
        if resource in self._tried or resource.value_of("ensure") in (*GONE, "disabled") or resource.wanted("mark") == ["hold"]:
            return None
        return self.provider.alike(resource)

    async def _read(self, resource: Package) -> State | None:
        """The state of a package that has to be installed; None: it has not, or that would fail."""
        try:
            check_values(resource, self.provider)
            state = await self.provider.retrieve(resource)
        except (PuppetError, OSError, ValueError):
            return None  # its turn will tell
        return state if _absent(state) else None

    async def _there(self, resources: Sequence[Package]) -> list[Package]:
        """For which of them the command brought what is wanted, whatever it said."""
        try:
            listed = await self.provider.instances()
        except PuppetError:
            listed = {}  # they are asked for one by one
        return [each for each in resources if await self._is_there(each, listed.get(each.name))]

    async def _is_there(self, resource: Package, state: State | None) -> bool:
        try:
            state = state or await self.provider.query(resource) or {}
        except (PuppetError, OSError, ValueError):
            return False  # broken: its turn will tell
        version = self.provider.version_wanted(resource)
        literal = version is None or state.get("ensure") == version
        return state.get("ensure") not in GONE and (literal or self.provider.satisfies(resource, state, str(version)))


def _absent(state: State | None) -> bool:
    """Whether a package is not there, nor kept from being there."""
    return state is None or (state.get("ensure", "absent") in GONE and state.get("mark") != "hold")
