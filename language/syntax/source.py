"""Source texts: conversion of offsets to places, and errors with a place."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from shared.errors import Location, ParseError


@dataclass(frozen=True)
class Source:
    """A text and its file; `file` is None for code from the command line."""

    text: str
    file: str | None = None
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at != -1:
            starts.append(at + 1)
            at = find("\n", at + 1)
        object.__setattr__(self, "starts", tuple(starts))

    def line(self, at: int) -> int:
        """Return the line of an offset, from 1."""
        return bisect_right(self.starts, at)

    def column(self, at: int) -> int:
        """Return the column of an offset, in characters from 1."""
        return at - self.starts[bisect_right(self.starts, at) - 1] + 1

    def locate(self, at: int) -> Location:
        """Return file, line and column of an offset."""
        line = bisect_right(self.starts, at)
        return Location(self.file, line, at - self.starts[line - 1] + 1)

    def error(self, message: str, at: int, *, hint: str = "") -> ParseError:
        """Return a ParseError whose place is the offset `at`."""
        return ParseError(message, where=self.locate(at), hint=hint)
