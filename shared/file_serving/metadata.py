"""The metadata of one local file. Everything here blocks: call it in a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from ..errors import BadRequest, NotFound, PuppetError, TooLarge
from ..filesystem import checksums
from ..filesystem.checksums import Algorithm
from ..indirector.core import Request
from ..models.file_metadata import FileMetadata, FileType, Links, MetadataChecksum, Permissions
from ..names import quoted_for_log
from .trees import FileTree, UnservedName, is_utf8

MAX_IGNORES: Final = 200  # patterns of one request
MAX_PATTERN: Final = 1024  # characters of a pattern

_TYPES: Final[dict[int, FileType]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}
_DEVICES: Final = {stat.S_IFCHR: "characterSpecial", stat.S_IFBLK: "blockSpecial"}


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """
    The options of a request for metadata.

    Attributes:
        recurselimit: Depth of a search; None: all. 1: the children of the root.
        max_files: Entries of a search: -1 any number, 0 warns above 1000, more is a hard limit.
        max_entries: The most entries of a search, whatever the request asks for.
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
    def of(cls, request: Request[Any], *, checksum_type: Algorithm, source_permissions: Permissions = "ignore") -> MetadataOptions:
        """
        Read a request's options; the arguments are the values of options that it does not have.

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
        raise BadRequest(f"Invalid :{name} value {quoted_for_log(value)}", hint=f"Known values: {', '.join(known)}")
    return value


def metadata_of(tree: FileTree, relative: str, options: MetadataOptions) -> FileMetadata | None:
    """
    Return the metadata of one file; None when there is nothing, or with links=follow nothing behind the link.

    Raises:
        Denied: it cannot be read. BadRequest: a device. TooLarge: see MetadataOptions.
    """
    info = tree.lstat(relative)
    if info is None:
        return None
    path = str(tree.path(relative))
    try:
        return describe(tree, relative, info, options, path=path, relative_path=None)
    except NotFound:
        return None


def describe(
    tree: FileTree, relative: str, info: os.stat_result, options: MetadataOptions, *, path: str, relative_path: str | None
) -> FileMetadata:
    """
    Return the metadata of a file whose `lstat` is `info`; the caller has found it below `relative`.

    Args:
        path: The path that the metadata names. relative_path: The path below it, of an entry of a listing.
    """
    fd = -1
    destination = None
    total: MetadataChecksum
    try:
        if stat.S_ISLNK(info.st_mode) and options.links == "follow":
            fd = tree.open(relative, follow=True)
            info = os.fstat(fd)
        kind = _type(info, relative)
        if kind == "link":
            destination = tree.readlink(relative)
            if not is_utf8(destination):
                raise UnservedName(f"A link to a name that is not UTF-8 cannot be served: {quoted_for_log(relative)}")
            total = MetadataChecksum(type=options.checksum_type, value=_target_checksum(tree, relative, options))
        elif kind == "file":
            if fd < 0 and options.checksum_type != "none":
                fd = tree.open(relative, follow=False)
                info = os.fstat(fd)  # of what will be summed, whatever stood there before
                kind = _type(info, relative)
            total = MetadataChecksum(type=options.checksum_type, value=_checksum(fd, info, options, tree.confined))
        elif kind == "directory":
            total = MetadataChecksum(type="ctime", value=f"{{ctime}}{checksums.time_text(info.st_ctime)}")
        else:
            total = MetadataChecksum(type="none", value="{none}")
    finally:
        if fd >= 0:
            os.close(fd)
    ignore = options.source_permissions == "ignore"
    return FileMetadata(
        name=path,
        path=path,
        relative_path=relative_path,
        links=options.links,
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
    raise BadRequest(f"Cannot manage files of type {_DEVICES.get(kind, 'unknown')}: {quoted_for_log(relative)}")


def _checksum(fd: int, info: os.stat_result, options: MetadataOptions, confined: bool) -> str:
    is_digest = checksums.is_digest(options.checksum_type)
    if options.max_size is not None and is_digest and info.st_size > options.max_size:
        raise TooLarge(f"A file of {info.st_size} bytes is too large to be summed", hint=f"The limit is {options.max_size} bytes.")
    value = "" if fd < 0 else checksums.of_file(options.checksum_type, fd, limit=info.st_size if confined else None)
    return f"{{{options.checksum_type}}}{value}"


def _target_checksum(tree: FileTree, relative: str, options: MetadataOptions) -> str | None:
    """Return the sum of the regular file that a managed link leads to; None for anything else, above all for a file outside of the tree."""
    try:
        fd = tree.open(relative, follow=True)
    except PuppetError:
        return None
    try:
        info = os.fstat(fd)
        return _checksum(fd, info, options, tree.confined) if stat.S_ISREG(info.st_mode) else None
    except (PuppetError, OSError):
        return None
    finally:
        os.close(fd)
