"""
The output of a command, read from a pipe immediately, so that its size in memory is limited and the command never waits for us.

A pipe and not a file: programs open /dev/stdout and /dev/stderr again, which truncates a file or continues in the middle of it,
and dnf seeks to a file's end; and what a daemon prints for months would fill a disk. A daemon that outlives its command keeps the
pipe as its output: a process of its own goes on reading it, so that the daemon neither dies of SIGPIPE nor waits for a reader.
"""

from __future__ import annotations

import logging
import os
import select
import subprocess
from typing import Final

log = logging.getLogger("puppet.commands")

# The shell ends at once, so that whoever started it has no child to wait for; `cat` ends when nobody has the pipe open any more.
_READ_ON: Final = "exec 3<&0; cat <&3 3<&- >/dev/null 2>&1 &"
_BLOCK = 65536  # bytes; as much as a pipe holds
_BLOCKS = 64  # the most that are read at once


class OutputPipe:
    """
    A pipe that stores the beginning of its content. The owner has to close it.

    Args:
        capacity: bytes that are stored; later bytes are read and dropped.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.content = bytearray()
        self.truncated = False  # something was dropped
        self.ended = False  # nobody has it open for writing any more
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reader, False)

    def close_writer(self) -> None:
        """Close our copy of the writing end: the command has its own now."""
        os.close(self.writer)
        self.writer = -1

    def take(self) -> None:
        """Read all that is there without waiting; after a command's end that is the rest of its output."""
        for _ in range(_BLOCKS):
            try:
                block = os.read(self.reader, _BLOCK)
            except BlockingIOError:
                return
            if not block:
                self.ended = True
                return
            space_left = self.capacity - len(self.content)
            self.content += block[:space_left]
            self.truncated = self.truncated or len(block) > space_left

    def close(self) -> None:
        """Release the pipe; a process that outlives its command and still has it open gets another reader. Blocks while that starts."""
        if self.writer < 0 <= self.reader and self._has_writers():
            self._leave_to_another_reader()
        for fd in (self.reader, self.writer):
            if fd >= 0:
                os.close(fd)
        self.reader = self.writer = -1

    def _has_writers(self) -> bool:
        poll = select.poll()
        poll.register(self.reader, 0)
        return not any(event & select.POLLHUP for _, event in poll.poll(0))

    def _leave_to_another_reader(self) -> None:
        os.set_blocking(self.reader, True)
        try:
            subprocess.run(
                ["/bin/sh", "-c", _READ_ON],
                stdin=self.reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                start_new_session=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as err:
            log.warning("Nothing reads what a command left running prints, which may end it: %s", err)
