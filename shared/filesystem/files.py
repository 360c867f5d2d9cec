"""Safe access to files: paths kept inside a root, opening without following links out of it, atomic writes, locks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import BadData, BadName, NotFound, Unavailable
from ..failpoints import failpoint
from ..names import quoted_for_log

MAX_LINKS = 40  # the kernel's own limit for symbolic links in one path
MAX_STATE = 64 * 1024 * 1024  # bytes of a file that one of our programs keeps


def parts_of(relative: str) -> tuple[str, ...]:
    """Return the components of a relative path from a peer; BadName for anything absolute, climbing, or not a file name."""
    if "\x00" in relative or len(relative) > 4096:
        raise BadName(f"invalid path {quoted_for_log(relative)}")
    parts = tuple(part for part in relative.split("/") if part not in ("", "."))
    # The system refuses names of over 255 bytes with an error that would look like a fault of the server.
    if relative.startswith("/") or ".." in parts or any(len(os.fsencode(part)) > 255 for part in parts):
        raise BadName(f"invalid path {quoted_for_log(relative)}")
    return parts


def inside(root: Path, relative: str) -> Path:
    """Return `root/relative`; BadName when `relative` is absolute or climbs. Says nothing about links: see `open_beneath`."""
    return root.joinpath(*parts_of(relative))


@contextmanager
def directory_beneath(root: Path, relative: str) -> Iterator[int]:
    """A descriptor of the directory `relative` below `root`; rules and errors as `open_beneath`."""
    fd = _walk(root, relative, follow_last=True, flags=os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def open_beneath(root: Path, relative: str, *, follow: bool = True) -> BinaryIO:
    """
    Return the regular file `relative` below `root`, open for reading.

    Each component is opened from its parent's descriptor without following links; a symbolic link is
    resolved by hand and may not lead out of `root` (`follow=False`: not even the last one is followed).
    `root` itself may be reached through links: it is the administrator's word.

    Raises:
        BadName: the path is absolute or climbs.
        NotFound: nothing there, a link out of the root, or not a regular file.
    """
    fd = _walk(root, relative, follow_last=follow, flags=os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise NotFound(f"Not a regular file: {quoted_for_log(relative)}")
        os.set_blocking(fd, True)
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def read_regular(path: Path, limit: int = MAX_STATE) -> bytes:
    """
    Return the content of a regular file, which a link may lead to. Blocks for the disk, never for a FIFO or a device.

    Raises:
        BadData: it is not a regular file, or has more than `limit` bytes.
        OSError: it cannot be read.
    """
    # Non-blocking, so that a FIFO in a file's place cannot hang the process.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise BadData("not a regular file")
    with os.fdopen(fd, "rb") as file:
        # One byte more than allowed shows that the file is too large, whatever its status says.
        content = file.read(limit + 1)
    if len(content) > limit:
        raise BadData(f"larger than {limit} bytes")
    return content


def descriptor_beneath(root: Path, relative: str, *, follow: bool = True) -> int:
    """Return a descriptor, for reading, of the regular file or directory `relative` below `root`; rules and errors as `open_beneath`."""
    fd = _walk(root, relative, follow_last=follow, flags=os.O_RDONLY | os.O_NONBLOCK)
    if not (stat.S_ISREG(os.fstat(fd).st_mode) or stat.S_ISDIR(os.fstat(fd).st_mode)):
        os.close(fd)
        raise NotFound(f"Not a regular file: {quoted_for_log(relative)}")
    return fd


def _walk(root: Path, relative: str, *, follow_last: bool, flags: int) -> int:
    """Return the descriptor of the last component of `relative`; the stack holds one descriptor a directory, so `..` cannot leave."""
    # The root itself may be a link, as a deployed environment is; only what lies below must not lead out.
    base = os.path.realpath(root)
    pending = list(reversed(parts_of(relative)))
    missing = NotFound(f"Could not find {quoted_for_log(relative)}")
    links = 0
    try:
        stack = [os.open(base, os.O_RDONLY | os.O_DIRECTORY)]
    except OSError as err:
        raise missing from err
    try:
        while pending:
            name = pending.pop()
            if name == "..":
                # Above the root there is nothing for a peer.
                if len(stack) == 1:
                    raise missing
                os.close(stack.pop())
                continue
            try:
                info = os.lstat(name, dir_fd=stack[-1])
                if stat.S_ISLNK(info.st_mode) and (pending or follow_last):
                    links += 1
                    if links > MAX_LINKS:
                        raise missing
                    target = os.readlink(name, dir_fd=stack[-1])
                    if target.startswith("/"):
                        if target != base and not target.startswith(base.rstrip("/") + "/"):
                            raise missing
                        # An absolute link is followed as if it were relative to the root.
                        target = target[len(base) :]
                        while len(stack) > 1:
                            os.close(stack.pop())
                    pending.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
                    continue
                last = not pending
                if last and not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
                    raise missing  # to open a device may already do something
                # O_NOFOLLOW closes the gap since lstat: if the entry was swapped for a link, this fails.
                fd = os.open(name, (flags if last else os.O_RDONLY | os.O_DIRECTORY) | os.O_NOFOLLOW, dir_fd=stack[-1])
            except OSError as err:
                raise missing from err
            stack.append(fd)
        if flags & os.O_DIRECTORY and not stat.S_ISDIR(os.fstat(stack[-1]).st_mode):
            raise missing
        return stack.pop()
    finally:
        for fd in stack:
            os.close(fd)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in an OSError of a descriptor, such as that of a full disk, which names no file."""
    try:
        yield
    except OSError as err:
        err.filename = str(path)
        raise


