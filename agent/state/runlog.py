"""The log of one run: each line goes to whoever prints it and is kept for the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from shared.clock import utc_now
from shared.errors import Location
from shared.models.report import LEVELS, Log, iso
from shared.ral.secrets import Secrets

Printer = Callable[[Log], None]

MAX_LINES = 100_000  # kept for the report; further lines are printed and counted
MAX_MESSAGE = 1_000_000  # characters of one message


class RunLog:
    """
    Where everything in a run says what it has to say.

    Args:
        level: the least level that is printed and kept; `notice`, with --verbose `info`, with --debug `debug`.
        printers: called with each line, in order; they must not block.
        max_lines: how many lines are kept for the report.
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
        self.secrets = Secrets()  # of the run's resources; no line has one of them

    def wants(self, level: str) -> bool:
        """Whether lines of that level go anywhere; ask before building an expensive message."""
        return LEVELS.index(level) >= LEVELS.index(self.level)

    def log(self, level: str, message: str, *, source: str = "Puppet", tags: Sequence[str] = (), where: Location | None = None) -> None:
        """
        Say something.

        Args:
            level: one of LEVELS, or `verbose`, which is info.
            source: `Puppet`, or a containment path.
            tags: of the resource that speaks; the level is added.
            where: the manifest's place of that resource.
        """
        level = "info" if level == "verbose" else level
        if not self.wants(level):
            return
        line = Log(
            level=level,
            message=_printable(self.secrets.mask(message)),
            source=self.secrets.mask(source),
            tags=list(dict.fromkeys((level, *tags))),
            time=iso(self.now()),
            file=where.file if where else None,
            line=where.line if where else None,
        )
        if len(self.lines) < self.max_lines:
            self.lines.append(line)
        else:
            self.dropped += 1
        for printer in self.printers:
            printer(line)

    def keep(self, line: Log) -> None:
        """Keep for the report a line that was printed by somebody else."""
        if self.wants(line.level):
            line = line.model_copy(update={"message": self.secrets.mask(line.message)}) if self.secrets else line
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
        """The lines to send; ends with a warning when some were dropped."""
        if not self.dropped:
            return list(self.lines)
        note = f"{self.dropped} further log lines are not in this report"
        return [*self.lines, Log(level="warning", message=note, tags=["warning"], time=iso(self.now()))]


def _printable(message: str) -> str:
    if len(message) > MAX_MESSAGE:
        message = f"{message[:MAX_MESSAGE]}… ({len(message) - MAX_MESSAGE} more characters)"
    # Bytes of a command's output that were not UTF-8 come as lone surrogates, which no report can carry.
    return message.encode("utf-8", "replace").decode("utf-8")
