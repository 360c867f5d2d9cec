"""
Detect without reading it that a file has changed, and when its content must be compared instead.

Each change of a file sets its change time (ctime), which no program can restore as it can the time of modification: while its
status is the same, its content is. Two kinds of files are excepted. One was changed a moment ago: the clock of a file system ticks
slowly, and the next change may get the same time. The other is on a file system that is not known to keep that time: on networks and
in FUSE another system changes files and tells of it late or never, images (squashfs, ISO 9660) have the times with which they were
built, and FAT has no change time.

Source: statfs(2) and linux/magic.h for the numbers of file systems, inode(7) on ctime, nfs(5) on attribute caching.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Identity = tuple[Any, ...]
"""The values that differ when a file does; the first member is its mode."""
Stamp = Identity | None
"""The identity of a file; None where there is none."""

RECENT = 2 * 10**9
"""Nanoseconds; more than any file system lets pass between two times that it tells apart."""
_LENGTH = 6  # of an identity
_STATFS_SIZE = 512
_KEEP_CHANGE_TIMES = frozenset(
    {
        0x0000EF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # Btrfs
        0xF2F52010,  # F2FS
        0x2FC12FC1,  # ZFS
        0xCA451A4E,  # bcachefs
        0x01021994,  # tmpfs
        0x794C7630,  # overlayfs, which passes on those of its layers
    }
)


def identity(status: os.stat_result) -> Identity:
    """Return the identity of a file of this status."""
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def identity_of(path: str | Path) -> Stamp:
    """Return the identity of the file at a path; None when its status cannot be read."""
    try:
        return identity(os.stat(path))  # noqa: PTH116 -- a Path for each of thousands of files costs more than the call
    except (OSError, ValueError):
        return None


def lasting_identity(path: str | Path, status: os.stat_result, *, recent: int = RECENT) -> Identity:
    """
    Return the identity of a file if it differs after each change from now on; otherwise one that is equal to no other.

    Args:
        status: That of the file, taken before its content is read.
        recent: Nanoseconds for which two changes may have the same time.
    """
    if status.st_ctime_ns < time.time_ns() - recent and _keeps_change_times(path):
        return identity(status)
    # An object equals nothing else, so that a too recent file always compares as changed.
    return *identity(status), object()


def lasting_identity_of(path: str | Path, *, recent: int = RECENT) -> Stamp:
    """Return the lasting identity of the file at a path; None when its status cannot be read."""
    try:
        return lasting_identity(path, os.stat(path), recent=recent)  # noqa: PTH116 -- as above
    except (OSError, ValueError):
        return None


def changed_at(own: Identity) -> int:
    """Return when a file of this identity was changed, in nanoseconds since 1970."""
    return int(own[5])


def is_lasting(own: Stamp) -> bool:
    """Return whether an identity is one that differs after each change."""
    return own is None or len(own) == _LENGTH


def stamp_of(path: Path) -> Stamp:
    """
    Return a stamp that differs when the file at a path does; None when there is none. Blocks; OSError.

    Where its identity does not last, it has a digest of its content, too.
    """
    try:
        status = path.stat()
        own = lasting_identity(path, status)
        if is_lasting(own) or not stat.S_ISREG(status.st_mode):
            return own
        with path.open("rb") as file:
            return *identity(status), hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        return None


def digest_of(path: Path) -> bytes | None:
    """Return a digest of the content of a small file that is checked from time to time; None when it cannot be read. Blocks."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return None


def _keeps_change_times(path: str | Path) -> bool:
    """Return whether a file is on a file system that sets the change time at each change of a file."""
    answer = bytearray(_STATFS_SIZE)
    statfs, buffer = _statfs()
    if statfs(os.fsencode(path), buffer.from_buffer(answer)) != 0:
        return False
    # f_type is a long, sign-extended on some systems.
    return int.from_bytes(answer[: struct.calcsize("L")], sys.byteorder) & 0xFFFFFFFF in _KEEP_CHANGE_TIMES


@cache
def _statfs() -> tuple[Callable[[bytes, object], int], Any]:
    """Return the system's call, and the type of its result, which begins with the kind of the file system nearly everywhere."""
    import ctypes  # only for those who look at files

    return ctypes.CDLL(None).statfs, ctypes.c_char * _STATFS_SIZE
