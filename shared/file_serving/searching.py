"""
The metadata of a tree of local files, or of several trees merged.

Everything here blocks: call it in a thread. Used by the file server (confined to a mount's root) and for local sources.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..errors import BadRequest, Denied, NotFound, TooLarge
from ..filesystem.globs import Glob
from ..models.file_metadata import FileMetadata
from ..names import quoted_for_log
from .metadata import MetadataOptions, describe
from .trees import FileTree, UnservedName, can_be_served

SOFT_MAX_FILES: Final = 1000  # entries above which `max_files => 0` warns
MAX_DEPTH: Final = 100  # directories within one another


@dataclass(slots=True)
class MetadataListing:
    """
    The answer to a search, root first; the caller logs `warnings`.

    `unserved` are those left out because their names cannot be sent or requested: (root, path below it).
    """

    entries: list[FileMetadata] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unserved: list[tuple[str, str]] = field(default_factory=list)


def search(tree: FileTree, relative: str, options: MetadataOptions) -> MetadataListing | None:
    """
    Return the metadata of a tree: `.` first, then breadth first, names sorted within a directory; None when there is nothing.

    What cannot be read, and with links=follow a link that leads nowhere, is an error: to leave it out would make a
    purging agent remove its copy.

    Raises:
        BadRequest: more entries than `max_files`. TooLarge: more than `max_entries`. Denied, NotFound: see above.
    """
    return search_merged([(tree, relative)], options)


def search_merged(roots: Sequence[tuple[FileTree, str]], options: MetadataOptions) -> MetadataListing | None:
    """Return the trees of several roots as one: of entries with equal relative paths, that of the first root is used."""
    listing = MetadataListing()
    seen: set[str] = set()
    for tree, relative in roots:
        root = tree.lstat(relative)
        if root is None:
            continue
        count = 0
        base = str(tree.path(relative))
        unserved: list[str] = []
        for name, info in _walk(tree, relative, root, options, unserved):
            count += name != "."
            if len(seen) >= options.max_entries:
                raise TooLarge(f"The directory {quoted_for_log(base)} has more than {options.max_entries} entries")
            if name not in seen:
                seen.add(name)
                full = relative if name == "." else _joined(relative, name)
                try:
                    listing.entries.append(describe(tree, full, info, options, path=base, relative_path=name))
                except UnservedName:
                    unserved.append(name)
                except NotFound:
                    if stat.S_ISLNK(info.st_mode) and options.links == "follow" and tree.lstat(full) is not None:
                        raise
                    seen.discard(name)  # it was removed while we looked
        listing.warnings += _size_warnings(base, count, options)
        listing.unserved += [(base, name) for name in unserved]
    return listing if listing.entries else None


def names_below(tree: FileTree, relative: str, options: MetadataOptions, *, without: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """
    Return the paths that a search would find, without its root and without reading their status; and warnings.

    Args:
        without: Paths that are left out, with everything below them; they are not read.
    Raises:
        BadRequest, TooLarge: see `search`.
    """
    root = tree.lstat(relative)
    if root is None:
        return [], []
    names: list[str] = []
    base = str(tree.path(relative))
    for name, _ in _walk(tree, relative, root, options, None, frozenset(without)):
        if len(names) > options.max_entries:
            raise TooLarge(f"The directory {quoted_for_log(base)} has more than {options.max_entries} entries")
        names.append(name)
    return names[1:], _size_warnings(base, len(names) - 1, options)


def _size_warnings(base: str, count: int, options: MetadataOptions) -> list[str]:
    if 0 < options.max_files < count:
        raise BadRequest(
            f"The directory '{base}' contains {count} entries, which exceeds the limit of {options.max_files} specified by the "
            "max_files parameter for this resource. The limit may be increased, but be aware that large number of file resources can "
            "result in excessive resource consumption and degraded performance. Consider using an alternate method to manage large "
            "directory trees"
        )
    if options.max_files == 0 and count > SOFT_MAX_FILES:
        return [
            f"The directory '{base}' contains {count} entries, which exceeds the default soft limit {SOFT_MAX_FILES} and may cause "
            "excessive resource consumption and degraded performance. Set max_files to silence this, or deliver the tree otherwise."
        ]
    return []


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder not in ("", ".") else name


def _walk(
    tree: FileTree,
    relative: str,
    root: os.stat_result,
    options: MetadataOptions,
    unserved: list[str] | None,
    without: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, os.stat_result]]:
    """
    Yield (path below `relative`, lstat) of the root and all paths below it, in the order of a listing.

    Args:
        unserved: Receives the paths that no request can name, which are left out; None: leave out none.
        without: Paths that are not read.
    """
    yield ".", root
    if not options.recurse or (stat.S_ISLNK(root.st_mode) and options.links == "manage"):
        return
    ignored = [Glob(pattern) for pattern in options.ignore]
    deepest = MAX_DEPTH if options.recurselimit is None else min(MAX_DEPTH, options.recurselimit)
    folders: deque[tuple[str, int, frozenset[tuple[int, int]]]] = deque([("", 1, frozenset())])
    while folders:
        folder, depth, above = folders.popleft()
        if depth > deepest:
            if options.recurselimit is None:
                raise TooLarge(f"The directory {quoted_for_log(str(tree.path(relative)))} is more than {MAX_DEPTH} levels deep")
            continue
        try:
            fd = tree.open(_joined(relative, folder) if folder else relative, follow=not folder or options.links == "follow")
        except NotFound:
            if not folder:
                return
            continue  # removed, or another thing by now
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
            if stat.S_ISDIR(info.st_mode) or (stat.S_ISLNK(info.st_mode) and options.links == "follow"):
                folders.append((path, depth + 1, inside))


def _child(fd: int, name: str, ignored: Sequence[Glob]) -> os.stat_result | None:
    if any(glob.matches(name) for glob in ignored):
        return None
    try:
        return os.lstat(name, dir_fd=fd)
    except OSError as err:
        if err.errno == errno.ENOENT:
            return None
        raise Denied(f"Not allowed to look at {quoted_for_log(name)}") from err
