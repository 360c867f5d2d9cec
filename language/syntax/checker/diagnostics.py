"""The diagnostics of the checker, and how they are logged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shared.errors import Location, ParseError

Severity: TypeAlias = Literal["error", "warning", "deprecation"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """
    An error or a warning about a file; a `deprecation` is a warning with a limit of its own.

    Attributes:
        lexical: whether the lexer found it; such warnings are always logged and never counted.
    """

    severity: Severity
    message: str
    where: Location
    hint: str = ""
    lexical: bool = False

    def __str__(self) -> str:
        return f"{self.message} {self.where}"


def log_and_refuse(diagnostics: Sequence[Diagnostic], log: Callable[[str, Diagnostic], None], *, limit: int = 10) -> None:
    """
    Log the diagnostics, and raise an error if there is an error among them.

    Warnings go to `log("warning", diagnostic)`. A single error is raised as it is. Several go to `log("err", diagnostic)`, at most
    `limit` of each severity, and the raised error has their number.

    Raises:
        ParseError: one error, or the summary, which names the file only.
    """
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    counts: Counter[str] = Counter()
    for diagnostic in diagnostics:
        if diagnostic.severity != "error":
            counts[diagnostic.severity] += not diagnostic.lexical
            if diagnostic.lexical or counts[diagnostic.severity] <= limit:
                log("warning", diagnostic)
    if not errors:
        return
    if len(errors) == 1:
        raise ParseError(errors[0].message, where=errors[0].where, hint=errors[0].hint)
    for error in errors[:limit]:
        log("err", error)
    warnings = counts.total()
    and_warnings = f", and {warnings} warnings" if warnings else ""
    raise ParseError(
        f"Language validation logged {len(errors)} errors{and_warnings}. Giving up",
        where=Location(errors[0].where.file) if errors[0].where.file else None,
    )
