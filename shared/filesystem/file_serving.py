"""
What is known of local files, and their bytes: one, a tree, or several trees merged.

Everything here blocks: call it in a thread. Used by the file server (confined to a mount's root) and for local sources.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

from ..errors import BadRequest, Denied, NotFound, PeerUnreachable, PuppetError, TooLarge
from ..indirector.core import Request
from ..models.file_metadata import FileMetadata, FileType, Links, MetadataChecksum, Permissions
from ..names import shown
from . import checksums
from .checksums import Algorithm
from .files import descriptor_beneath, directory_beneath, parts_of
from .globs import Glob

SOFT_MAX_FILES: Final = 1000  # entries above which `max_files => 0` warns
MAX_IGNORES: Final = 200  # patterns of one request
MAX_PATTERN: Final = 1024  # characters of a pattern
MAX_PATH: Final = 4000  # characters of a path below a root; a model of metadata takes no more than 4096
MAX_DEPTH: Final = 100  # directories within one another
CHUNK: Final = 240 * 1024  # bytes read at once; less than what memory.py calls large, or each comes from the system

_TYPES: Final[dict[int, FileType]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}
_DEVICES: Final = {stat.S_IFCHR: "characterSpecial", stat.S_IFBLK: "blockSpecial"}


class UnservedName(BadRequest):
    """A name that no document can hold, or no request ask for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    How metadata is asked for.

    Attributes:
        recurselimit: Depth of a search; None: all. 1: the children of the root.
        max_files: Entries of a search: -1 any number, 0 warns above 1000, more is a hard limit.
        max_entries: Entries of a search that are never passed, whatever was asked.
        max_size: Bytes of a file that is summed; None: any.
    """

    links: Links = "manage"
    checksum_type: Algorithm = "sha256"
    source_permissions: Permissions = "ignore"
    recurse: bool = False
    recurselimit: int | None = None
    max_files: int = 0
    ignore: tuple[str, ...] = ()
    max_entries: int = 200_000
    max_size: int | None = None

    @classmethod
    def of(cls, request: Request[Any], *, checksum_type: Algorithm, source_permissions: Permissions = "ignore") -> Wanted:
        """
        What a request's options say; the arguments are what holds when they say nothing.

        Raises:
            BadRequest: names the option whose value is not one of those known.
        """
        ignore = tuple(pattern for pattern in request.many("ignore") if pattern)
        if len(ignore) > MAX_IGNORES or any(len(pattern) > MAX_PATTERN for pattern in ignore):
            raise BadRequest(f"Too much to ignore: at most {MAX_IGNORES} patterns of {MAX_PATTERN} characters")
        limit = request.option("recurselimit")
        return cls(
            links=_one_of("links", request.option("links", "manage"), get_args(Links)),
            checksum_type=checksums.algorithm(request.option("checksum_type", checksum_type)),
            source_permissions=_one_of(
                "source_permissions", request.option("source_permissions", source_permissions), get_args(Permissions)
            ),
            recurse=request.flag("recurse"),
            recurselimit=None if limit in ("", "infinite", "inf") else request.number("recurselimit"),
            max_files=request.number("max_files", least=-1) or 0,
            ignore=ignore,
        )


def _one_of(name: str, value: str, known: Sequence[Any]) -> Any:
    if value not in known:
        raise BadRequest(f"Invalid :{name} value {shown(value)}", hint=f"Known values: {', '.join(known)}")
    return value


@dataclass(frozen=True, slots=True)
class Tree:
    """
    A place with files.

    Confined: paths and links lead nowhere but below `root`, each step is taken from an open directory, so nothing swapped
    meanwhile leads out, and no more of a file is looked at than its size when it was opened. Not confined: an
    administrator's local path, with links as the system follows them.
    """

    root: Path
    confined: bool = True

    def open(self, relative: str, *, follow: bool) -> int:
        """A descriptor, for reading, of a regular file or directory; never blocks. NotFound, Denied or BadRequest say why not."""
        try:
            if not self.confined:
                return self._open_plainly(relative, follow)
            return descriptor_beneath(self.root, relative, follow=follow)
        except NotFound as err:
            if isinstance(err.__cause__, PermissionError):
                raise Denied(f"Not allowed to read {shown(relative)}") from err
            raise
        except PermissionError as err:
            raise Denied(f"Not allowed to read {shown(relative)}") from err
        except OSError as err:
            raise NotFound(f"Could not find {shown(relative)}") from err

    def _open_plainly(self, relative: str, follow: bool) -> int:
        path = self.path(relative)
        info = path.stat() if follow else path.lstat()
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            raise NotFound(f"Not a regular file: {shown(str(path))}")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))

    def lstat(self, relative: str) -> os.stat_result | None:
        """What the last component is, without following it; None when there is nothing."""
        parts = parts_of(relative) if self.confined else tuple(relative.split("/"))
        try:
            if not self.confined or not parts:
                return self.path(relative).lstat() if parts else self.root.stat()
            with directory_beneath(self.root, "/".join(parts[:-1])) as fd:
                return os.lstat(parts[-1], dir_fd=fd)
        except (NotFound, OSError):
            return None

    def readlink(self, relative: str) -> str:
        """The text of a link; NotFound when it is none."""
        try:
            if not self.confined:
                return os.readlink(self.path(relative))  # noqa: PTH115  # the text, not a Path
            parts = parts_of(relative)
            with directory_beneath(self.root, "/".join(parts[:-1])) as fd:
                return os.readlink(parts[-1], dir_fd=fd)
        except OSError as err:
            raise NotFound(f"Not a link: {shown(relative)}") from err

    def path(self, relative: str) -> Path:
        return self.root / relative if relative not in ("", ".") else self.root


@dataclass(slots=True)
class Listing:
    """
    The answer to a search, root first; `warnings` are to be logged.

    `unserved` are those left out because no peer can be told of them or ask for them: (root, path below it).
    """

    entries: list[FileMetadata] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unserved: list[tuple[str, str]] = field(default_factory=list)


def local(path: Path) -> tuple[Tree, str]:
    """A local absolute path as a tree that is not confined, and the path below it."""
    return Tree(path, confined=False), ""


def metadata(tree: Tree, relative: str, wanted: Wanted) -> FileMetadata | None:
    """
    What is known of one file; None when there is nothing, or with links=follow nothing behind the link.

    Raises:
        Denied: it cannot be read. BadRequest: a device. TooLarge: see Wanted.
    """
    info = tree.lstat(relative)
    if info is None:
        return None
    path = str(tree.path(relative))
    try:
        return _described(tree, relative, info, wanted, path=path, relative_path=None)
    except NotFound:
        return None


def _described(tree: Tree, relative: str, info: os.stat_result, wanted: Wanted, *, path: str, relative_path: str | None) -> FileMetadata:
    fd = -1
    destination = None
    total: MetadataChecksum
    try:
        if stat.S_ISLNK(info.st_mode) and wanted.links == "follow":
            fd = tree.open(relative, follow=True)
            info = os.fstat(fd)
        kind = _type(info, relative)
        if kind == "link":
            destination = tree.readlink(relative)
            if not _is_text(destination):
                raise UnservedName(f"A link to a name that is not UTF-8 cannot be served: {shown(relative)}")
            total = MetadataChecksum(type=wanted.checksum_type, value=_behind(tree, relative, wanted))
        elif kind == "file":
            if fd < 0 and wanted.checksum_type != "none":
                fd = tree.open(relative, follow=False)
                info = os.fstat(fd)  # of what will be summed, whatever stood there before
                kind = _type(info, relative)
            total = MetadataChecksum(type=wanted.checksum_type, value=_summed(fd, info, wanted, tree.confined))
        elif kind == "directory":
            total = MetadataChecksum(type="ctime", value=f"{{ctime}}{checksums.time_text(info.st_ctime)}")
        else:
            total = MetadataChecksum(type="none", value="{none}")
    finally:
        if fd >= 0:
            os.close(fd)
    ignore = wanted.source_permissions == "ignore"
    return FileMetadata(
        name=path,
        path=path,
        relative_path=relative_path,
        links=wanted.links,
        owner=os.geteuid() if ignore else info.st_uid,
        group=os.getegid() if ignore else info.st_gid,
        mode=0o644 if ignore else stat.S_IMODE(info.st_mode),
        checksum=total,
        type=kind,
        destination=destination,
    )


def _type(info: os.stat_result, relative: str) -> FileType:
    kind = stat.S_IFMT(info.st_mode)
    if kind in _TYPES:
        return _TYPES[kind]
    raise BadRequest(f"Cannot manage files of type {_DEVICES.get(kind, 'unknown')}: {shown(relative)}")


def _summed(fd: int, info: os.stat_result, wanted: Wanted, confined: bool) -> str:
    whole = checksums.is_digest(wanted.checksum_type)
    if wanted.max_size is not None and whole and info.st_size > wanted.max_size:
        raise TooLarge(f"A file of {info.st_size} bytes is too large to be summed", hint=f"The limit is {wanted.max_size} bytes.")
    value = "" if fd < 0 else checksums.of_file(wanted.checksum_type, fd, limit=info.st_size if confined else None)
    return f"{{{wanted.checksum_type}}}{value}"


def _behind(tree: Tree, relative: str, wanted: Wanted) -> str | None:
    """The sum of the regular file that a managed link leads to; None for anything else, above all what lies outside of the tree."""
    try:
        fd = tree.open(relative, follow=True)
    except PuppetError:
        return None
    try:
        info = os.fstat(fd)
        return _summed(fd, info, wanted, tree.confined) if stat.S_ISREG(info.st_mode) else None
    except (PuppetError, OSError):
        return None
    finally:
        os.close(fd)


def search(tree: Tree, relative: str, wanted: Wanted) -> Listing | None:
    """
    The metadata of a tree: `.` first, then breadth first, names sorted within a directory; None when there is nothing.

    What cannot be read, and with links=follow a link that leads nowhere, is an error: to leave it out would make a
    purging agent remove its copy.

    Raises:
        BadRequest: more entries than `max_files`. TooLarge: more than `max_entries`. Denied, NotFound: see above.
    """
    return search_merged([(tree, relative)], wanted)


def search_merged(roots: Sequence[tuple[Tree, str]], wanted: Wanted) -> Listing | None:
    """The trees of several roots as one: of entries with equal relative paths, the one of the first root is kept."""
    listing = Listing()
    seen: set[str] = set()
    for tree, relative in roots:
        found = tree.lstat(relative)
        if found is None:
            continue
        count = 0
        base = str(tree.path(relative))
        unserved: list[str] = []
        for name, info in _walked(tree, relative, found, wanted, unserved):
            count += name != "."
            if len(seen) >= wanted.max_entries:
                raise TooLarge(f"The directory {shown(base)} has more than {wanted.max_entries} entries")
            if name not in seen:
                seen.add(name)
                full = relative if name == "." else _joined(relative, name)
                try:
                    listing.entries.append(_described(tree, full, info, wanted, path=base, relative_path=name))
                except UnservedName:
                    unserved.append(name)
                except NotFound:
                    if stat.S_ISLNK(info.st_mode) and wanted.links == "follow" and tree.lstat(full) is not None:
                        raise
                    seen.discard(name)  # it went away while we looked
        listing.warnings += _counted(base, count, wanted)
        listing.unserved += [(base, name) for name in unserved]
    return listing if listing.entries else None


def names_below(tree: Tree, relative: str, wanted: Wanted, *, without: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """
    The paths of what a search would find, without its root and without looking at what it is; and warnings.

    Args:
        without: Paths that are left out, with all that is below them; not even looked at.
    Raises:
        BadRequest, TooLarge: see `search`.
    """
    found = tree.lstat(relative)
    if found is None:
        return [], []
    names: list[str] = []
    base = str(tree.path(relative))
    for name, _ in _walked(tree, relative, found, wanted, None, frozenset(without)):
        if len(names) > wanted.max_entries:
            raise TooLarge(f"The directory {shown(base)} has more than {wanted.max_entries} entries")
        names.append(name)
    return names[1:], _counted(base, len(names) - 1, wanted)


def _counted(base: str, count: int, wanted: Wanted) -> list[str]:
    if 0 < wanted.max_files < count:
        raise BadRequest(
            f"The directory '{base}' contains {count} entries, which exceeds the limit of {wanted.max_files} specified by the "
            "max_files parameter for this resource. The limit may be increased, but be aware that large number of file resources can "
            "result in excessive resource consumption and degraded performance. Consider using an alternate method to manage large "
            "directory trees"
        )
    if wanted.max_files == 0 and count > SOFT_MAX_FILES:
        return [
            f"The directory '{base}' contains {count} entries, which exceeds the default soft limit {SOFT_MAX_FILES} and may cause "
            "excessive resource consumption and degraded performance. Set max_files to silence this, or deliver the tree otherwise."
        ]
    return []


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder not in ("", ".") else name


def _walked(
    tree: Tree, relative: str, root: os.stat_result, wanted: Wanted, unserved: list[str] | None, without: frozenset[str] = frozenset()
) -> Iterator[tuple[str, os.stat_result]]:
    """
    (path below `relative`, lstat) of the root and what is below it, in the order of a listing.

    Args:
        unserved: Takes the paths that no request can ask for, which are left out then; None: nothing is.
        without: Paths that are not looked at.
    """
    yield ".", root
    if not wanted.recurse or (stat.S_ISLNK(root.st_mode) and wanted.links == "manage"):
        return
    ignored = [Glob(pattern) for pattern in wanted.ignore]
    deepest = MAX_DEPTH if wanted.recurselimit is None else min(MAX_DEPTH, wanted.recurselimit)
    folders: deque[tuple[str, int, frozenset[tuple[int, int]]]] = deque([("", 1, frozenset())])
    while folders:
        folder, depth, above = folders.popleft()
        if depth > deepest:
            if wanted.recurselimit is None:
                raise TooLarge(f"The directory {shown(str(tree.path(relative)))} is more than {MAX_DEPTH} levels deep")
            continue
        try:
            fd = tree.open(_joined(relative, folder) if folder else relative, follow=not folder or wanted.links == "follow")
        except NotFound:
            if not folder:
                return
            continue  # gone, or another thing by now
        try:
            own = os.fstat(fd)
            if not stat.S_ISDIR(own.st_mode) or (own.st_dev, own.st_ino) in above:
                continue
            names = [name for name in sorted(os.listdir(fd)) if not without or _joined(folder, name) not in without]  # noqa: PTH208
            children = [(name, info) for name in names if (info := _child(fd, name, ignored))]
        finally:
            os.close(fd)
        inside = above | {(own.st_dev, own.st_ino)}
        for name, info in children:
            path = _joined(folder, name)
            if unserved is not None and not can_be_served(path):
                unserved.append(path)
                continue
            yield path, info
            if stat.S_ISDIR(info.st_mode) or (stat.S_ISLNK(info.st_mode) and wanted.links == "follow"):
                folders.append((path, depth + 1, inside))


def _child(fd: int, name: str, ignored: Sequence[Glob]) -> os.stat_result | None:
    if any(glob.matches(name) for glob in ignored):
        return None
    try:
        return os.lstat(name, dir_fd=fd)
    except OSError as err:
        if err.errno == errno.ENOENT:
            return None
        raise Denied(f"Not allowed to look at {shown(name)}") from err


def can_be_served(path: str) -> bool:
    """Whether a relative path can be a key of a request: UTF-8 without control characters, and not too long."""
    return len(path) <= MAX_PATH and not any(ord(c) < 32 or ord(c) == 127 for c in path) and _is_text(path)


def _is_text(name: str) -> bool:
    """Whether a name that the system gave is UTF-8; octets that are not stand in it as lone surrogates."""
    try:
        return name.isascii() or bool(name.encode())
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class Content:
    """
    A file's bytes; close it. `file` is None for a directory.

    `size` is what will be announced and exactly what `blocks` gives; None: all there is (only of a tree that is not confined).
    """

    file: BinaryIO | None
    size: int | None

    def blocks(self, size: int = CHUNK) -> Iterator[bytes]:
        """The content in pieces, from the start; PeerUnreachable when the file was cut meanwhile, so that the transfer is broken off."""
        if self.file is None:
            return
        offset = 0
        while self.size is None or offset < self.size:
            block = os.pread(self.file.fileno(), size if self.size is None else min(size, self.size - offset), offset)
            if not block:
                if self.size is None:
                    return
                raise PeerUnreachable(f"The file was cut while it was read: {offset} of {self.size} bytes")
            offset += len(block)
            yield block

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """As `blocks`, read in threads; closes the file at the end."""
        try:
            blocks = self.blocks()
            while (block := await asyncio.to_thread(next, blocks, None)) is not None:
                yield block
        finally:
            self.close()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def content(tree: Tree, relative: str) -> Content:
    """
    The bytes of a regular file, links followed; of a directory: none.

    A file without a size but with bytes (as below /proc) has no content in a confined tree; locally it is read whole.

    Raises:
        NotFound: nothing there, a link out of the tree, or a special file. Denied: not readable.
    """
    fd = tree.open(relative, follow=True)
    info = os.fstat(fd)
    if stat.S_ISDIR(info.st_mode):
        os.close(fd)
        return Content(None, 0)
    os.set_blocking(fd, True)
    file = os.fdopen(fd, "rb")
    return Content(file, info.st_size if tree.confined else None)


def without_recursion(wanted: Wanted) -> Wanted:
    """The same question about the root only."""
    return replace(wanted, recurse=False)
