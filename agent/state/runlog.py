"""The log of one run: each line is printed and stored for the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from shared.clock import utc_now
from shared.errors import Location
from shared.models.report import LEVELS, Log, iso_time
from shared.ral.secrets import Secrets

Printer = Callable[[Log], None]

MAX_LINES = 100_000  # kept for the report; further lines are printed and counted
MAX_MESSAGE = 1_000_000  # characters of one message


class RunLog:
    """
    The log lines of one run.

    Args:
        level: The least level that is printed and stored: `notice`; with --verbose `info`, with --debug `debug`.
        printers: Called with each line, in order; they must not block.
        max_lines: The most lines that the report gets.
    """

    def __init__(
        self, *, level: str = "notice", printers: Sequence[Printer] = (), now: Callable[[], datetime] = utc_now, max_lines: int = MAX_LINES
    ) -> None:
        self.level = level
        self.printers = tuple(printers)
        self.now = now
        self.max_lines = max_lines
        self.lines: list[Log] = []
        self.dropped = 0
        self.secrets = Secrets()  # of the run's resources; they are masked in every line

    def wants(self, level: str) -> bool:
        """Return whether lines of that level are printed and stored; call it before building an expensive message."""
        return LEVELS.index(level) >= LEVELS.index(self.level)

    def log(self, level: str, message: str, *, source: str = "Puppet", tags: Sequence[str] = (), where: Location | None = None) -> None:
        """
        Print a line and store it for the report.

        Args:
            level: One of LEVELS, or `verbose`, which is info.
            source: `Puppet`, or a containment path.
            tags: The tags of the resource that logs; the level is added.
            where: The location of that resource in a manifest.
        """
        level = "info" if level == "verbose" else level
        if not self.wants(level):
            return
        line = Log(
            level=level,
            message=_printable(self.secrets.mask(message)),
            source=self.secrets.mask(source),
            tags=list(dict.fromkeys((level, *tags))),
            time=iso_time(self.now()),
            file=where.file if where else None,
            line=where.line if where else None,
        )
        self._add(line)
        for printer in self.printers:
            printer(line)

    def keep(self, line: Log) -> None:
        """Keep a line for the report that was printed elsewhere."""
        if self.wants(line.level):
            line = line.model_copy(update={"message": self.secrets.mask(line.message)}) if self.secrets else line
            self._add(line)

    def _add(self, line: Log) -> None:
        if len(self.lines) < self.max_lines:
            self.lines.append(line)
        else:
            self.dropped += 1

    def debug(self, message: str) -> None:
        self.log("debug", message)

    def info(self, message: str) -> None:
        self.log("info", message)

    def notice(self, message: str) -> None:
        self.log("notice", message)

    def warning(self, message: str) -> None:
        self.log("warning", message)

    def err(self, message: str) -> None:
        self.log("err", message)

    def for_report(self) -> list[Log]:
        """Return the lines for the report; a warning at the end has the number of dropped lines."""
        if not self.dropped:
            return list(self.lines)
        note = f"{self.dropped} further log lines are not in this report"
        return [*self.lines, Log(level="warning", message=note, tags=["warning"], time=iso_time(self.now()))]


def _printable(message: str) -> str:
    if len(message) > MAX_MESSAGE:
        message = f"{message[:MAX_MESSAGE]}… ({len(message) - MAX_MESSAGE} more characters)"
    # Bytes of a command's output that were not UTF-8 come as lone surrogates, which no report can carry.
    return message.encode("utf-8", "replace").decode("utf-8")
