"""Findings: the problems that checks report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from shared.errors import PuppetError

Area = Literal["configuration", "certificates", "permissions", "environments", "compiling", "ports", "store", "state"]
Severity = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem (error) or anomaly (warning) with its remedy, or an information (notice)."""

    area: Area
    severity: Severity
    message: str
    hint: str = ""

    @classmethod
    def of(cls, area: Area, error: Exception, severity: Severity = "error") -> Finding:
        """Return the finding that an error describes."""
        if isinstance(error, OSError) and not isinstance(error, PuppetError):
            where = f": {error.filename}" if error.filename else ""
            return cls(area, severity, f"{error.strerror or error}{where}")
        return cls(area, severity, str(error), getattr(error, "hint", ""))


def run_check(area: Area, work: Callable[[], Iterable[Finding] | None]) -> list[Finding]:
    """Return the findings of `work`, including its exceptions and its logged warnings and errors."""
    findings: list[Finding] = []
    with log_as_findings(area, findings):
        try:
            for finding in work() or ():
                findings.append(finding)
        except (PuppetError, OSError, ValueError) as err:
            findings.append(Finding.of(area, err))
    return list(dict.fromkeys(findings))


@contextmanager
def log_as_findings(area: Area, findings: list[Finding]) -> Iterator[None]:
    """Turn warnings and errors of the master's own log into findings, which are not logged."""
    logger = logging.getLogger("puppet")

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            severity: Severity = "error" if record.levelno >= logging.ERROR else "warning"
            findings.append(Finding(area, severity, record.getMessage()))

    listener = Listener(logging.WARNING)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagated
