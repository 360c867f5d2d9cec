"""The time of a compile by lines of manifests and templates."""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

from language.errors.locations import UNIT
from language.loading.erb_templates import TEMPLATE

SHOWN = 10
SOURCE = 50  # characters of a line's text that are shown

Line = tuple[str, int]


@dataclass(slots=True)
class Spent:
    """Seconds on one line: `own` without the lines that run because of it, `whole` with them; `times` it began."""

    own: float = 0.0
    whole: float = 0.0
    times: int = 0


@dataclass(slots=True)
class _Running:
    """A manifest's function that is running, and its line."""

    line: Line
    began: float
    outermost: bool  # no other frame runs this line


@dataclass
class LineTimes:
    """
    Measures while it is entered: `with LineTimes() as times: …`.

    Every line of a manifest is timed as it runs, which makes the whole two to five times slower. What our own code does for
    a line, and all else that it calls, counts as the line's own time.
    """

    clock: Callable[[], float] = time.perf_counter
    lines: dict[Line, Spent] = field(default_factory=dict)
    total: float = 0.0
    _stack: list[_Running] = field(default_factory=list)
    _active: dict[Line, int] = field(default_factory=dict)
    _last: float = 0.0
    _before: Any = None

    def __enter__(self) -> LineTimes:
        self._before = sys.gettrace()
        self._last = self.clock()
        self.total -= self._last
        sys.settrace(self._call)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        sys.settrace(self._before)
        self.total += self.clock()

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if UNIT not in frame.f_globals and TEMPLATE not in frame.f_globals:
            return None
        self._charge()
        self._stack.append(self._begun((frame.f_code.co_filename, frame.f_lineno)))
        frame.f_trace = self._step
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            now = self._charge()
            self._end(now)
            self._stack[-1] = self._begun((frame.f_code.co_filename, frame.f_lineno))
            self._spent(self._stack[-1].line).times += 1
        elif event == "return":
            self._end(self._charge())
            self._stack.pop()
        return self._step

    def _charge(self) -> float:
        """Add the time since the last call to the line that runs now."""
        now = self.clock()
        if self._stack:
            self._spent(self._stack[-1].line).own += now - self._last
        self._last = now
        return now

    def _begun(self, line: Line) -> _Running:
        depth = self._active.get(line, 0)
        self._active[line] = depth + 1
        return _Running(line, self._last, depth == 0)

    def _end(self, now: float) -> None:
        running = self._stack[-1]
        self._active[running.line] -= 1
        if running.outermost:
            self._spent(running.line).whole += now - running.began

    def _spent(self, line: Line) -> Spent:
        spent = self.lines.get(line)
        if spent is None:
            spent = self.lines[line] = Spent()
        return spent

    def slowest(self, number: int = SHOWN) -> list[tuple[Line, Spent]]:
        """Return the lines with the most time of their own."""
        return sorted(self.lines.items(), key=lambda item: (-item[1].own, item[0]))[:number]

    def text(self, number: int = SHOWN) -> str:
        """Return a table of the slowest lines."""
        lines = [f"Slowest manifest lines of {self.total:.3f} seconds (a second compile, slowed down by being measured):"]
        lines.append(f"{'own ms':>9} {'whole ms':>9} {'times':>8}  line")
        for (file, line), spent in self.slowest(number):
            source = " ".join(linecache.getline(file, line).split())
            text = source if len(source) <= SOURCE else source[: SOURCE - 1] + "…"
            lines.append(f"{spent.own * 1000:>9.2f} {spent.whole * 1000:>9.2f} {spent.times:>8}  {file}:{line}  {text}".rstrip())
        return "\n".join(lines)