def write_atomic(
    path: Path, data: bytes, *, mode: int = 0o644, owner: tuple[int, int] | None = None, at: int | None = None, durable: bool = True
) -> None:
    """
    Put `data` at `path` whole or not at all, surviving a crash or a power loss at any moment.

    A temporary file of a random name in the same folder, private until owner and mode are set, written,
    synced and renamed; then the folder is synced. An existing link at `path` is replaced, not followed.

    Args:
        owner: (uid, gid) of the file; None: the caller's.
        at: a directory descriptor that `path` is relative to.
        durable: False: nothing is synced, for what is only a copy: a power loss may leave the file torn or empty.
    Raises:
        OSError: as the system says it; the old file is intact and the temporary one removed.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
    # Cut, because a name may have 255 bytes already; random, because another user may own the folder.
    temporary = f".{path.name[:120]}.{os.urandom(8).hex()}.tmp"
    try:
        with naming(path):
            _write_temporary(temporary, data, folder, mode=mode, owner=owner, durable=durable)
        try:
            failpoint(f"unrenamed:{path.name}")
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        if durable:
            # The rename itself is lost in a power cut unless the folder is synced.
            os.fsync(folder)
    finally:
        os.close(folder)


def write_new(folder: Path, names: Iterable[str], data: bytes, *, mode: int = 0o644, owner: tuple[int, int] | None = None) -> str:
    """
    Put `data` into a folder whole, at the first of `names` that no file has, surviving a power loss; return that name.

    A temporary file of a random name is written, synced and linked to the name, which fails where there is a file. Then the folder is
    synced.

    Args:
        owner: (uid, gid) of the file; None: the caller's.
    Raises:
        FileExistsError: There is a file of each name.
        OSError: As the system says it.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    temporary = f".{os.urandom(8).hex()}.tmp"
    try:
        _write_temporary(temporary, data, at, mode=mode, owner=owner, durable=True)
        try:
            failpoint(f"unlinked:{folder.name}")
            name = _link_to_first(temporary, names, at)
        finally:
            os.unlink(temporary, dir_fd=at)
        os.fsync(at)
        return name
    finally:
        os.close(at)


def _write_temporary(name: str, data: bytes, at: int, *, mode: int, owner: tuple[int, int] | None, durable: bool) -> None:
    """Write a file that is private until its owner and mode are set; when that fails, no file is left."""
    # 0600 first: owner and mode are set before there is any content to read.
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
    try:
        try:
            if owner is not None:
                os.fchown(fd, *owner)
            os.fchmod(fd, mode)
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(name, dir_fd=at)
        raise


def _link_to_first(source: str, names: Iterable[str], at: int) -> str:
    for name in names:
        with suppress(FileExistsError):
            # link() fails for an existing name, where rename() would replace it; NFS guarantees it, too.
            os.link(source, name, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
            return name
    raise FileExistsError(errno.EEXIST, "There is a file of each name")


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to a descriptor that blocks, however little of it the system takes at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def links_out_of(folder: Path) -> list[Path]:
    """Return the symbolic links below a folder that lead out of it, also by others; sorted. Blocks."""
    root = os.path.realpath(folder)
    links = []
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = os.path.join(place, name)  # noqa: PTH118 -- a Path for each of all files costs more than the look
            if os.path.islink(path) and not f"{os.path.realpath(path)}/".startswith(f"{root}/"):  # noqa: PTH114
                links.append(folder / os.path.relpath(path, root))
    return sorted(links)


def sweep(folder: Path, *, older_than: float = 3600.0) -> int:
    """Remove leftovers of `write_atomic` in `folder` from killed processes, when older (seconds), and return their number."""
    before = time.time() - older_than
    count = 0
    # Not found: the folder, or a file that its writer has renamed in between.
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            ours = entry.name.startswith(".") and entry.name.endswith(".tmp") and entry.is_file(follow_symlinks=False)
            if ours and entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)  # noqa: PTH108 -- the entry has its path as text
                count += 1
    return count


