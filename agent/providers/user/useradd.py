"""Users by `useradd` and its like. Source: resource layer reference 9.1."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.errors import ResourceError
from shared.ral import ABSENT, Command, Platform, Provider, State, Type
from shared.ral.attributes import text_of
from shared.types.user import User

from ..accounts import AccountDatabase, UserAccount, parse_shadow

SECONDS = 600.0  # the time limit of one command; they wait for each other's locks themselves

# The options of `useradd` and `usermod`, in the order in which they are passed.
FLAGS = {"comment": "-c", "expiry": "-e", "gid": "-g", "groups": "-G", "home": "-d", "shell": "-s", "uid": "-u"}
AGES = {"password_min_age": "-m", "password_max_age": "-M", "password_warn_days": "-W"}
SHADOW = ("password", "expiry", *AGES)
_ALWAYS = frozenset(
    ("allows_duplicates", "manages_homedir", "manages_expiry", "system_users", "manages_shell", "manages_passwords", "manages_password_age")
)


class Useradd(Provider[User], type=User, name="useradd"):
    """
    Manages accounts of the local files; those of other name services are read, but not changed.

    Args:
        platform: when libuser's programs exist on it, `forcelocal` is possible.
    """

    useradd = Command("useradd", seconds=SECONDS)
    usermod = Command("usermod", seconds=SECONDS)
    userdel = Command("userdel", seconds=SECONDS)
    chage = Command("chage", seconds=SECONDS)
    chpasswd = Command("chpasswd", seconds=SECONDS)
    luseradd = Command("luseradd", optional=True, seconds=SECONDS)
    lusermod = Command("lusermod", optional=True, seconds=SECONDS)
    luserdel = Command("luserdel", optional=True, seconds=SECONDS)
    lchage = Command("lchage", optional=True, seconds=SECONDS)

    def __init__(self, accounts: AccountDatabase, platform: Platform) -> None:
        self.accounts = accounts
        local = platform.find_program("luseradd") and platform.find_program("lusermod")
        self.features = _ALWAYS | ({"manages_local_users_and_groups"} if local else set())

    # --- reading

    async def retrieve(self, resource: User) -> State | None:
        return await asyncio.to_thread(self._read, resource)

    def _read(self, resource: User) -> State | None:
        local = resource.forcelocal
        account = self.accounts.local_users().get(resource.name) if local else self.accounts.user(resource.name)
        if account is None:
            return None
        state = self._with_shadow(account, self.accounts.shadow())
        desired = [text_of(value) for value in resource.wanted("gid") or ()]
        groups = {name: self.accounts.group(name) for name in desired if not name.removeprefix("-").isdigit()}
        return state | {"group_numbers": {name: entry[0] if entry else None for name, entry in groups.items()}}

    def _with_shadow(self, account: UserAccount, shadow: Mapping[str, str]) -> dict[str, Any]:
        hidden = parse_shadow(shadow[account.name]) if account.name in shadow else dict.fromkeys(SHADOW, ABSENT)
        return account.state() | hidden

    async def instances(self) -> Mapping[str, State]:
        def everything() -> dict[str, State]:
            shadow = self.accounts.shadow()
            return {account.name: self._with_shadow(account, shadow) for account in self.accounts.users()}

        return await asyncio.to_thread(everything)

    # --- changing

    async def generate(self, resource: User) -> Sequence[Type]:
        if not resource.purge_ssh_keys:
            return ()
        from ..ssh_authorized_key.purging import unmanaged_keys

        return await unmanaged_keys(resource)

    async def create(self, resource: User, state: State | None) -> None:
        await self._check_shell(resource)
        local = bool(resource.forcelocal)
        try:
            await (self.luseradd if local else self.useradd)(*await self._creation_arguments(resource))
            ages = [
                word
                for name, flag in AGES.items()
                if resource.value_of(name) is not None
                for word in (flag, text_of(resource.value_of(name)))
            ]
            if ages:
                await (self.lchage if local else self.chage)(*ages, "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not create user {resource.name}: {err.message}") from err
        if local:
            for name in ("groups", "expiry"):
                if resource.wanted(name) is not None:
                    await self._modify(resource, name, self._argument(resource, name))
        if resource.password is not None:
            await self.set_password(resource, resource.password, state)

    async def _creation_arguments(self, resource: User) -> list[str]:
        """Return the arguments of `useradd`."""
        words: list[str] = []
        local = bool(resource.forcelocal)
        if resource.wanted("gid") is None and await asyncio.to_thread(self.accounts.group, resource.name) is not None:
            words += ["-g", resource.name]
        for name, flag in FLAGS.items():
            if resource.wanted(name) is None or (local and name in ("groups", "expiry")):
                continue
            value = self._argument(resource, name)
            if value or name == "expiry":
                words += [flag, value]
        if local:
            await self._check_duplicate(resource)
        elif resource.allowdupe:
            words.append("-o")
        if not resource.managehome:
            words.append("-M")
        elif not local:
            words.append("-m")
        if resource.system:
            words.append("-r")
        return [*words, "--", resource.name]

    async def _check_duplicate(self, resource: User) -> None:
        users = await asyncio.to_thread(self.accounts.local_users)
        if not resource.allowdupe and resource.uid is not None and resource.uid in [user.uid for user in users.values()]:
            raise ResourceError(f"UID {resource.uid} already exists, use allowdupe to force user creation")

    def _argument(self, resource: User, name: str) -> str:
        if name == "groups":
            return ",".join(sorted(map(text_of, resource.wanted("groups") or ())))
        value = text_of(resource.value_of(name))
        return "" if name == "expiry" and value == ABSENT else value

    async def _check_shell(self, resource: User) -> None:
        shell = resource.shell
        if shell and not await asyncio.to_thread(Path(shell).exists):
            raise ResourceError(f"Shell {shell} must exist")
        if shell and not os.access(shell, os.X_OK):
            raise ResourceError(f"Shell {shell} must be executable")

    async def destroy(self, resource: User, state: State | None) -> None:
        words = ["-r"] if resource.managehome else []
        try:
            await (self.luserdel if resource.forcelocal else self.userdel)(*words, "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not delete user {resource.name}: {err.message}") from err

    async def set(self, resource: User, attribute: str, desired: Any, state: State | None) -> None:
        if attribute == "password":
            await self.set_password(resource, desired, state)
            return
        if attribute == "shell":
            await self._check_shell(resource)
        value = "" if desired == ABSENT else text_of(desired)
        if attribute == "gid":
            value = await self._first_group(resource)
        await self._modify(resource, attribute, value)

    async def _first_group(self, resource: User) -> str:
        """Return the number of the first desired group that exists; ResourceError when none does."""
        desired = resource.wanted("gid") or []
        for value in desired:
            if isinstance(value, int):
                return str(value)
            group = await asyncio.to_thread(self.accounts.group, text_of(value))
            if group:
                return str(group[0])
        raise ResourceError(f"Could not find group(s) {','.join(map(text_of, desired))}")

    async def _modify(self, resource: User, attribute: str, value: str) -> None:
        local = bool(resource.forcelocal) and attribute not in ("groups", "expiry")
        if attribute in AGES:
            command, words = (self.lchage if local else self.chage), [AGES[attribute], value]
        else:
            command, words = (self.lusermod if local else self.usermod), [FLAGS[attribute], value]
        if attribute == "uid" and resource.allowdupe and not resource.forcelocal:
            words.append("-o")
        try:
            await command(*words, "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not set {attribute} on user[{resource.name}]: {err.message}") from err

    async def set_password(self, resource: User, desired: str, state: State | None) -> None:
        # By standard input: arguments can be seen by everyone on the machine.
        output = await self.chpasswd("-e", stdin=f"{resource.name}:{desired}\n".encode(), fail=False)
        if output.code or output.text:
            raise ResourceError(f"chpasswd said {output.text.strip() or f'nothing, and ended with {output.code}'}")
