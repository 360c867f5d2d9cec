"""What Ruby may answer in place of a value."""

from __future__ import annotations

from typing import Any, Final

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


class LeftBlock(Exception):
    """A block of Ruby's left the function that it was given to, by `break`, `return` or `throw`; Ruby continues there."""
