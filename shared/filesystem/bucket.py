"""
The filebucket's store, in Puppet's own layout, so that an existing bucket is used as it is.

`<root>/<c0>/…/<c7>/<hex>/contents` (0440) and `paths` (0640, one original path a line). Everything here blocks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ..errors import NO_SPACE, BadRequest, Conflict, NotFound, OutOfSpace, TooLarge
from ..failpoints import failpoint
from ..names import quoted_for_log
from . import checksums
from .checksums import Algorithm, Checksum
from .files import make_directory, open_beneath, write_all
from .textdiff import Differ

MAX_PATH = 4096  # characters of an original path
ENTRY_OVERHEAD = 16 * 1024  # bytes an entry is charged beyond its content: blocks, folders, `paths`

Report = Callable[[str, str], None]  # (level, message): level is Puppet's: info, warning, err


@dataclass(frozen=True, slots=True)
class BucketKey:
    """The parts of `<algorithm>/<hex>[/<original path>]`; `path` is None when not given."""

    checksum: Checksum
    path: str | None = None

    @classmethod
    def parse(cls, key: str, algorithm: Algorithm) -> BucketKey:
        """
        Return the key as a value, checked whole.

        Args:
            algorithm: The only one accepted: the setting digest_algorithm.
        Raises:
            BadRequest: another algorithm, anything but lower-case hex of the right length, or an impossible path.
        Source: protocol reference 3.7.
        """
        kind, _, rest = key.partition("/")
        value, _, path = rest.partition("/")
        if kind != algorithm:
            raise BadRequest(f'Unsupported checksum type "{quoted_for_log(kind)[1:-1]}"', hint=f"This bucket stores files by {algorithm}.")
        if not checksums.valid(algorithm, value):
            raise BadRequest(f"Invalid checksum {quoted_for_log(value)}")
        return cls(Checksum(algorithm, value), path_line(path) if path else None)


def path_line(path: str) -> str:
    """Return an original path as one line of `paths`: what cannot stand in a line is written `\\xNN`; BadRequest when it is too long."""
    if len(path) > MAX_PATH:
        raise BadRequest(f"The original path is longer than {MAX_PATH} characters")
    return "".join(f"\\x{ord(c):02x}" if ord(c) < 32 or c == "\x7f" or "\ud800" <= c < "\udc80" else c for c in path)


@dataclass(frozen=True, slots=True)
class BucketEntry:
    """One path under which a content was stored; `stored` is when the entry last changed."""

    value: str
    stored: datetime
    path: str


@dataclass(eq=False, repr=False)
class Bucket:
    """
    Contents by checksum below `root`.

    Args:
        quota: Bytes all entries together may take; 0: no quota.
        reserve: Bytes (and as many inodes per 16 KiB) that stay free on the file system.
        max_file: Bytes of one content.
        report: Gets Puppet's own messages about duplicates and damage.
    """

    root: Path
    _: KW_ONLY
    algorithm: Algorithm = "sha256"
    quota: int = 0
    reserve: int = 64 * 1024 * 1024
    max_file: int = 16 * 1024**3
    report: Report = lambda level, message: None
    differ: Differ = field(default_factory=Differ)

    def __post_init__(self) -> None:
        if self.algorithm not in checksums.HEX_LENGTH:
            raise BadRequest(f"A bucket cannot store by checksum type {self.algorithm}")

    def key(self, text: str) -> BucketKey:
        """Return `BucketKey.parse` with this bucket's algorithm."""
        return BucketKey.parse(text, self.algorithm)

    def folder(self, value: str) -> Path:
        """Return the folder of the entry for `value`; `value` must have been checked."""
        return self.root / self._relative(value)

    def _relative(self, value: str) -> str:
        if not checksums.valid(self.algorithm, value):
            raise BadRequest(f"Invalid checksum {quoted_for_log(value)}")
        # Puppet's layout, so that an existing bucket can be used and its tools find the files.
        return "/".join((*value[:8], value))

    # -- reading ----------------------------------------------------------------------------------

    def has(self, value: str, path: str | None = None) -> bool:
        """Return whether the content is there and, if `path` is given, was stored under it. Creates nothing."""
        try:
            with open_beneath(self.root, f"{self._relative(value)}/contents", follow=False):
                pass
            return path is None or path_line(path) in self.paths(value)
        except NotFound:
            return False

    def open(self, value: str) -> BinaryIO:
        """Return the content, open for reading; NotFound when it is not there."""
        try:
            return open_beneath(self.root, f"{self._relative(value)}/contents", follow=False)
        except NotFound as err:
            raise self.missing(value) from err

    def missing(self, value: str) -> NotFound:
        """Return the error for a content that is not there."""
        return NotFound(f"Could not find a file with checksum {Checksum(self.algorithm, value)} in the filebucket")

    def quota_used_up(self) -> OutOfSpace:
        """Return the error for a content that the quota has no room for."""
        return OutOfSpace(f"The filebucket's quota of {self.quota} bytes is used up", hint="Remove old entries, or raise bucket_quota.")

    def collision(self, value: str) -> Conflict:
        """Return the error for a content that has the checksum of another one."""
        return Conflict(
            f"Existing backup and new file have different content but same checksum, {Checksum(self.algorithm, value)}. "
            "Verify existing backup and remove if incorrect."
        )

    def paths(self, value: str) -> list[str]:
        """Return the original paths of an entry, oldest first; [] without an entry."""
        try:
            with open_beneath(self.root, f"{self._relative(value)}/paths", follow=False) as file:
                return [line for line in file.read().decode("utf-8", "surrogateescape").split("\n") if line]
        except NotFound:
            return []

    def entries(self, since: datetime | None = None, until: datetime | None = None) -> list[BucketEntry]:
        """Return all entries stored in the span, by path, then by time; both bounds belong to it."""
        entries = []
        for folder in self._folders():
            try:
                stored = datetime.fromtimestamp(int((folder / "paths").stat().st_mtime), UTC)
            except OSError:
                continue
            if (since is None or since <= stored) and (until is None or stored <= until):
                entries += [BucketEntry(folder.name, stored, path) for path in self.paths(folder.name)]
        return sorted(entries, key=lambda entry: (entry.path, entry.stored))

    def values(self) -> list[str]:
        """Return the checksums of all entries, in hex."""
        return [folder.name for folder in self._folders()]

    def _folders(self) -> Iterator[Path]:
        def below(folder: Path, depth: int) -> Iterator[Path]:
            try:
                names = sorted(path.name for path in folder.iterdir())
            except OSError:
                return
            for name in names:
                # Other files in the bucket's folder are none of ours.
                if depth == 8 and checksums.valid(self.algorithm, name):
                    yield folder / name
                elif depth < 8 and len(name) == 1 and name in "0123456789abcdef":
                    yield from below(folder / name, depth + 1)

        return below(self.root, 0)

    def diff(self, old: str, new: str) -> bytes:
        """Return the output of `diff` for two entries; NotFound names the missing one."""
        with self.open(old) as first, self.open(new) as second:
            labels = (str(Checksum(self.algorithm, old)), str(Checksum(self.algorithm, new)))
            return self.differ.compare(first.fileno(), second.fileno(), labels=labels)

    # -- writing ----------------------------------------------------------------------------------

    def incoming(self) -> Incoming:
        """Return a writer for new content: `with bucket.incoming() as new: new.write(block) …; new.keep(value, path)`."""
        return Incoming(self)

    def add(self, blocks: Iterable[bytes], *, value: str | None = None, path: str | None = None) -> str:
        """
        Store the blocks that `blocks` yields; return their hex value.

        Args:
            value: The checksum the sender claims; anything else arriving is refused and nothing is stored.
            path: Where the content came from, opaque text.
        Raises:
            BadRequest, Conflict, TooLarge, OutOfSpace: see `Incoming`.
        """
        with self.incoming() as new:
            for block in blocks:
                new.write(block)
            return new.keep(value, path)

    def remove(self, value: str) -> None:
        """Remove an entry of a bucket that has no quota. Nobody may write the same entry at the same time."""
        folder = self.folder(value)
        for name in ("contents", "paths"):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # a folder has other entries
            for parent in (folder, *folder.parents[:8]):
                parent.rmdir()

    def sweep(self, *, older_than: float = 86400.0) -> int:
        """Remove leftovers of dead writers that are older than `older_than` seconds; return their number. Each new writer calls it."""
        gone = 0
        try:
            names = list(self.root.iterdir())
        except FileNotFoundError:
            return 0
        for path in names:
            with suppress(FileNotFoundError):
                if path.name.startswith(".incoming-") and path.lstat().st_mtime < time.time() - older_than:
                    path.unlink()
                    gone += 1
        return gone

    def _room(self, more: int) -> None:
        """OutOfSpace unless `more` bytes still fit above the reserve."""
        free = os.statvfs(self.root)
        # The reserve keeps room for facts and reports on the same disk; inodes can run out first.
        if free.f_bavail * free.f_frsize < more + self.reserve or (free.f_files and free.f_favail * ENTRY_OVERHEAD < self.reserve):
            raise OutOfSpace("The filebucket's file system is full", hint=f"Free some space below {self.root}.")

    @contextmanager
    def _charged(self, more: int) -> Iterator[None]:
        """
        Count so many more bytes against the quota while an entry is put in place.

        The sum is in `<root>/.usage`, written under a lock; without the file all entries are counted once.
        """
        if not self.quota:
            yield
            return
        fd = os.open(self.root / ".usage", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            text = os.pread(fd, 40, 0).strip()
            # Without the file, or with a damaged one, all entries are counted once.
            used = int(text) if text.isdigit() else self._counted()
            if used + more > self.quota:
                raise self.quota_used_up()
            yield
            os.pwrite(fd, b"%-24d\n" % (used + more), 0)
        finally:
            os.close(fd)

    def _counted(self) -> int:
        total = 0
        for folder in self._folders():
            try:
                total += (folder / "contents").stat().st_size + ENTRY_OVERHEAD
            except OSError:
                continue
        return total


class Incoming:
    """A content being received: a private temporary file that becomes an entry, or nothing."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.size = 0
        self._sum = checksums.new(bucket.algorithm)
        self._fd = -1
        self._path = bucket.root / f".incoming-{secrets.token_hex(12)}"

    def __enter__(self) -> Incoming:
        make_directory(self.bucket.root, mode=0o770)
        self.bucket.sweep()
        self.bucket._room(0)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._fd)
        self._path.unlink(missing_ok=True)

    def write(self, block: bytes) -> None:
        """Take one block; TooLarge or OutOfSpace before the disk is full."""
        before = self.size
        self.size += len(block)
        if self.size > self.bucket.max_file:
            raise TooLarge(f"A file for the bucket may have {self.bucket.max_file} bytes at most")
        if before >> 22 != self.size >> 22 or len(block) > 1 << 22:  # every 4 MiB
            self.bucket._room(len(block))
        self._sum.update(block)
        try:
            write_all(self._fd, block)
        except OSError as err:
            raise _bucket_error(err) from err

    def keep(self, value: str | None = None, path: str | None = None) -> str:
        """
        Make the content an entry; return its hex value.

        An entry with the same content is left as it is (its time is renewed); a damaged one is replaced, with a warning.

        Raises:
            BadRequest: the content does not have the checksum `value`.
            Conflict: an intact entry has other content and the same checksum.
            OutOfSpace: the quota or the disk is full.
        Source: protocol reference 3.7.
        """
        bucket = self.bucket
        found = self._sum.hexdigest()
        if value is not None and value != found:
            raise BadRequest(
                f"The file does not match its checksum: announced {quoted_for_log(value)}, received {Checksum(bucket.algorithm, found)}",
                hint="The body was cut off or changed on its way; nothing was stored.",
            )
        line = path_line(path) if path else None
        try:
            # Never writable again: other programs may read the bucket.
            os.fchmod(self._fd, 0o440)
            os.fsync(self._fd)
            failpoint("bucket.received")
            folder = bucket.folder(found)
            make_directory(folder, mode=0o770)
            # Two agents may store the same content at the same time.
            with _locked(folder / "paths") as paths:
                self._place(folder, found)
                if line is not None:
                    _append(paths, line)
        except OSError as err:
            raise _bucket_error(err) from err
        return found

    def _place(self, folder: Path, value: str) -> None:
        bucket, contents, checksum = self.bucket, folder / "contents", Checksum(self.bucket.algorithm, value)
        try:
            old = os.open(contents, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            with bucket._charged(self.size + ENTRY_OVERHEAD):
                self._rename(contents)
            return
        except OSError as err:
            if err.errno != errno.ELOOP:
                raise
            bucket.report("warning", f"The backup of {checksum} is a symbolic link. Overwriting it.")
            self._rename(contents)
            return
        try:
            if _same(old, self._fd):
                bucket.report("info", f"FileBucket got a duplicate file {checksum}")
                with suppress(PermissionError):  # stored by another user: its time stays
                    os.utime(old)
                return
            # Only a real collision is an error; damage on the disk is repaired with the new content.
            intact = stat.S_ISREG(os.fstat(old).st_mode) and checksums.of_file(bucket.algorithm, old) == value
        finally:
            os.close(old)
        if intact:
            bucket.report("err", f"Unable to verify existing FileBucket backup at '{contents}'.")
            raise bucket.collision(value)
        bucket.report("warning", f"Existing backup does not match its expected sum, {checksum}. Overwriting corrupted backup.")
        self._rename(contents)

    def _rename(self, contents: Path) -> None:
        self._path.rename(contents)
        failpoint("bucket.stored")
        folder = os.open(contents.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _locked(paths: Path) -> Iterator[int]:
    """A descriptor of the entry's `paths` file, locked as Puppet locks it, so that both may write one bucket."""
    fd = os.open(paths, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def _append(paths: int, line: str) -> None:
    """`line` as one more line of `paths`, unless it is there; a torn last line is ended first."""
    data = line.encode("utf-8", "surrogateescape")
    present = b""
    while block := os.pread(paths, checksums.BLOCK, len(present)):
        present += block
    # Each run backs up the same paths again; the list would grow without end.
    if data in present.split(b"\n"):
        return
    torn = b"\n" if present and not present.endswith(b"\n") else b""
    os.write(paths, torn + data + b"\n")
    os.fsync(paths)


def _same(first: int, second: int) -> bool:
    """Return whether two open files have the same bytes."""
    if not stat.S_ISREG(os.fstat(first).st_mode) or os.fstat(first).st_size != os.fstat(second).st_size:
        return False
    offset = 0
    while block := os.pread(first, checksums.BLOCK, offset):
        if os.pread(second, len(block), offset) != block:
            return False
        offset += len(block)
    return True


def _bucket_error(err: OSError) -> OSError | OutOfSpace:
    if err.errno in NO_SPACE:
        return OutOfSpace("The filebucket's file system is full")
    return err
