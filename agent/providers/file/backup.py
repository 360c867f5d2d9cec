"""Backups of files before they are replaced or removed: in a filebucket, or in the same folder under a longer name."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator

from shared.errors import PuppetError, ResourceError
from shared.filesystem.checksums import BLOCK
from shared.ral import Ref
from shared.types.file import File
from shared.types.filebucket import Filebucket

from ...servers.dipper import Dipper
from .inheritance import SET_IDS
from .path_entries import PathEntry, file_type, open_entry, open_entry_in_thread
from .replacement import Replacement, Rights

Buckets = Callable[[Filebucket | None], Dipper]  # None: the bucket `puppet`, when the catalog does not declare it


def bucket_of(resource: File) -> Filebucket | None:
    """Return the filebucket that `backup` names; None for `puppet` when the catalog has none. ResourceError: there is no such bucket."""
    bucket = resource.find(Ref("filebucket", resource.backup))
    if isinstance(bucket, Filebucket):
        return bucket
    if resource.backup != "puppet":
        raise ResourceError(f"Could not find filebucket {resource.backup} specified in backup")
    return None


def uses_bucket(resource: File) -> bool:
    """Return whether backups go to a filebucket and not to the folder of the file."""
    return bool(resource.backup) and not resource.backup.startswith(".")


async def back_up(resource: File, buckets: Buckets, log_run: Callable[[str, str], None]) -> None:
    """
    Back up the file, link or directory at the resource's path, if `backup` is set.

    Args:
        log_run: called with (level, message) for lines that are not the resource's own.
    Raises:
        ResourceError: the backup failed; then nothing may be replaced.
    """
    if not resource.backup:
        return
    async with open_entry_in_thread(resource.path) as entry:
        info = await asyncio.to_thread(entry.lstat)
        if info is None:
            return
        kind = file_type(info)
        if kind not in ("file", "link") and not (kind == "directory" and resource.force):
            resource.log("warning", f"Could not back up file of type {kind}")
            return
        if entry.foreign_hard_link(info):
            resource.log("warning", "Not backing up a hard link to another user's file")
            return
        try:
            if uses_bucket(resource):
                await _back_up_to_bucket(resource, entry, kind, buckets, log_run)
            else:
                await asyncio.to_thread(_copy_beside, resource, entry, info)
        except OSError as err:
            text = f"Could not back up {resource.path}" if uses_bucket(resource) else f"Could not back {resource.path} up"
            raise ResourceError(f"{text}: {err.strerror}") from err
        except PuppetError as err:
            raise ResourceError(f"Could not back up {resource.path}: {err.message}" if uses_bucket(resource) else err.message) from err


async def _back_up_to_bucket(resource: File, entry: PathEntry, kind: str, buckets: Buckets, log_run: Callable[[str, str], None]) -> None:
    bucket = bucket_of(resource)
    dipper = buckets(bucket)
    name = bucket.name if bucket else "puppet"
    if kind == "directory":
        if resource.recurses:
            return
        resource.log("info", "Recursively backing up to filebucket")
        files = await asyncio.to_thread(lambda: list(_files_below(resource.path)))
    else:
        files = [resource.path] if kind == "file" else []
    for path in files:
        async with open_entry_in_thread(path) as file:
            fd = await asyncio.to_thread(file.open)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    continue
                log_run("info", f"Computing checksum on file {path}")
                value = await dipper.keep(fd, path)
            finally:
                os.close(fd)
        resource.log("info", f"Filebucketed {path} to {name} with sum {value}")


def _files_below(path: str) -> Iterator[str]:
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            full = f"{folder}/{name}"
            if stat.S_ISREG(os.lstat(full).st_mode):
                yield full


def _copy_beside(resource: File, entry: PathEntry, info: os.stat_result) -> None:
    backup_path = entry.path + resource.backup
    with open_entry(backup_path) as old:
        old_info = old.lstat()
        if old_info is not None:
            if stat.S_ISDIR(old_info.st_mode):
                raise ResourceError(f"Will not remove directory backup {backup_path}; use a filebucket")
            resource.log("info", f"Removing old backup of type {file_type(old_info)}")
            os.unlink(old.name, dir_fd=old.folder)
    _copy(entry, info, backup_path)


def _copy(entry: PathEntry, info: os.stat_result, target: str) -> None:
    """Copy a file or tree with owner, mode without set-id bits, and times; links are copied as links, special files are left out."""
    if stat.S_ISLNK(info.st_mode):
        with open_entry(target) as new:
            os.symlink(entry.readlink(), new.name, dir_fd=new.folder)
    elif stat.S_ISREG(info.st_mode):
        _copy_file(entry, info, target)
    elif stat.S_ISDIR(info.st_mode):
        with open_entry(target) as new:
            os.mkdir(new.name, 0o700, dir_fd=new.folder)
            source = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.folder)
            try:
                for name in sorted(os.listdir(source)):  # noqa: PTH208  # by descriptor
                    child = PathEntry(source, name, f"{entry.path}/{name}")
                    child_info = child.lstat()
                    if child_info is not None:
                        _copy(child, child_info, f"{target}/{name}")
            finally:
                os.close(source)
            directory = os.open(new.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=new.folder)
            try:
                if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(directory, info.st_uid, info.st_gid)
                os.fchmod(directory, stat.S_IMODE(info.st_mode))
                os.utime(directory, ns=(info.st_atime_ns, info.st_mtime_ns))
            finally:
                os.close(directory)


def _copy_file(entry: PathEntry, info: os.stat_result, target: str) -> None:
    own = (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid())
    rights = Rights(-1 if own else info.st_uid, -1 if own else info.st_gid, stat.S_IMODE(info.st_mode) & ~SET_IDS)
    fd = entry.open()
    try:
        with Replacement(target, rights, "none") as new:
            offset = 0
            while block := os.pread(fd, BLOCK, offset):
                new.write(block)
                offset += len(block)
            os.utime(new.descriptor, ns=(info.st_atime_ns, info.st_mtime_ns))
            new.commit()
    finally:
        os.close(fd)
