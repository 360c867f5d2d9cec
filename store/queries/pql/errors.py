"""A query that is not PQL, and the place at which it stops to be."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import BadRequest

_WIDTH = 160  # characters of a line that a message shows: the place is within them


class PqlError(BadRequest):
    """
    A text that is not a query of the language; the message shows the place with a caret under it.

    `line` and `column` count from 1, in characters; `reason` is the fault, without the place.
    """

    def __init__(self, text: str, offset: int, reason: str) -> None:
        self.line = text.count("\n", 0, offset) + 1
        begin = text.rfind("\n", 0, offset) + 1
        self.column = offset - begin + 1
        self.reason = reason
        end = text.find("\n", begin)
        source = excerpt(text[begin : end if end >= 0 else len(text)], offset - begin)
        super().__init__(f"PQL parse error at line {self.line}, column {self.column}:\n\n{source}\n\n{reason}\n")


def excerpt(line: str, column: int) -> str:
    """Return a line and, below it, a caret under `column`, counted from 0. A long line is cut to the surroundings of the place."""
    begin = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    return f"{line[begin : begin + _WIDTH]}\n{' ' * (column - begin)}^"


def expectation(names: Sequence[str]) -> str:
    """Return the sentence about the words or signs that are allowed at a place."""
    return f"Expected:\n{names[0]}" if len(names) == 1 else "\n".join(["Expected one of:", "", *names])
