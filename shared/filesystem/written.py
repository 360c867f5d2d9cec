"""The files that still have the content last written to them, so that it is not written again."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from stat import S_IMODE, S_ISREG

from .identity import Identity, identity

SETTLED = 1.0  # seconds; file systems that count time in larger steps than this are not told from those that do not
MOST = 20_000  # files that are remembered


@dataclass(slots=True)
class _Written:
    """
    A file as it was last seen with its content.

    `seen` is when that was first so. A change in the same tick of the file system's clock may leave no trace in `identity`: only what
    was read again later, when `is_settled`, can be known by it.
    """

    digest: bytes
    identity: Identity
    seen: float
    is_settled: bool = False


class WrittenFiles:
    """
    The files of one writer by their path, the last used ones.

    Args:
        clock: Seconds, as of time.monotonic.
    """

    def __init__(self, *, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.clock = clock
        self._files: OrderedDict[str, _Written] = OrderedDict()

    def holds(self, path: Path | str, digest: bytes) -> bool:
        """
        Return whether a file is unchanged since it had the content with this digest; reads its status, but not the file.

        A file that another program changed, replaced or removed is not unchanged.
        """
        name = str(path)
        written = self._files.get(name)
        return written is not None and written.is_settled and written.digest == digest and written.identity == _identity_at(name)

    def last(self, path: Path) -> bytes | None:
        """
        Return the digest of the content last written to a file, or read from it, whatever its present content; None when it is unknown.
        """
        written = self._files.get(str(path))
        return None if written is None else written.digest

    def note(self, path: Path, digest: bytes) -> None:
        """Remember that a file has the content with this digest: it was just read, or written. Blocks."""
        name, now = str(path), self.clock()
        identity = _identity_at(name)
        if identity is None:
            self._files.pop(name, None)
            return
        before = self._files.get(name)
        if before is not None and before.digest == digest and before.identity == identity:
            # Within one step of the file system's clock a second write would leave the same times.
            before.is_settled = before.is_settled or now - before.seen >= SETTLED
        else:
            self._files[name] = _Written(digest, identity, now)
        self._files.move_to_end(name)
        while len(self._files) > self.most:
            self._files.popitem(last=False)


def _identity_at(path: str) -> Identity | None:
    """Return the part of a file's status that changes with its content, owner or mode; None for a path that is not a file."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    if not S_ISREG(info.st_mode):
        return None
    return identity(info)


def has_content(path: Path, content: bytes, *, mode: int, owner: tuple[int, int] | None) -> bool:
    """Return whether a path is a file with this content, mode and (uid, gid), no link to one. Blocks."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        # The size is compared first, so that a different file is hardly ever read.
        is_same = S_ISREG(info.st_mode) and S_IMODE(info.st_mode) == mode and info.st_size == len(content)
        return is_same and owner in (None, (info.st_uid, info.st_gid)) and file.read(len(content) + 1) == content
