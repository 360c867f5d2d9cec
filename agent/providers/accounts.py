"""The system's accounts: name services through the C library, shadow data and local files by reading them."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from shared.ral import ABSENT

_SHADOW_DAYS = (("password_min_age", 3), ("password_max_age", 4), ("password_warn_days", 5))


@dataclass(frozen=True, slots=True)
class UserAccount:
    """One user: `groups` are the names of those that list it as a member, in the system's order; the primary one may be among them."""

    name: str
    uid: int
    gid: int
    comment: str
    home: str
    shell: str
    groups: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        """Return the properties of a `user`, except those in the shadow file."""
        return {
            "ensure": "present",
            "uid": self.uid,
            "gid": self.gid,
            "comment": self.comment,
            "home": self.home,
            "shell": self.shell,
            "groups": list(self.groups),
        }


def parse_passwd(text: str) -> dict[str, UserAccount]:
    """Return the accounts in a file like /etc/passwd by name; malformed lines are ignored, of two of one name the first counts."""
    accounts: dict[str, UserAccount] = {}
    for line in text.splitlines():
        parts = line.split(":")
        if len(parts) == 7 and parts[2].isdigit() and parts[3].isdigit() and parts[0]:
            accounts.setdefault(parts[0], UserAccount(parts[0], int(parts[2]), int(parts[3]), parts[4], parts[5], parts[6]))
    return accounts


def parse_group(text: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return gid and members by name, from a file like /etc/group."""
    groups: dict[str, tuple[int, tuple[str, ...]]] = {}
    for line in text.splitlines():
        parts = line.split(":")
        if len(parts) == 4 and parts[2].isdigit() and parts[0]:
            groups.setdefault(parts[0], (int(parts[2]), tuple(part for part in parts[3].split(",") if part)))
    return groups


def parse_shadow(line: str) -> dict[str, Any]:
    """Return the properties of a `user` that one line of /etc/shadow holds; an empty field is -1 for days, absent for the expiry."""
    parts = [*line.split(":"), *[""] * 9]
    properties: dict[str, Any] = {"password": parts[1]}
    for name, number in _SHADOW_DAYS:
        properties[name] = _number(parts[number])
    days = _number(parts[7])
    properties["expiry"] = ABSENT if days < 0 else _day(days)
    return properties


def _number(text: str) -> int:
    return int(text) if text.removeprefix("-").isdigit() else -1


def _day(days: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return ABSENT


def groups_that_list(user: str, entries: Iterable[grp.struct_group]) -> tuple[str, ...]:
    """Return the names of the groups whose members include a user, each once; a user is not a member of his primary group."""
    return tuple(dict.fromkeys(entry.gr_name for entry in entries if user in entry.gr_mem))


def _entries(numbers: Iterable[int]) -> Iterator[grp.struct_group]:
    for number in numbers:
        with suppress(KeyError):  # the group was removed in between
            yield grp.getgrgid(number)


@dataclass(frozen=True, slots=True)
class AccountDatabase:
    """The accounts that the name services know; `etc` is where the local files are. All methods block."""

    etc: Path = field(default=Path("/etc"))

    def user(self, name: str) -> UserAccount | None:
        try:
            return self._account(pwd.getpwnam(name))
        except KeyError:
            return None

    def users(self) -> Iterable[UserAccount]:
        return [self._account(entry) for entry in pwd.getpwall()]

    def _account(self, entry: pwd.struct_passwd) -> UserAccount:
        groups = groups_that_list(entry.pw_name, _entries(os.getgrouplist(entry.pw_name, entry.pw_gid)))
        return UserAccount(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_gecos, entry.pw_dir, entry.pw_shell, groups)

    def group(self, name: str) -> tuple[int, tuple[str, ...]] | None:
        """Return gid and members of a group; None: there is none."""
        try:
            entry = grp.getgrnam(name)
        except KeyError:
            return None
        return entry.gr_gid, tuple(entry.gr_mem)

    def groups(self) -> Mapping[str, tuple[int, tuple[str, ...]]]:
        return {entry.gr_name: (entry.gr_gid, tuple(entry.gr_mem)) for entry in grp.getgrall()}

    def local_users(self) -> dict[str, UserAccount]:
        """Return the users of /etc/passwd alone, with their groups of /etc/group."""
        groups = self.local_groups()
        users = parse_passwd(self._read("passwd"))
        return {
            name: UserAccount(
                name,
                user.uid,
                user.gid,
                user.comment,
                user.home,
                user.shell,
                tuple(group for group, (_, members) in groups.items() if name in members),
            )
            for name, user in users.items()
        }

    def local_groups(self) -> dict[str, tuple[int, tuple[str, ...]]]:
        return parse_group(self._read("group"))

    def shadow(self) -> dict[str, str]:
        """Return the lines of the shadow file by name; {} without the right to read it."""
        try:
            lines = self._read("shadow").splitlines()
        except OSError:
            return {}
        return {line.partition(":")[0]: line for line in reversed(lines) if ":" in line}

    def _read(self, name: str) -> str:
        return (self.etc / name).read_text("utf-8", "surrogateescape")
