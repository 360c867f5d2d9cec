"""Check whether the process with a stored number is the one that wrote it, or another that got the number later."""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # of prctl(2)
_SLACK: Final = 2.0  # seconds by which the clock of files and that of processes may differ


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number, which may be another's by the next question."""

    pid: int
    proc: Path = Path("/proc")

    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True
        return True

    def command_line(self) -> str:
        """Return its arguments with blanks between; '' when there is no such process."""
        try:
            return (self.proc / str(self.pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            return ""

    def program(self) -> str:
        """Return the name of the program's file; '' when it cannot be known: another user's process, or none."""
        try:
            return Path(os.readlink(self.proc / str(self.pid) / "exe")).name  # noqa: PTH115  # the text, which may end in " (deleted)"
        except OSError:
            return ""

    def began_after(self, path: Path) -> bool:
        """
        Return whether it is younger than the file, and so cannot have written it; False when that cannot be known.

        Ages are compared and not times of day, so that only a clock that was set in between misleads.
        """
        try:
            fields = (self.proc / str(self.pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
            return age + _SLACK < time.time() - path.lstat().st_mtime
        except (OSError, IndexError, ValueError):
            return False


def end_with_parent(number: int) -> None:
    """Have the system send this process a signal when the process that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
