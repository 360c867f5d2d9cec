"""The progress of a long command, on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TextIO

_REDRAWN = 0.1  # seconds between two states of the line on a terminal
_REPEATED = 10.0  # seconds between two lines elsewhere


@dataclass(slots=True)
class ProgressLine:
    """
    The progress line of a command; use it with `with`.

    On a terminal it is one line that changes, and disappears at the end. Elsewhere it is a line every ten seconds.
    """

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    _is_terminal: bool = field(init=False)
    _due: float = field(init=False)
    _is_shown: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._is_terminal = self.stream.isatty()
        self._due = 0.0 if self._is_terminal else self.clock() + _REPEATED

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room on the terminal for other output."""
        if self._is_shown:
            self._is_shown = False
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def show(self, text: str) -> None:
        """Show a text of one line, unless the last one is too new."""
        now = self.clock()
        if now < self._due:
            return
        if self._is_terminal:
            self._due, self._is_shown = now + _REDRAWN, True
            self.stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        else:
            self._due = now + _REPEATED
            self.stream.write(f"{text}\n")
        self.stream.flush()

    def show_part(self, label: str, done: int, total: int, unit: str) -> None:
        """Show the progress of a part: `copied 1200 of 4800 rows (25 %)`."""
        percent = f" ({100 * min(done, total) // total} %)" if total else ""
        self.show(f"{label} {done} of {total} {unit}{percent}")