def append_synced(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Add `data` at the end of `path` and sync it; creates the file with `mode`. A torn last line is ended first."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, mode)
    try:
        size = os.fstat(fd).st_size
        # A crash may have torn the last line; a new line keeps the damage to that one.
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data
        with naming(path):
            write_all(fd, data)
            os.fsync(fd)
    finally:
        os.close(fd)


def open_for_appending(path: Path, *, mode: int = 0o640, owner: tuple[int, int] | None = None) -> int:
    """
    Return a descriptor that writes at the end of `path`; no link is followed, and nothing is waited for.

    A file that is made here gets `mode`. One that root makes belongs to `owner`, by default that of its folder: so that
    a program of root's does not lock the folder's owner out of a log.
    """
    # A link or FIFO that another user put in a log's place must neither be followed nor block.
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(path, flags)  # another process was faster
    owner = owner or owner_in(path.parent)
    if owner is not None:
        os.fchown(fd, *owner)
    return fd


def owner_in(folder: Path) -> tuple[int, int] | None:
    """Return the (uid, gid) that root gives to a new file in `folder`: its own, which may be a service's. None: the caller's own."""
    # Only root can give files away.
    if os.geteuid() != 0:
        return None
    try:
        info = folder.stat()
    except FileNotFoundError:
        return None
    return info.st_uid, info.st_gid


def make_directory(path: Path, *, mode: int = 0o755, inherit: bool = False) -> None:
    """
    Create `path` and its missing parents as directories, surviving a power loss; only new directories get `mode`.

    Args:
        inherit: Directories that root creates get the owner of the parent directory.
    """
    if path.exists():
        return
    missing = [path, *path.parents]
    for folder in reversed([p for p in missing if not p.exists()]):
        try:
            # Private until it has its owner, so that nobody can put anything into it before.
            folder.mkdir(mode=0o700)
            if inherit and (owner := owner_in(folder.parent)) is not None:
                os.chown(folder, *owner, follow_symlinks=False)
            folder.chmod(mode)
        except FileExistsError:
            continue
        sync_directory(folder.parent)


def sync_directory(path: Path) -> None:
    """Flush the names in a directory to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(path):
            os.fsync(fd)
    finally:
        os.close(fd)


class FileLock:
    """An advisory lock on a file, held by this process and freed by the kernel when it dies; the file names the holder's pid."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        return self._fd is not None

    def holder(self) -> str:
        """Return the holder that the lock's file names; '' when it names none."""
        try:
            return self.path.read_text("ascii", "replace").strip()[:40]
        except OSError:
            return ""

    def acquire(self, *, timeout: float = 0.0) -> None:
        """Take the lock, waiting up to `timeout` seconds; Unavailable names the holder. Blocks: call it in a thread."""
        deadline = time.monotonic() + timeout
        fd = self._opened()
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as err:
                    if err.errno not in (errno.EAGAIN, errno.EACCES):
                        raise
                    if time.monotonic() >= deadline:
                        raise Unavailable(f"{self.path} is locked by process {self.holder() or 'unknown'}") from err
                    # Polled: a blocking flock() has no time limit, and an alarm would be process-wide.
                    time.sleep(0.02)
            # Only for people and messages: the kernel's lock decides, not the number in the file.
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def _opened(self) -> int:
        """Return the lock's file. Root makes it for the owner of the folder; one that is there is never replaced, as it may be held."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(self.path, flags | os.O_EXCL, 0o640)
        except FileExistsError:
            return os.open(self.path, flags, 0o640)
        if (owner := owner_in(self.path.parent)) is not None:
            os.fchown(fd, *owner)
        return fd

    def release(self) -> None:
        """Give the lock back; the file stays."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def is_readable_by_others(path: Path) -> bool:
    """Return whether anyone but owner and group may read `path`."""
    return bool(path.stat().st_mode & stat.S_IROTH)
