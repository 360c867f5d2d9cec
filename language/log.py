"""The log of one compilation: messages of manifests and of the compiler itself for the master's log."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from shared.errors import Location

from .errors.locations import current_place
from .values.core import Reporter, Strictness


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the master's log that a manifest caused; `text` is as the reference prints it."""

    level: str
    message: str
    where: Location | None = None
    source: str = ""

    @property
    def text(self) -> str:
        place = str(self.where) if self.where else ""
        return f"{self.message} {place}" if place else self.message


class CompilationLog:
    """
    Hands log entries to `write` when they happen, also when the compilation fails in the end.

    Args:
        disabled_warnings: the kinds that `warn_once` leaves out, as in the setting `disable_warnings`.
        wants_debug: whether anybody reads entries of the level debug.
    """

    def __init__(self, write: Callable[[LogEntry], None], disabled_warnings: Collection[str] = (), *, wants_debug: bool = True) -> None:
        self._write = write
        self.wants_debug = wants_debug
        self._disabled_warnings = disabled_warnings
        self._warned: set[tuple[str, str]] = set()

    def add(self, level: str, message: str, *, where: Location | None = None, source: str = "") -> None:
        """Write one entry; `source` is the scope that logs, as `Scope.name` gives it."""
        self._write(LogEntry(level, message, where, source))

    def warn_here(self, message: str, operand: int | None = None) -> None:
        """Write a warning with the place in the manifest that is being evaluated, or of an operand of it."""
        self.add("warning", message, where=current_place(operand))

    def warn_once(self, kind: str, key: str, message: str, *, place: bool = False, file: str = "") -> None:
        """
        Write a warning the first time that `key` of this kind comes up.

        Args:
            place: name the place in the manifest that is being evaluated.
            file: name this file instead of a place.
        """
        if kind in self._disabled_warnings or (kind, key) in self._warned:
            return
        self._warned.add((kind, key))
        here = Location(file) if file else current_place() if place else None
        if here is None:
            self.add("warning", f"{message}\n   (file & line not available)")
        else:
            # As deprecations are printed: the place is on a line of its own.
            self.add("warning", f"{message}\n  ", where=Location(here.file, here.line))


class LocatedReporter(Reporter):
    """Reports lenient conversions as warnings at the place that is being evaluated."""

    __slots__ = ("log",)

    def __init__(self, log: CompilationLog, strict: Strictness) -> None:
        super().__init__(strict)
        self.log = log

    def warn(self, message: str) -> None:
        operand, self.operand = self.operand, None
        self.log.warn_here(message, operand)
