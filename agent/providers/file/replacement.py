"""Replacing a file: the new one is complete, checked, and has its owner and mode before its first byte, or the old one stays."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from shared.errors import NO_SPACE, ResourceError
from shared.failpoints import failpoint
from shared.filesystem import checksums
from shared.filesystem.checksums import Algorithm
from shared.filesystem.files import write_all

from .path_entries import PathEntry, open_entry

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LEFTOVER = re.compile(r"\..*\.puppet\d{8}-(\d{1,10})-[0-9a-z]{7}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rights:
    """The owner, group and mode of a file; an id of -1: the one that the system gives a new file."""

    uid: int = -1
    gid: int = -1
    mode: int = 0o644


class Replacement:
    """
    A file that is written next to its final path.

    Everything blocks; `write`, `commit` and `close` may be called from different threads, one at a time.

    Args:
        rights: Set before there is any content.
        staging: A folder to write in instead; then the last step may be a copy.
        plain_name: Whether the temporary name is not hidden: programs that check a file may pass over hidden ones.
        now: Seconds since the epoch, for the temporary name.
    """

    def __init__(
        self,
        path: str,
        rights: Rights,
        algorithm: Algorithm,
        *,
        staging: str = "",
        plain_name: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self.rights = rights
        self.size = 0
        self._lock = threading.Lock()
        self._sum = checksums.new(algorithm)
        self._final = open_entry(path)
        self.entry = self._final.__enter__()
        self._staging = None
        try:
            folder = self.entry
            if staging:
                self._staging = open_entry(f"{staging.rstrip('/')}/{self.entry.name}")
                folder = self._staging.__enter__()
            self._fd, self._name = _create_temporary(folder, plain_name, now())
            self._folder = folder
        except BaseException:
            self._close_entries()
            raise
        self._renamed = False
        try:
            if rights.uid != -1 or rights.gid != -1:
                os.fchown(self._fd, rights.uid, rights.gid)
            os.fchmod(self._fd, rights.mode & 0o1777)  # set-id bits come with the complete content
        except BaseException:
            self.close()
            raise

    @property
    def temporary(self) -> str:
        """Return the path of the unfinished file, for a program that checks it."""
        return f"{os.path.dirname(self._folder.path).rstrip('/')}/{self._name}"  # noqa: PTH120

    @property
    def descriptor(self) -> int:
        """Return the descriptor of the unfinished file, open for reading and writing."""
        return self._fd

    def write(self, block: bytes) -> None:
        with self._lock:
            if self._fd < 0:
                raise OSError(errno.EBADF, "given up", self.path)
            write_all(self._fd, block)
            self._sum.update(block)
            self.size += len(block)

    def sum(self) -> str:
        """Return the checksum's value of the written content."""
        return self._sum.hexdigest()

    def commit(self) -> None:
        """Move the file to its final path, surviving a power loss; IsADirectoryError when a directory is there."""
        with self._lock:
            # Set-id bits last: chown clears them, and half a program must not run as its owner.
            os.fchmod(self._fd, self.rights.mode & 0o7777)
            os.fsync(self._fd)
            failpoint("file.written")
            info = self.entry.lstat()
            if info is not None and stat.S_ISDIR(info.st_mode):
                raise IsADirectoryError(errno.EISDIR, "Is a directory", self.path)
            try:
                os.rename(self._name, self.entry.name, src_dir_fd=self._folder.folder, dst_dir_fd=self.entry.folder)
                self._renamed = True
            except OSError as err:
                # A staging location may be on another file system, where no rename reaches.
                if err.errno != errno.EXDEV:
                    raise
                self._move_across()
            failpoint("file.renamed")
            _sync(self.entry.folder)

    def _move_across(self) -> None:
        """Copy the file next to its final place and rename it there, because the staging folder is on another file system."""
        with Replacement(self.path, self.rights, "none") as near:
            offset = 0
            while block := os.pread(self._fd, checksums.BLOCK, offset):
                near.write(block)
                offset += len(block)
            near.commit()

    def close(self) -> None:
        """Remove the file unless it was committed."""
        with self._lock:
            if self._fd < 0:
                return
            os.close(self._fd)
            self._fd = -1
            try:
                if not self._renamed:
                    os.unlink(self._name, dir_fd=self._folder.folder)
            except FileNotFoundError:
                pass
            finally:
                self._close_entries()

    def _close_entries(self) -> None:
        self._final.__exit__(None, None, None)
        if self._staging is not None:
            self._staging.__exit__(None, None, None)

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def make_link(path: str, target: str, uid: int, gid: int) -> None:
    """Atomically replace the file at the path, unless it is a directory, by a link."""
    with open_entry(path) as entry:
        name = f".{entry.name[:150]}.{secrets.token_hex(8)}"
        os.symlink(target, name, dir_fd=entry.folder)
        try:
            if (uid, gid) != (-1, -1):
                os.chown(name, uid, gid, dir_fd=entry.folder, follow_symlinks=False)
            os.rename(name, entry.name, src_dir_fd=entry.folder, dst_dir_fd=entry.folder)
        except BaseException:
            os.unlink(name, dir_fd=entry.folder)
            raise


def full_disk_error(err: OSError, replacement: Replacement) -> ResourceError | None:
    """Return the error for a content that does not fit on the disk; None for another error."""
    if err.errno not in NO_SPACE:
        return None
    folder = replacement.temporary.rpartition("/")[0] or "/"
    written = f"{replacement.size} bytes of the new content of {replacement.path}"
    return ResourceError(
        f"{os.strerror(err.errno)} in {folder}, after {written}; the old content is unchanged",
        hint="Free some space on that file system, or give the file another staging_location.",
    )


def _create_temporary(folder: PathEntry, plain_name: bool, now: float) -> tuple[int, str]:
    """
    Return a new private file with an unpredictable name: (descriptor, name). The number of tries is limited; an existing name is never
    used.
    """
    unique = f"{time.strftime('%Y%m%d', time.localtime(now))}-{os.getpid()}-"
    stem = f"{folder.name[:150]}{unique}" if plain_name else f".{folder.name[:150]}.puppet{unique}"
    for _ in range(100):
        name = stem + "".join(secrets.choice(_LETTERS) for _ in range(7))
        try:
            fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder.folder)
        except FileExistsError:
            continue
        return fd, name
    raise FileExistsError(errno.EEXIST, "no free name for a temporary file", folder.path)


def remove_leftovers(path: str) -> None:
    """Remove leftovers of killed runs from a folder: our own hidden files, named after a process that has ended. Blocks."""
    try:
        with open_entry(f"{path.rstrip('/')}/x") as entry:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=entry.folder)
    except OSError:
        return
    try:
        for name in os.listdir(fd):  # noqa: PTH208  # by descriptor
            match = _LEFTOVER.fullmatch(name)
            if match is None or _alive(int(match[1])):
                continue
            with suppress(FileNotFoundError, PermissionError):
                info = os.lstat(name, dir_fd=fd)
                if stat.S_ISREG(info.st_mode) and info.st_nlink == 1:
                    os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _sync(folder: int) -> None:
    """Write the folder's own record of the rename to disk; a folder we may not read is left to the system."""
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
