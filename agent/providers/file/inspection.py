"""The state of a path: its kind, owner, mode, content's checksum. Everything blocks; nothing here changes anything."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared.errors import PuppetError, ResourceError
from shared.filesystem import checksums, modes
from shared.filesystem.checksums import Checksum
from shared.ral import Type
from shared.ral.attributes import State
from shared.types.file import File

from .path_entries import PathEntry, file_type, open_entry

Warn = Callable[[str], None]


def state_of(resource: File, *, content: bool, warn: Warn) -> State | None:
    """
    Return the state of a path by attribute; None: nothing is there.

    Args:
        content: whether a file's checksum is computed.
    Raises:
        ResourceError: a link in the path that must not be trusted, or a file that cannot be read.
    """
    try:
        with open_entry(resource.path, follow=resource.links == "follow") as entry:
            info = entry.lstat()
            return None if info is None else _state(resource, entry, info, content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        warn("Could not stat; permission denied")
        return None
    except OSError as err:
        if err.errno not in (errno.EINVAL, errno.ELOOP):
            raise
        warn("Could not stat; invalid pathname")
        return None


def _state(resource: File, entry: PathEntry, info: os.stat_result, content: bool) -> dict[str, Any]:
    kind = file_type(info)
    total = str(_content_sum(resource, entry)) if kind == "file" and content else None
    return {
        "ensure": kind,
        "type": kind,
        "content": total,
        "checksum_value": total.partition("}")[2] if total else None,
        "owner": info.st_uid,
        "group": info.st_gid,
        "mode": modes.octal(stat.S_IMODE(info.st_mode)),
        "target": entry.readlink() if kind == "link" else "notlink",
        "ctime": datetime.fromtimestamp(info.st_ctime, UTC),
        "mtime": datetime.fromtimestamp(info.st_mtime, UTC),
        "reachable": kind != "link" or Path(resource.path).exists(),
    }


def _content_sum(resource: File, entry: PathEntry) -> Checksum:
    algorithm = checksums.algorithm(resource.checksum)
    try:
        fd = entry.open()
        try:
            return Checksum(algorithm, checksums.of_file(algorithm, fd))
        finally:
            os.close(fd)
    except OSError as err:
        raise ResourceError(f"Could not read file {resource.title}: {err.strerror} - {resource.path}") from err


def _account(find: Callable[[Any], tuple[Any, ...]], key: str | int, field: int) -> Any:
    """Return one field of an entry of the account database; None: there is no such entry."""
    try:
        return find(key)[field]
    except (KeyError, ValueError, OverflowError):
        return None


def user_id(name: str) -> int | None:
    """Return the id of a user; None when no user has that name."""
    number: int | None = _account(pwd.getpwnam, name, 2)
    return number


def group_id(name: str) -> int | None:
    """Return the id of a group; None when no group has that name."""
    number: int | None = _account(grp.getgrnam, name, 2)
    return number


def forget_selinux(resource: Type) -> None:
    """Leave the SELinux context of a file unmanaged."""
    for attribute in ("seluser", "selrole", "seltype", "selrange"):
        if resource.wanted(attribute) is not None:
            resource.log("debug", f"SELinux contexts are not managed here: {attribute} is ignored")
            resource.forget(attribute)


@dataclass(slots=True)
class FileOwnership:
    """A file's desired owner and group as ids by attribute (an unknown name stays), and the names of all ids that messages may show."""

    ids: dict[str, list[Any]] = field(default_factory=dict)
    names: dict[tuple[str, Any], str] = field(default_factory=dict)

    def apply_to(self, resource: File) -> None:
        """Replace the resource's names of users and groups by ids."""
        for attribute, ids in self.ids.items():
            resource.set_desired(attribute, ids)
        resource.names |= self.names


def desired_ownership(resource: File, state: State | None) -> FileOwnership:
    """Look up the desired owner and group of a file in the system."""
    ownership = FileOwnership()
    for attribute, find, entry_of in (("owner", user_id, pwd.getpwuid), ("group", group_id, grp.getgrgid)):
        desired = resource.wanted(attribute)
        if desired is None:
            continue
        ids = ownership.ids[attribute] = [value if isinstance(value, int) else _id_or_name(value, find) for value in desired]
        for number in (*ids, (state or {}).get(attribute)):
            name = _account(entry_of, number, 0) if isinstance(number, int) else None
            if name is not None:
                ownership.names[attribute, number] = name
    return ownership


Inspection = tuple[State | None, FileOwnership]


def inspect_path(resource: File, warn: Warn) -> Inspection:
    """Return the state and the ownership that a file resource needs before it is compared."""
    watched = {"content", "checksum_value"}
    audited = not watched.isdisjoint(resource.audit)
    content = audited or not resource.manages_anything or any(resource.wanted(attribute) for attribute in watched)
    state = state_of(resource, content=content, warn=warn)
    return state, desired_ownership(resource, state)


def inspect_paths(resources: Iterable[File]) -> dict[File, Inspection]:
    """Return the inspection of several files, without those that have something to log; they log it when they are evaluated."""
    inspections = {}
    for resource in resources:
        warnings: list[str] = []
        with suppress(PuppetError, OSError):
            inspection = inspect_path(resource, warnings.append)
            if not warnings:
                inspections[resource] = inspection
    return inspections


def _id_or_name(name: str, find: Callable[[str], int | None]) -> int | str:
    number = find(name)
    return name if number is None else number
