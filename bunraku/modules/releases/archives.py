"""
Archives of modules, treated as hostile: the Forge, a mirror or a module's author may be malicious.

Only regular files and folders come out, below the folder they are unpacked in, with mode 0644 or 0755 and the owner that is asked for.
Links, devices and FIFOs, paths that climb, a path that is there twice, names that are not UTF-8, and an archive that is damaged, too
large, or goes on behind its end are refused as a whole.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Final

from shared.errors import BadData, BadName, TooLarge
from shared.filesystem.files import parts_of, write_all
from shared.names import quoted_for_log
from shared.settings import AgentSettings

MAX_DEPTH: Final = 50  # folders in one another
MAX_HEADER: Final = 64 << 10  # bytes that describe one member: names, extended headers
_BLOCK: Final = 512
_CHUNK: Final = 256 << 10
_RATIO_FROM: Final = 16 << 20  # bytes; small archives may grow as they like
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a FIFO",
}


@dataclass(frozen=True, slots=True)
class ModuleArchiveLimits:
    """
    The limits of one archive.

    Attributes:
        archive: bytes of the archive itself.
        size: bytes of its contents, with headers.
        files: files and folders in it.
        ratio: how many times larger than the archive that may be, beyond 16 MiB.
    """

    archive: int = 64 << 20
    size: int = 512 << 20
    files: int = 50_000
    ratio: int = 100

    @classmethod
    def of(cls, settings: AgentSettings) -> ModuleArchiveLimits:
        """Return the limits of the settings."""
        return cls(settings.module_archive_size, settings.module_unpacked_size, settings.module_files, settings.module_unpacked_ratio)


def unpack(archive: Path, folder: Path, limits: ModuleArchiveLimits, *, owner: tuple[int, int] | None = None) -> None:
    """
    Unpack a gzipped tar archive into the empty folder `folder`. Blocks.

    Args:
        owner: uid and gid of the files; None: the caller's.
    Raises:
        BadData: the archive is damaged, or has a member that no module needs; files written by then stays.
        TooLarge: a limit was passed.
    """
    with archive.open("rb") as packed:
        size = os.fstat(packed.fileno()).st_size
        if size > limits.archive:
            raise TooLarge(f"{archive.name} is larger than {limits.archive} bytes", hint="See module_archive_size.")
        # Everything is created relative to this descriptor, so that no path can lead out of the folder.
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _Unpacking(archive.name, packed, size, root, limits, owner).run()
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, UnicodeError, RecursionError) as err:
            raise BadData(f"{archive.name} is no whole archive of a module: {err}", hint="Was it downloaded or copied completely?") from err
        finally:
            os.close(root)


class _Stream(RawIOBase):
    """The bytes of a gzipped file, read forward only and counted."""

    def __init__(self, packed: BinaryIO, check: Callable[[int], None]) -> None:
        self._file = gzip.GzipFile(fileobj=packed, mode="rb")
        self._check = check
        self._position = 0
        self.budget = MAX_HEADER
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        # tarfile reads names and extended headers as a whole, whatever length they announce.
        if size < 0 or size > self.budget:
            raise tarfile.ReadError("the description of a member is too long")
        self.last = self._file.read(size)
        self._position += len(self.last)
        self.budget -= len(self.last)
        self._check(self._position)
        return self.last

    def seek(self, position: int, whence: int = 0) -> int:
        if whence or position < self._position:
            raise tarfile.ReadError("a member has an impossible length")
        while self._position < position and self.read(min(position - self._position, _CHUNK)):
            pass
        return self._position

    def tell(self) -> int:
        return self._position


class _Unpacking:
    """One archive on its way below the folder `root`, a descriptor."""

    def __init__(
        self,
        name: str,
        packed: BinaryIO,
        size: int,
        root: int,
        limits: ModuleArchiveLimits,
        owner: tuple[int, int] | None,
    ) -> None:
        self.name = name
        self.root = root
        self.limits = limits
        self.owner = owner
        # The ratio stops a bomb long before the absolute limit.
        self._most = min(limits.size, max(size * limits.ratio, _RATIO_FROM))
        self._count = 0
        self._stream = _Stream(packed, self._check_size)

    def run(self) -> None:
        with tarfile.open(fileobj=self._stream, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            while (member := self._next(tar)) is not None:
                self._write(tar, member)
        # tarfile ends silently at a damaged header, as if the archive were complete.
        if self._stream.last.strip(b"\0"):
            raise tarfile.ReadError("a header is damaged")
        self._stream.budget = self._most + _CHUNK
        while rest := self._stream.read(_CHUNK):
            if rest.strip(b"\0"):
                raise BadData(f"{self.name} continues behind the end of the archive", hint="Its rest would not be unpacked.")

    def _next(self, tar: Any) -> tarfile.TarInfo | None:
        """Return the next member, None at the end. What describes it may have a limited length; the first was read with the archive."""
        tar.members.clear()  # which would grow with the archive
        self._stream.budget = MAX_HEADER
        member: tarfile.TarInfo | None = tar.next()
        return member

    def _check_size(self, position: int) -> None:
        if position > self._most:
            raise TooLarge(
                f"{self.name} holds more than {self._most} bytes",
                hint="See module_unpacked_size and module_unpacked_ratio, if it is right.",
            )

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = self._path(member)
        if member.isdir():
            os.close(self._folder(parts))
            return
        if not parts:
            raise self._refused(member, "is no file name")
        self._count_one()
        folder = self._folder(parts[:-1])
        try:
            # O_EXCL refuses a second member of the same name, which could replace a checked one.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                fd = os.open(parts[-1], flags, 0o600, dir_fd=folder)
            except FileExistsError:
                raise self._refused(member, "is in it twice, or as another does for this file system") from None
            try:
                self._copy(tar, member, fd)
                self._own(fd)
                # Only the executable bit is taken over: an archive must not bring set-id or world-writable files.
                os.fchmod(fd, 0o755 if member.mode & 0o100 else 0o644)
            finally:
                os.close(fd)
        finally:
            os.close(folder)

    def _copy(self, tar: tarfile.TarFile, member: tarfile.TarInfo, fd: int) -> None:
        content = tar.extractfile(member)
        assert content is not None
        self._stream.budget = self._most + _CHUNK
        remaining = member.size
        while remaining > 0:
            block = content.read(min(remaining, _CHUNK))
            if not block:
                raise tarfile.ReadError("unexpected end of data")
            write_all(fd, block)
            remaining -= len(block)

    def _path(self, member: tarfile.TarInfo) -> tuple[str, ...]:
        """Return the components of a member's path; BadData when it may not be unpacked."""
        if member.size < 0:
            raise tarfile.ReadError("a member has an impossible length")
        if member.type in _KINDS:
            raise self._refused(member, f"is {_KINDS[member.type]}")
        if member.issparse() or not (member.isreg() or member.isdir()):
            raise self._refused(member, "is neither a plain file nor a folder")
        if not member.name.isprintable():  # also what is no UTF-8
            raise self._refused(member, "has a name that is not printable UTF-8")
        try:
            parts = parts_of(member.name)
        except BadName:
            raise self._refused(member, "would be outside of the module") from None
        # Also in other cases, for file systems that ignore it.
        if ".git" in map(str.casefold, parts):
            raise self._refused(member, "belongs to a Git repository, whose hooks are programs")
        if len(parts) > MAX_DEPTH:
            raise self._refused(member, f"is in more than {MAX_DEPTH} folders")
        return parts

    def _refused(self, member: tarfile.TarInfo, why: str) -> BadData:
        return BadData(f"{self.name} is not unpacked: {quoted_for_log(member.name)} {why}", hint="A module has files and folders only.")

    def _folder(self, parts: tuple[str, ...]) -> int:
        """Return a descriptor of a folder, which is made where it is missing, with those above it."""
        fd = os.dup(self.root)
        try:
            for part in parts:
                is_new = self._make(part, fd)
                try:
                    below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                except NotADirectoryError:
                    raise BadData(f"{self.name} is not unpacked: {quoted_for_log('/'.join(parts))} is both a file and a folder") from None
                os.close(fd)
                fd = below
                if is_new:
                    self._own(fd)
                    os.fchmod(fd, 0o755)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _make(self, name: str, above: int) -> bool:
        """Make a folder; return whether there was none."""
        try:
            os.mkdir(name, 0o700, dir_fd=above)
        except FileExistsError:
            return False
        self._count_one()
        return True

    def _count_one(self) -> None:
        self._count += 1
        if self._count > self.limits.files:
            raise TooLarge(
                f"{self.name} holds more than {self.limits.files} files and folders", hint="See module_files, if the archive is right."
            )

    def _own(self, fd: int) -> None:
        if self.owner is not None:
            os.fchown(fd, *self.owner)
