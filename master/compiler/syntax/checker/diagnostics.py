"""What the checker finds, and how it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.errors import Location, ParseError


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """
    One thing wrong (`error`) or odd (`warning`, `deprecation`: a warning with a limit of its own) with a file.

    `lexical` ones are the lexer's, which are always shown and never counted.
    """

    severity: Literal["error", "warning", "deprecation"]
    message: str
    where: Location
    hint: str = ""
    lexical: bool = False

    def __str__(self) -> str:
        return f"{self.message} {self.where}"


def refuse(issues: Sequence[Diagnostic], log: Callable[[str, Diagnostic], None], *, limit: int = 10) -> None:
    """
    Log what was found and raise if there is an error among it.

    Warnings go to `log("warning", issue)`. A single error is raised as it is; several go to `log("err", issue)`, at most `limit` of
    each kind, and what is raised is their number.

    Raises:
        ParseError: one error, or the summary, which names the file only.
    """
    errors = [issue for issue in issues if issue.severity == "error"]
    shown: Counter[str] = Counter()
    for issue in issues:
        if issue.severity != "error":
            shown[issue.severity] += not issue.lexical
            if issue.lexical or shown[issue.severity] <= limit:
                log("warning", issue)
    if not errors:
        return
    if len(errors) == 1:
        raise ParseError(errors[0].message, where=errors[0].where, hint=errors[0].hint)
    for issue in errors[:limit]:
        log("err", issue)
    warnings = shown.total()
    and_warnings = f", and {warnings} warnings" if warnings else ""
    raise ParseError(
        f"Language validation logged {len(errors)} errors{and_warnings}. Giving up",
        where=Location(errors[0].where.file) if errors[0].where.file else None,
    )
