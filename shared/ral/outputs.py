"""
What a command writes, read from a pipe as it comes, so that its room in memory has a limit and nobody waits for us.

A pipe and not a file: programs open /dev/stdout and /dev/stderr anew, which cuts a file off or goes on in the middle of it,
and dnf goes to a file's end. Who still writes when the command has ended, a daemon that kept its output, finds nobody reading.
"""

from __future__ import annotations

import os

_BLOCK = 65536  # bytes; as much as a pipe holds
_BLOCKS = 64  # the most that are read at once


class OutputPipe:
    """
    A pipe of which the beginning is kept. Close it.

    Args:
        room: bytes that are kept; what comes after them is read and dropped.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.kept = bytearray()
        self.cut = False  # something was dropped
        self.ended = False  # nobody has it open for writing any more
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reader, False)

    def started(self) -> None:
        """The command has its own end now."""
        os.close(self.writer)
        self.writer = -1

    def take(self) -> None:
        """What is there; does not wait. After a command's end all that it has written."""
        for _ in range(_BLOCKS):
            try:
                block = os.read(self.reader, _BLOCK)
            except BlockingIOError:
                return
            if not block:
                self.ended = True
                return
            left = self.room - len(self.kept)
            self.kept += block[:left]
            self.cut = self.cut or len(block) > left

    def close(self) -> None:
        for fd in (self.reader, self.writer):
            if fd >= 0:
                os.close(fd)
        self.reader = self.writer = -1
