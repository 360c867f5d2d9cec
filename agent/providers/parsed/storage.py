"""The storage of parsed files: read whole, replaced whole, backed up to a filebucket before the first change of a run."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from shared.errors import ResourceError
from shared.filesystem.files import write_all
from shared.types.filebucket import Filebucket

from ...servers.dipper import Dipper
from ..file.inheritance import inherited_rights
from ..file.path_entries import PathEntry, open_entry
from ..file.replacement import Replacement, Rights
from .records import MAX_LINES

MAX_SIZE = 64 * 2**20  # bytes of a file that is parsed


class Storage(Protocol):
    """The place where the texts of targets are read and written."""

    async def read(self, target: str) -> str:
        """Return a target's text; '' when it does not exist. ResourceError or OSError when that cannot be known: then it is not written."""

    async def back_up(self, target: str) -> None:
        """Back up a target before it is replaced."""

    async def write(self, target: str, text: str, rights: Rights | None = None) -> None:
        """Replace a whole target. `rights`: those of the new file; None: those of the file that it replaces."""


@dataclass(frozen=True, slots=True)
class FlatFiles:
    """
    Files by path; links are followed only if their owners could have written the targets.

    Attributes:
        bucket: returns the bucket for backups; None: there are no backups.
        mode: the mode of new files.
        public: paths of files that everybody reads, 0644 when they are new.
    """

    bucket: Callable[[Filebucket | None], Dipper] | None = None
    say: Callable[[str, str], None] = lambda level, message: None
    mode: int = 0o600
    public: frozenset[str] = frozenset()

    async def read(self, target: str) -> str:
        return (await asyncio.to_thread(read_file, target) or b"").decode("utf-8", "surrogateescape")

    async def back_up(self, target: str) -> None:
        if self.bucket is None:
            return
        fd = await asyncio.to_thread(open_file, target)
        if fd is None:
            return
        try:
            self.say("info", f"Computing checksum on file {target}")
            await self.bucket(None).keep(fd, target)
        finally:
            os.close(fd)

    async def write(self, target: str, text: str, rights: Rights | None = None) -> None:
        data = text.encode("utf-8", "surrogateescape")
        await asyncio.to_thread(replace_file, target, data, mode=self.mode_of_new(target), rights=rights)

    def mode_of_new(self, target: str) -> int:
        """Return the mode of a target that does not exist yet."""
        return 0o644 if target in self.public else self.mode


def read_file(path: str, *, limit: int = MAX_SIZE) -> bytes | None:
    """Return the bytes of a regular file, None when there is none; a link that must not be trusted is a ResourceError. Blocks."""
    fd = open_file(path)
    if fd is None:
        return None
    try:
        if os.fstat(fd).st_size > limit:
            raise ResourceError(f"{path} is larger than {limit} bytes and is not read")
        chunks = []
        while chunk := os.read(fd, 1 << 20):
            chunks.append(chunk)
        if (number := sum(chunk.count(b"\n") for chunk in chunks)) > MAX_LINES:
            raise ResourceError(f"{path} has {number} lines and is not read: more than {MAX_LINES} are not")
        return b"".join(chunks)
    finally:
        os.close(fd)


def replace_file(path: str, data: bytes, *, mode: int = 0o644, rights: Rights | None = None) -> None:
    """
    Replace a file atomically, with owner and mode of the file that is there. Blocks.

    Args:
        mode: the mode of a file that did not exist.
        rights: owner and mode, in place of those of the old file.
    """
    real = _real_path(path)
    with open_entry(real) as entry:
        new_rights = rights or _rights_to_keep(entry, mode)
    try:
        with Replacement(real, new_rights, "none") as replacement:
            replacement.write(data)
            replacement.commit()
    except OSError as err:
        if err.errno != errno.EBUSY:
            raise
        _rewrite(real, data)  # a file that is itself a mount point (a container's /etc/hosts) cannot be renamed over


def _rewrite(path: str, data: bytes) -> None:
    with open_entry(path) as entry:
        fd = entry.open(os.O_WRONLY)
    try:
        write_all(fd, data)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)


def _rights_to_keep(entry: PathEntry, mode: int) -> Rights:
    info = entry.lstat()
    if info is None or not stat.S_ISREG(info.st_mode):
        return Rights(mode=mode)
    return inherited_rights(entry, info)


def open_file(path: str) -> int | None:
    """Return a descriptor, for reading, of the regular file at a path, trusted links followed; None: nothing there. Blocks."""
    try:
        with open_entry(path, follow=True) as entry:
            fd = entry.open()
            info = os.fstat(fd)
            foreign = entry.foreign_hard_link(info)
    except FileNotFoundError:
        return None
    if foreign or not stat.S_ISREG(info.st_mode):
        os.close(fd)
        kind = "a hard link to another user's file" if foreign else "not a regular file"
        raise ResourceError(f"{path} is {kind}")
    return fd


def _real_path(path: str) -> str:
    """Return the path behind trusted links at the end of `path`."""
    with open_entry(path, follow=True) as entry:
        folder = os.readlink(f"/proc/self/fd/{entry.folder}")  # noqa: PTH115  # text, as it is
        return f"{folder.rstrip('/')}/{entry.name}"
