"""
The width of Markdown's lines: less than 120 characters, but for tables, blocks and pictures, which cannot be wrapped.

    python -m tests.support.markdown README.md docs/*.md

wraps the paragraphs and items of lists that have longer lines, and leaves all others as they are.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

WIDTH = 119
_FENCE = re.compile(r"\s*```")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
_ALONE = re.compile(r"\s*(?:\||#|<!--|!\[|$)")  # a row, a heading, a comment, a picture, nothing


def _parts(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph and item; other lines alone."""
    part: list[str] = []
    in_block = False
    for line in text.split("\n"):
        is_fence = _FENCE.match(line) is not None
        if in_block or is_fence or _ALONE.match(line):
            yield from filter(None, (part, [line]))
            part = []
            in_block ^= is_fence
        elif _ITEM.match(line):
            if part:
                yield part
            part = [line]
        else:
            part.append(line)
    if part:
        yield part


def long_lines(text: str) -> list[str]:
    """Return the lines that could be wrapped and are too long."""
    wrapped_lines = set(wrapped(text).split("\n"))
    return [line for line in text.split("\n") if len(line) > WIDTH and line not in wrapped_lines]


def wrapped(text: str) -> str:
    """Return the text with those paragraphs and items wrapped that have a line that is too long."""
    lines = []
    in_block = False
    for part in _parts(text):
        in_block ^= _FENCE.match(part[0]) is not None
        if in_block or _ALONE.match(part[0]) or all(len(line) <= WIDTH for line in part):
            lines += part
            continue
        item = _ITEM.match(part[0])
        first = item[0] if item else re.sub(r"\S.*", "", part[0])
        body = " ".join(line.strip() for line in part)[len(first.strip()) :]
        lines += textwrap.wrap(
            body.strip(), WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(wrapped(path.read_text("utf-8")), "utf-8")
