"""The provider of `ssh_authorized_key`: files are written with the user's rights, never through links of the user."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import stat
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ral import ABSENT, State
from shared.types.ssh_authorized_key import AUTHORIZED_TYPES, SshAuthorizedKey

from ..file.path_entries import open_entry
from ..file.replacement import Rights
from ..parsed.base import ParsedFile
from ..parsed.records import LineFormat, ParsedRecord

_TYPES = "|".join(re.escape(text) for value in AUTHORIZED_TYPES for text in (value.value, *value.aliases) if "-" in text)
_TYPE = re.compile(rf"(?:^|(?<=\s))(?:{_TYPES})(?=\s+[^ ])")
_KEY = re.compile(r"([^\s]+)\s+([^ ]+)\s*(.*)")
_OPTION = re.compile(r'[ \t]*([-a-z0-9A-Z_]+(?:="(?:[^"\\]|\\.)*")?)[ \t]*(?:,[ \t]*)?')


def options_of(text: str) -> list[str]:
    """Return the options in a text; commas within quotes do not separate them."""
    options: list[str] = []
    at = 0
    while at < len(text) and (match := _OPTION.match(text, at)):
        options.append(match[1])
        at = match.end()
    return options


class AuthorizedKeysFormat(LineFormat):
    """A line is options, type, key, name."""

    def values_of(self, line: str) -> dict[str, Any] | None:
        types = [] if line.lstrip().startswith("#") else [match.start() for match in _TYPE.finditer(line)]
        # One blank before the type are no options, and no beginning of a line either: Puppet takes such a line for none of a key.
        match = _KEY.fullmatch(line, types[-1]) if types and types[-1] != 1 else None
        if match is None:
            return None
        options = line[: max(match.start() - 1, 0)]
        return {"options": options_of(options) if options else [ABSENT], "type": match[1], "key": match[2], "name": match[3]}

    def line(self, values: Mapping[str, Any]) -> str:
        for field in ("type", "key"):
            if not values.get(field):
                raise ResourceError(f"Field '{field}' is required")
        options = ",".join(option for option in values.get("options", ()) if option != ABSENT)
        name = "" if values.get("_unnamed") else values["name"]
        return f"{options} {values['type']} {values['key']} {name}".lstrip()


class AuthorizedKeys(ParsedFile[SshAuthorizedKey], type=SshAuthorizedKey, name="parsed"):
    """
    Manages one line a key. Keys without a comment are called `<file>:unnamed-<number>`.

    A file is the user's, 0600, in a folder of theirs, 0700, made as needed; everything is done by directory descriptors, so that
    a user's links lead nowhere.
    """

    own_keys = ("ensure", "target", "user")

    def target_of(self, resource: SshAuthorizedKey) -> str:
        target = resource.value_of("target")
        if target and target != ABSENT:
            return str(target)
        return default_target(resource.value_of("user"))

    def with_context(self, target: str, records: list[ParsedRecord]) -> list[ParsedRecord]:
        return name_records(target, records)

    async def retrieve(self, resource: SshAuthorizedKey) -> State | None:
        return self._with_desired_user(resource, await super().retrieve(resource))

    async def prefetch(self, resources: Mapping[str, SshAuthorizedKey]) -> Mapping[str, State | None]:
        states = await super().prefetch(resources)
        # A user of the same run may have no home yet: such a key is read when its turn comes.
        return {key: self._with_desired_user(resources[key], state) for key, state in states.items() if self.target_of(resources[key])}

    def _with_desired_user(self, resource: SshAuthorizedKey, state: State | None) -> State | None:
        """Return the state with the desired user, because the owner of a key's file cannot be read off the key."""
        return None if state is None else {**state, "user": resource.value_of("user") or ABSENT}

    async def set(self, resource: SshAuthorizedKey, attribute: str, desired: Any, state: State | None) -> None:
        if attribute != "user":
            await super().set(resource, attribute, desired, state)

    async def create(self, resource: SshAuthorizedKey, state: State | None) -> None:
        if self.target_of(resource):
            await super().create(resource, state)

    async def destroy(self, resource: SshAuthorizedKey, state: State | None) -> None:
        """Remove all keys of that name in the file: each of them lets somebody in."""
        target, _ = self._bound.get(resource.key, ("", None))
        await super().destroy(resource, state)
        if target:
            records = self.targets[target].records
            records[:] = [record for record in records if record.text is not None or record.name != resource.key]

    async def flush(self, resource: SshAuthorizedKey, now: State | None) -> None:
        user = resource.value_of("user")
        if not user:
            raise ResourceError("Cannot write SSH authorized keys without user")
        _account(user)
        await super().flush(resource, now)

    async def store(self, resource: SshAuthorizedKey, path: str, text: str) -> None:
        user = _account(str(resource.value_of("user")))
        await asyncio.to_thread(_prepare, path, user, trusted=not resource.drop_privileges)
        await self.storage.write(path, text, Rights(user.pw_uid, user.pw_gid, 0o600))


