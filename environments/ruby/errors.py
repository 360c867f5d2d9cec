"""What Ruby may answer in place of a value."""

from __future__ import annotations

from typing import Any, Final

from shared.errors import Unsupported

NONSENSE: Final = "Ruby answered nonsense"


class RaisedInRuby(Exception):
    """Ruby raised an error; `lacks` names the missing part, which only Puppet's own Ruby has."""

    def __init__(self, report: dict[str, Any]) -> None:
        super().__init__(report.get("message"))
        self.message = str(report.get("message"))
        self.file = report.get("file")
        self.line = report.get("line")
        self.lacks = report.get("lacks")

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown"


def refuse_lacking(error: RaisedInRuby, subject: str) -> None:
    """Raise Unsupported when something needs a part that only Puppet's own Ruby has."""
    if error.lacks:
        raise Unsupported(
            f"{subject} uses {error.lacks}, which only Puppet's own Ruby has ({error.location})",
            hint="Functions of the language, scope and Ruby's library are here. A function can be written in Python instead.",
        ) from error


class LeftBlock(Exception):
    """A block of Ruby's left the function that it was given to, by `break`, `return` or `throw`; Ruby continues there."""
