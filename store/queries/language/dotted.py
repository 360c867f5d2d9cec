"""Dotted names of places inside a value: `facts.os.name`, `facts."a b".c[0]`, `facts.disks.match("s.*").vendor`."""

from __future__ import annotations

import re

from ..questions import QueryRefused
from .tree import NamePart

_MAX_PARTS = 50

_PART = re.compile(
    r"""
      match\(  (?P<pattern> " .*? " | ' .*? ' | .*? )  \)  (?= \. | $ )
    | " (?P<quoted> .*? (?<! \\) )  "  (?= \. | $ )
    | (?P<plain> [^.\[\]"]+ )  (?: \[ (?P<index> \d{1,9} ) \] )?  (?= \. | $ )
    """,
    re.VERBOSE | re.DOTALL,
)


def read_parts(name: str) -> tuple[NamePart, ...]:
    """
    Return the parts of a dotted name; the first is the name of a field.

    An index becomes a part of its own, an integer. QueryRefused shows where the name cannot be read.
    """
    parts: list[NamePart] = []
    place = 0
    while True:
        match = _PART.match(name, place)
        if match is None:
            raise QueryRefused(f'Don\'t recognize AST field component at character {place}: "{name}"')
        if match["pattern"] is not None:
            parts.append(NamePart(_unquoted(match["pattern"]), is_pattern=True))
        elif match["quoted"] is not None:
            parts.append(NamePart(match["quoted"]))
        else:
            parts.append(NamePart(match["plain"]))
            if match["index"] is not None:
                parts.append(NamePart(int(match["index"])))
        if len(parts) > _MAX_PARTS:
            raise QueryRefused(f"A dotted name has at most {_MAX_PARTS} parts")
        if match.end() == len(name):
            return tuple(parts)
        place = match.end() + 1


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[0] == text[-1] else text