def name_records(target: str, records: list[ParsedRecord]) -> list[ParsedRecord]:
    """Return the records of a file, with names for the keys that have none."""
    number = 0
    for record in records:
        if record.text is None and not record.name:
            number += 1
            record.name = record.values["name"] = f"{target}:unnamed-{number}"
            record.values["_unnamed"] = True
    return records


def default_target(user: str | None) -> str:
    """Return a user's own file; '' when there is no such user."""
    try:
        return f"{pwd.getpwnam(user).pw_dir.rstrip('/')}/.ssh/authorized_keys" if user else ""
    except (KeyError, ValueError):
        return ""


def _account(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user)
    except (KeyError, ValueError) as err:
        raise ResourceError(f"User '{user}' does not exist") from err


def _prepare(path: str, user: pwd.struct_passwd, *, trusted: bool) -> None:
    """
    Create the file's folder, owned by the user, if it is missing; check that the user could have written there. Blocks.

    Raises:
        ResourceError: neither the folder nor the file is the user's, or (`trusted`) others than root and we can change the folder.
    """
    folder = path.rpartition("/")[0]
    with open_entry(folder, follow=True) as folder_entry:
        info = folder_entry.lstat()
        if info is None:
            if trusted:
                raise ResourceError("drop_privileges is false but the target path is not trusted")
            above = os.fstat(folder_entry.folder)
            if above.st_uid != user.pw_uid and user.pw_uid != 0:
                raise ResourceError(f"Cannot make {folder}: the folder above it does not belong to {user.pw_name}")
            os.mkdir(folder_entry.name, 0o700, dir_fd=folder_entry.folder)
            fd = folder_entry.open(os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fchown(fd, user.pw_uid, user.pw_gid)
                os.fchmod(fd, 0o700)
            finally:
                os.close(fd)
            return
        if not stat.S_ISDIR(info.st_mode):
            raise ResourceError(f"{folder} is not a directory")
        if trusted:
            if info.st_uid != os.geteuid() or info.st_mode & 0o022:
                raise ResourceError("drop_privileges is false but the target path is not trusted")
        elif not _may_write(info, user) and not _owns_file(path, user):
            raise ResourceError(
                f"{user.pw_name} may not write to {folder}",
                hint="Set drop_privileges to false for a file in a folder that is root's.",
            )


def _owns_file(path: str, user: pwd.struct_passwd) -> bool:
    """Return whether the user could write a file that is there, whatever its folder allows."""
    with open_entry(path) as entry:
        info = entry.lstat()
    return info is not None and stat.S_ISREG(info.st_mode) and info.st_uid == user.pw_uid and bool(info.st_mode & 0o200)


def _may_write(info: os.stat_result, user: pwd.struct_passwd) -> bool:
    if user.pw_uid == 0 or info.st_mode & 0o003 == 0o003:
        return True
    if info.st_uid == user.pw_uid:
        return info.st_mode & 0o300 == 0o300
    return info.st_gid in os.getgrouplist(user.pw_name, user.pw_gid) and info.st_mode & 0o030 == 0o030
