"""
Paths opened as a parent directory and a name, so that a file swapped by another user in between leads nowhere else.

A path is walked component by component, each opened from the one before without following links. A link on the way is
followed when those who could have put it there could as well have made its target: it belongs to root or to us and
stands in a folder that only those can write; or its target belongs to the link's own owner.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from shared.errors import ResourceError
from shared.filesystem.files import MAX_LINKS

_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PathEntry:
    """The entry that a path names: `name` in the directory `folder` (a descriptor, for use as `dir_fd`); `path` is for messages."""

    folder: int
    name: str
    path: str

    def lstat(self) -> os.stat_result | None:
        """Return the entry's status, of a link the link's own; None: there is no entry."""
        try:
            return os.lstat(self.name, dir_fd=self.folder)
        except FileNotFoundError:
            return None

    def open(self, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """Return a descriptor of the entry; never of a link's target (OSError ELOOP); never blocks."""
        with _named(self.path):
            return os.open(self.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=self.folder)

    def readlink(self) -> str:
        with _named(self.path):
            return os.readlink(self.name, dir_fd=self.folder)

    @property
    def is_shared(self) -> bool:
        """Return whether others than root and we can create entries in the folder."""
        return not _is_private(os.fstat(self.folder))

    def foreign_hard_link(self, info: os.stat_result) -> bool:
        """
        Return whether `info` is a file with further names, in a folder whose owner could have made this name for somebody else's file.

        Such a file is not shown, not backed up, and its owner and mode are not touched: the other name may be /etc/shadow.
        """
        return stat.S_ISREG(info.st_mode) and info.st_nlink > 1 and self.is_shared and info.st_uid != os.fstat(self.folder).st_uid


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Make system errors name the whole path instead of the part that was passed to the system."""
    try:
        yield
    except OSError as err:
        err.filename = path
        raise


@contextmanager
def open_entry(path: str, *, follow: bool = False) -> Iterator[PathEntry]:
    """
    Open the entry of an absolute path; with `follow`, of the target of a link at its end.

    Raises:
        OSError: a directory on the way is missing or not a directory.
        ResourceError: a link on the way that must not be trusted.
    """
    folder, name = _locate(path, follow=follow)
    try:
        yield PathEntry(folder, name, path)
    finally:
        os.close(folder)


@asynccontextmanager
async def open_entry_in_thread(path: str) -> AsyncIterator[PathEntry]:
    """Do as `open_entry`, in a thread: the walk (a network file system may hang) does not block the event loop."""
    manager = open_entry(path)
    entry = await asyncio.to_thread(manager.__enter__)
    try:
        yield entry
    finally:
        manager.__exit__(None, None, None)


def _locate(path: str, *, follow: bool) -> tuple[int, str]:
    fd = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _named(path):
            return _walk_path(fd, path, follow, [MAX_LINKS])
    except ResourceError as err:
        raise ResourceError(f"{path}: {err.message}", hint=err.hint) from err


def _walk_path(start: int, path: str, follow: bool, links: list[int]) -> tuple[int, str]:
    """Return the parent's descriptor and the name of `path` below `start`, which is taken over; `links`: how many may still be followed."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    fd = start
    try:
        if not parts:
            return os.dup(fd), "."
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            if part != "..":
                try:
                    info = os.lstat(part, dir_fd=fd)
                except FileNotFoundError:
                    if last:
                        return os.dup(fd), part
                    raise
                if stat.S_ISLNK(info.st_mode) and (not last or follow):
                    target, name = _follow_link(fd, part, info, links, into=not last)
                    if last:
                        return target, name
                    os.close(fd)
                    fd = target
                    continue
                if last:
                    return os.dup(fd), part
            fd, old = os.open(part, _STEP, dir_fd=fd), fd
            os.close(old)
        return os.dup(fd), "."
    finally:
        os.close(fd)


def _follow_link(fd: int, part: str, info: os.stat_result, links: list[int], *, into: bool) -> tuple[int, str]:
    """Return parent descriptor and name of the link's target; with `into`, the descriptor of that directory itself and the name '.'."""
    links[0] -= 1
    if links[0] < 0:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
    text = os.readlink(part, dir_fd=fd)
    start = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) if text.startswith("/") else os.dup(fd)
    folder, name = _walk_path(start, text, True, links)
    try:
        trusted = info.st_uid in (0, os.geteuid()) and _is_private(os.fstat(fd), sticky=True)
        if into:
            reached = os.open(name, _STEP, dir_fd=folder)
            os.close(folder)
            folder, name = reached, "."
            owner: int | None = os.fstat(folder).st_uid
        else:
            try:
                owner = os.lstat(name, dir_fd=folder).st_uid
            except FileNotFoundError:
                owner = os.fstat(folder).st_uid
        if not trusted and owner != info.st_uid:
            raise ResourceError(
                f"refusing to follow the link '{part}' of user {info.st_uid} to a file of another user",
                hint="Manage the path that the link leads to, or give the link to root in a folder that only root can write.",
            )
        return folder, name
    except BaseException:
        os.close(folder)
        raise


def _is_private(folder: os.stat_result, *, sticky: bool = False) -> bool:
    """
    Return whether only root and this user can change the contents of a folder; `sticky`: or others cannot remove files of other owners.
    """
    mine = folder.st_uid in (0, os.geteuid())
    return mine and (not folder.st_mode & 0o022 or (sticky and bool(folder.st_mode & stat.S_ISVTX)))


def set_owner(entry: PathEntry, uid: int, gid: int) -> None:
    """Change owner and group of an entry (a link's own, never its target's); -1 leaves an id. OSError, ResourceError."""
    fd = entry.open(os.O_PATH)
    try:
        info = os.fstat(fd)
        _refuse_foreign(entry, info)
        if stat.S_ISLNK(info.st_mode):
            os.chown(entry.name, uid, gid, dir_fd=entry.folder, follow_symlinks=False)
        else:
            os.chown(f"/proc/self/fd/{fd}", uid, gid)
    finally:
        os.close(fd)


def set_mode(entry: PathEntry, bits: int) -> None:
    """Set the permission bits of an entry; a link's are left alone. OSError, ResourceError."""
    fd = entry.open(os.O_PATH)
    try:
        info = os.fstat(fd)
        if stat.S_ISLNK(info.st_mode):
            return
        _refuse_foreign(entry, info)
        os.chmod(f"/proc/self/fd/{fd}", bits)  # noqa: PTH101  # by descriptor: the path may be another thing by now
    finally:
        os.close(fd)


def _refuse_foreign(entry: PathEntry, info: os.stat_result) -> None:
    if entry.foreign_hard_link(info):
        raise ResourceError(
            f"{entry.path} is a hard link to another user's file; its owner and mode are not changed",
            hint="Remove it, so that a file of its own can be created.",
        )


def remove(entry: PathEntry) -> None:
    """Remove an entry: a directory with all that is in it, never following a link out of it."""
    info = entry.lstat()
    if info is None:
        return
    if stat.S_ISDIR(info.st_mode):
        shutil.rmtree(entry.name, dir_fd=entry.folder)
    else:
        with _named(entry.path):
            os.unlink(entry.name, dir_fd=entry.folder)


def file_type(info: os.stat_result) -> str:
    """Return Puppet's word for a kind of file: file, directory, link, fifo, socket, characterSpecial, blockSpecial."""
    return {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "directory",
        stat.S_IFLNK: "link",
        stat.S_IFIFO: "fifo",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "characterSpecial",
        stat.S_IFBLK: "blockSpecial",
    }.get(stat.S_IFMT(info.st_mode), "unknown")
