"""What a check finds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from shared.errors import PuppetError

Area = Literal["configuration", "certificates", "permissions", "environments", "compiling", "ports"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong (error) or odd (warning), and what to do about it."""

    area: Area
    severity: Literal["error", "warning"]
    message: str
    hint: str = ""

    @classmethod
    def of(cls, area: Area, error: Exception, severity: Literal["error", "warning"] = "error") -> Finding:
        """What an error says."""
        if isinstance(error, OSError) and not isinstance(error, PuppetError):
            where = f": {error.filename}" if error.filename else ""
            return cls(area, severity, f"{error.strerror or error}{where}")
        return cls(area, severity, str(error), getattr(error, "hint", ""))


def tried(area: Area, work: Callable[[], Iterable[Finding] | None]) -> list[Finding]:
    """What `work` gives, with what it raises and what it logs as a warning or worse."""
    found: list[Finding] = []
    with overheard(area, found):
        try:
            for each in work() or ():
                found.append(each)
        except (PuppetError, OSError, ValueError) as err:
            found.append(Finding.of(area, err))
    return list(dict.fromkeys(found))


@contextmanager
def overheard(area: Area, found: list[Finding]) -> Iterator[None]:
    """Warnings and errors of the master's own log become findings, and are not logged."""
    logger = logging.getLogger("puppet")

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            severity: Literal["error", "warning"] = "error" if record.levelno >= logging.ERROR else "warning"
            found.append(Finding(area, severity, record.getMessage()))

    listener = Listener(logging.WARNING)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagated
