"""The provider of `resources`: generates a removal for everything on the system that the catalog does not contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.errors import ResourceError
from shared.ral import Origin, Provider, Providers, Ref, State, Type
from shared.types.resources import NEVER_PURGED, ResourcesMetatype


class ResourcesPurge(Provider[ResourcesMetatype], type=ResourcesMetatype, name=""):
    """
    Lists the existing resources of a type with its default provider.

    Args:
        providers: returns the run's providers, this one among them, so it is called late.
        types: all types that can be applied.
        login_defs: the file that says which uids are the system's.
    """

    def __init__(
        self, providers: Callable[[], Providers], types: Mapping[str, type[Type]], *, login_defs: Path = Path("/etc/login.defs")
    ) -> None:
        self.providers = providers
        self.types = types
        self.login_defs = login_defs

    async def retrieve(self, resource: ResourcesMetatype) -> State | None:
        return {}

    async def generate(self, resource: ResourcesMetatype) -> Sequence[Type]:
        if not resource.purge:
            return ()
        provider, _ = self.providers().default(resource.name)
        if provider is None:
            raise ResourceError(f"Could not find a suitable provider for {resource.name}")
        existing = await provider.instances()
        inherited = resource.given_metaparameters(relationships=True)
        removals: list[Type] = []
        # By their names on the system: titles may differ, and a reference does not find every resource.
        managed = {other.key for other in resource.managed(resource.name)}
        watched = {"audit": ["uid"]} if resource.name == "user" else {}  # the log then names the users whose files stay behind
        for name, state in existing.items():
            if resource.find(Ref(resource.name, name)) is None and name not in managed and self._may_go(resource, name, state):
                parameters = {"ensure": "absent", **provider.identity(state), **watched, **inherited}
                origin = Origin(tags=resource.origin.tags, purging=True)
                removals.append(resource.child(name, parameters, origin=origin, type=self.types[resource.name]))
        return removals

    def _may_go(self, resource: ResourcesMetatype, name: str, state: Mapping[str, Any]) -> bool:
        if resource.name != "user":
            return True
        keep = resource.unless_system_user
        if keep is False:
            return True
        uid = state.get("uid")
        if not isinstance(uid, int) or name in NEVER_PURGED or uid in resource.unless_uid:
            return False
        return uid > (keep if isinstance(keep, int) and keep is not True else self._system_limit())

    def _system_limit(self) -> int:
        """Return the highest uid of the system's own users."""
        try:
            lines = self.login_defs.read_text().splitlines()
        except OSError:
            return 499
        for words in map(str.split, lines):
            if len(words) > 1 and words[0] == "UID_MIN" and words[1].isdigit():
                return int(words[1]) - 1
        return 499
