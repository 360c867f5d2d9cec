"""The bytes of one local file, read in pieces."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from ..errors import PeerUnreachable
from .trees import FileTree

CHUNK: Final = 240 * 1024  # bytes read at once; less than what memory.py calls large, or each comes from the system


@dataclass(frozen=True, slots=True)
class FileBytes:
    """
    A file's bytes; close it. `file` is None for a directory.

    `size` is what will be announced and exactly what `blocks` gives; None: all there is (only of a tree that is not confined).
    """

    file: BinaryIO | None
    size: int | None

    def blocks(self, size: int = CHUNK) -> Iterator[bytes]:
        """Yield the content in pieces; PeerUnreachable when the file has become shorter, so that the transfer is broken off."""
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
        """Yield the same as `blocks`, read in threads; close the file at the end."""
        try:
            blocks = self.blocks()
            while (block := await asyncio.to_thread(next, blocks, None)) is not None:
                yield block
        finally:
            self.close()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def open_content(tree: FileTree, relative: str) -> FileBytes:
    """
    Return the bytes of a regular file, links followed; of a directory: none.

    A file without a size but with bytes (as below /proc) has no content in a confined tree; locally it is read whole.

    Raises:
        NotFound: nothing there, a link out of the tree, or a special file. Denied: not readable.
    """
    fd = tree.open(relative, follow=True)
    info = os.fstat(fd)
    if stat.S_ISDIR(info.st_mode):
        os.close(fd)
        return FileBytes(None, 0)
    os.set_blocking(fd, True)
    file = os.fdopen(fd, "rb")
    return FileBytes(file, info.st_size if tree.confined else None)
