"""Groups by `groupadd` and its like. Source: resource layer reference 9.2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, Platform, Provider, State
from shared.ral.attributes import text_of
from shared.types.group import Group

from ..accounts import AccountDatabase

SECONDS = 600.0  # the time limit of one command


class Groupadd(Provider[Group], type=Group, name="groupadd"):
    """
    Manages groups of the local files; members only with libuser's programs.

    Args:
        platform: says whether those programs exist.
    """

    groupadd = Command("groupadd", seconds=SECONDS)
    groupmod = Command("groupmod", seconds=SECONDS)
    groupdel = Command("groupdel", seconds=SECONDS)
    lgroupadd = Command("lgroupadd", optional=True, seconds=SECONDS)
    lgroupmod = Command("lgroupmod", optional=True, seconds=SECONDS)
    lgroupdel = Command("lgroupdel", optional=True, seconds=SECONDS)

    def __init__(self, accounts: AccountDatabase, platform: Platform) -> None:
        self.accounts = accounts
        local = platform.find_program("lgroupadd") and platform.find_program("lgroupmod")
        self.features = frozenset({"system_groups"} | ({"manages_local_users_and_groups", "manages_members"} if local else set()))

    async def retrieve(self, resource: Group) -> State | None:
        def read() -> tuple[int, tuple[str, ...]] | None:
            return self.accounts.local_groups().get(resource.name) if resource.forcelocal else self.accounts.group(resource.name)

        return self._state(await asyncio.to_thread(read))

    def _state(self, group: tuple[int, tuple[str, ...]] | None) -> dict[str, Any] | None:
        if group is None:
            return None
        members = {"members": list(group[1])} if "manages_members" in self.features else {}
        return {"ensure": "present", "gid": group[0]} | members

    async def instances(self) -> Mapping[str, State]:
        groups = await asyncio.to_thread(self.accounts.groups)
        return {name: self._state(group) or {} for name, group in groups.items()}

    async def create(self, resource: Group, state: State | None) -> None:
        words = [] if resource.gid is None else ["-g", text_of(resource.gid)]
        if resource.forcelocal:
            groups = await asyncio.to_thread(self.accounts.local_groups)
            if not resource.allowdupe and resource.gid is not None and resource.gid in [gid for gid, _ in groups.values()]:
                raise ResourceError(f"GID {resource.gid} already exists, use allowdupe to force group creation")
        elif resource.allowdupe:
            words.append("-o")
        if resource.system:
            words.append("-r")
        try:
            await (self.lgroupadd if resource.forcelocal else self.groupadd)(*words, "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not create group {resource.name}: {err.message}") from err
        if resource.members:
            await self._set_members(resource, list(resource.members), [])

    async def destroy(self, resource: Group, state: State | None) -> None:
        try:
            await (self.lgroupdel if resource.forcelocal else self.groupdel)("--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not delete group {resource.name}: {err.message}") from err

    async def set_gid(self, resource: Group, desired: int, state: State | None) -> None:
        words = ["-g", text_of(desired)]
        if resource.allowdupe and not resource.forcelocal:
            words.append("-o")
        try:
            await (self.lgroupmod if resource.forcelocal else self.groupmod)(*words, "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not set gid on group[{resource.name}]: {err.message}") from err

    async def set_members(self, resource: Group, desired: list[str], state: State | None) -> None:
        await self._set_members(resource, desired, list((state or {}).get("members", ())))

    async def _set_members(self, resource: Group, desired: list[str], current: list[str]) -> None:
        for name in desired:
            if await asyncio.to_thread(self.accounts.user, name) is None:
                raise ResourceError(f"Could not set members on group[{resource.name}]: there is no user {name}")
        try:
            if resource.auth_membership and current:
                await self.lgroupmod("-m", ",".join(current), "--", resource.name)
            if desired:
                await self.lgroupmod("-M", ",".join(desired), "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not set members on group[{resource.name}]: {err.message}") from err
