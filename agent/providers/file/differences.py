"""The difference between a file and its desired state, for the log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from shared.filesystem.textdiff import Differ
from shared.types.file import File

from .path_entries import open_entry

MAX_INPUT = 8 * 1024 * 1024  # bytes of a file that is compared line by line

TOO_LARGE = f"[diff not shown: more than {MAX_INPUT} bytes]"


def too_large(path: str) -> bool:
    """Return whether a file is too large to be compared, so that its new content need not be fetched for that. Blocking."""
    try:
        return Path(path).stat().st_size > MAX_INPUT
    except OSError:
        return False


class SpooledContent:
    """A content in memory, not on disk: bytes up to MAX_INPUT, `complete` only if that was all."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("wanted", os.MFD_CLOEXEC)
        self.size = 0
        self.complete = True

    async def take(self, blocks: AsyncIterator[bytes]) -> None:
        """Store the blocks that `blocks` yields, up to MAX_INPUT."""
        async for block in blocks:
            if self.size + len(block) > MAX_INPUT:
                self.complete = False
                return
            await asyncio.to_thread(os.write, self.fd, block)
            self.size += len(block)

    async def blocks(self) -> AsyncIterator[bytes]:
        offset = 0
        while block := os.pread(self.fd, 256 * 1024, offset):
            yield block
            offset += len(block)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def difference(resource: File, spooled: SpooledContent, differ: Differ) -> str:
    """
    Return the text that the log shows: the output of the diff program, or why there is none. Blocking.

    Raises:
        Unsupported: no diff program.
        OSError: the file cannot be read.
    """
    with open_entry(resource.path, follow=resource.links == "follow") as entry:
        fd = entry.open()
        try:
            info = os.fstat(fd)
            if entry.foreign_hard_link(info):
                return "[diff not shown: this is a hard link to another user's file]"
            if info.st_size > MAX_INPUT or not spooled.complete:
                return TOO_LARGE
            new_label = f"{resource.path} (wanted)"
            output = differ.compare(fd, spooled.fd, labels=(resource.path, new_label))
        finally:
            os.close(fd)
    try:
        return output.decode("utf-8")
    except UnicodeDecodeError:
        return f"Binary files {resource.path} and {new_label} differ"
