"""Heredocs: their header, and their text without the margin."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

BLANK = r"[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]"

_HEADER = re.compile(
    rf"""
    @\( ([^:/\r\n)]+)                                              # 1: the tag, perhaps quoted
        (?: : {BLANK}* ([a-z][a-zA-Z0-9_+]+) {BLANK}* )?           # 2: the syntax
        (?: /  ((?:\w|\$)*) {BLANK}* )?                            # 3: the escapes
    \)
    """,
    re.VERBOSE | re.ASCII,
)
_QUOTED = re.compile(r'"(.*)"')
_FLAGS = {"t": ("t",), "r": ("r",), "n": ("n",), "s": ("s",), "u": ("u",), "$": ("$",), "L": ("\n", "\r\n")}

Fail = Callable[[str], Exception]


@dataclass(frozen=True, slots=True)
class HeredocHeader:
    """The header `@("tag":syntax/escapes)`; `escapes` is an argument of `strings.unescape`, empty when a backslash has no meaning."""

    tag: str
    interpolates: bool
    syntax: str
    escapes: frozenset[str]


@dataclass(frozen=True, slots=True)
class HeredocBody:
    """
    The text without its margin. `after` is the offset of the line behind the end line.

    `place(offset in text)` is the offset in the source; offset 0 is the first character of the first line, before its margin,
    which is where the reference sees the text begin.
    """

    text: str
    start: int
    after: int
    starts: tuple[int, ...]
    removed: tuple[int, ...]

    def place(self, offset: int) -> int:
        if offset == 0 or not self.starts:
            return self.start + offset
        return self.start + offset + self.removed[bisect_right(self.starts, offset) - 1]


def read_header(text: str, fail: Fail) -> HeredocHeader:
    """
    Return the contents of a header, from `@(` to `)`; `fail(message)` returns the error to raise.

    Source: language reference 1.8.
    """
    match = _HEADER.fullmatch(text)
    if not match:
        raise fail("Invalid syntax in heredoc expected @(endtag[:syntax][/escapes])")
    tag = match[1].strip()
    quoted = _QUOTED.fullmatch(tag)
    if quoted:
        tag = quoted[1].strip()
    if not tag:
        raise fail("Heredoc with an empty endtag")
    escapes: set[str] = set()
    if match[3] is not None:
        flags = match[3] or "trnsuL$"
        if len(set(flags)) != len(flags):
            raise fail(f"An escape char for @() may only appear once. Got '{', '.join(flags)}'")
        escapes.add("\\")
        for flag in flags:
            if flag not in _FLAGS:
                raise fail(f"Invalid heredoc escape char. Only t, r, n, s,  u, L, $ allowed. Got '{flag}'")
            escapes.update(_FLAGS[flag])
    return HeredocHeader(tag, bool(quoted), match[2] or "", frozenset(escapes))


def read_body(source: str, start: int, tag: str) -> HeredocBody | None:
    """Return the text from `start` up to the line that ends with `tag`; None when there is no such line."""
    end = re.compile(rf"(?m)({BLANK}*)(?:(\|){BLANK}*)?(?:(-){BLANK}*)?{re.escape(tag)}{BLANK}*\r?(?:\n|\Z)")
    end_line = end.search(source, start)
    if not end_line:
        return None
    last = source.rfind("\n", start, end_line.start()) + 1 or start  # the end line's own start
    lines = [line + "\n" for line in source[start:last].split("\n")[:-1]]  # splitlines would also split at form feeds
    margin = end_line[1] if end_line[2] else ""
    starts: list[int] = []
    removed: list[int] = []
    lines_without_margin: list[str] = []
    length = cut = 0
    for line in lines:
        if margin and line.startswith(margin):
            cut += len(margin)
            line = line[len(margin) :]
        starts.append(length)
        removed.append(cut)
        lines_without_margin.append(line)
        length += len(line)
    text = "".join(lines_without_margin)
    if end_line[3]:
        text = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    return HeredocBody(text, start, end_line.end(), tuple(starts), tuple(removed))
