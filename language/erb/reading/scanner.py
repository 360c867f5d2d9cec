"""Reads the tags of an ERB template, and returns the Ruby program that ERB makes of them, with the place of each part in the template."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from ..errors import Refusal

TEXT = "_erb_text"
"""The function whose call stands for text of the template, with the text's number."""
OUTPUT = "_erb_output"
"""The function whose call stands for `<%= … %>`."""

_OPENING = re.compile(r"(.*?)(^[ \t]*<%-|<%-|<%%|<%=|<%#|<%|\Z)", re.DOTALL | re.MULTILINE)
_TRIMMED = re.compile(r"()([ \t]*<%-)")
"""At the place where ERB goes on, `^` matches, whatever stands before it."""
_CLOSING = re.compile(r"(.*?)(-%>|%%>|%>|\Z)", re.DOTALL)
_NEWLINE = re.compile(r"\r?\n|\Z")
_MAGIC = re.compile(r"coding|frozen", re.IGNORECASE)
_UNREADABLE = re.compile(rf"^(?:__END__|=begin|=end)|{TEXT}|{OUTPUT}", re.MULTILINE)


@dataclass(slots=True)
class TemplateProgram:
    """
    A template as Ruby.

    Attributes:
        texts: the pieces of text, by their numbers, each with its offset.
        segments: for each part of the program its offset there (in octets), and its offset in the template.
    """

    octets: bytes = b""
    texts: list[tuple[str, int]] = field(default_factory=list)
    segments: list[tuple[int, int, str]] = field(default_factory=list)

    def offset(self, octet: int) -> int:
        """Return the offset in the template, in characters, of an octet of the program."""
        index = bisect_right(self.segments, octet, key=lambda segment: segment[0]) - 1
        if index < 0:
            return 0
        start, at, text = self.segments[index]
        inside = octet - start
        if text.isascii():
            return at + min(inside, len(text))
        return at + len(text.encode()[:inside].decode("utf-8", "ignore"))


class _Builder:
    """Collects the program; the commands of one line of ERB's are joined by semicolons, as ERB does it."""

    def __init__(self) -> None:
        self.program = TemplateProgram()
        self._parts: list[bytes] = []
        self._size = 0
        self._begun = False  # whether the current line has a command

    def _write(self, text: str, at: int) -> None:
        self.program.segments.append((self._size, at, text))
        octets = text.encode()
        self._parts.append(octets)
        self._size += len(octets)

    def separate(self, at: int) -> None:
        if self._begun:
            self._write("; ", at)
        self._begun = True

    def add_code(self, code: str, at: int) -> None:
        self.separate(at)
        self._write(code, at)

    def add_output(self, code: str, at: int) -> None:
        self.separate(at)
        self._write(f"{OUTPUT}((", at)
        self._write(code, at)
        self._write(").to_s)", at + len(code))

    def add_text(self, text: str, at: int) -> None:
        if not text:
            return
        self.separate(at)
        self._write(f"{TEXT}({len(self.program.texts)})" + "\n" * text.count("\n"), at)
        self.program.texts.append((text, at))

    def end_line(self, at: int) -> None:
        self._write("\n", at)
        self._begun = False

    def finish(self) -> TemplateProgram:
        self.program.octets = b"".join(self._parts)
        return self.program


def scan(template: str) -> TemplateProgram:
    """
    Return the program that ERB with the trim mode `-` makes of a template.

    Raises:
        Refusal: it is not UTF-8, or has what ERB or Ruby read in a special way.
    """
    try:
        template.encode()
    except UnicodeEncodeError as error:
        raise Refusal("text that is not UTF-8", error.start) from None
    builder = _Builder()
    at = 0
    text, text_at = "", 0
    while at < len(template):
        opening = _TRIMMED.match(template, at) or _OPENING.match(template, at)
        assert opening is not None
        if not text:
            text_at = at
        text += opening[1]
        tag, at = opening[2], opening.end()
        if tag == "<%%":
            text += "<%"
            continue
        if not tag:
            break
        builder.add_text(text, text_at)
        text = ""
        at = _add_tag(builder, template, tag, at)
    builder.add_text(text, text_at)
    return builder.finish()


def _add_tag(builder: _Builder, template: str, tag: str, at: int) -> int:
    """Add the command of a tag that was opened; return the offset behind it."""
    closing = _CLOSING.match(template, at)
    assert closing is not None
    code, end, behind = closing[1], closing[2], closing.end()
    if end == "%%>":
        raise Refusal("%%> in a tag", closing.start(2))
    if not end:
        raise Refusal("a tag that is not closed", at)
    if tag == "<%#":
        if _MAGIC.search(code):
            raise Refusal("a comment that may set an encoding", at)
    elif _UNREADABLE.search(code):
        raise Refusal("a word that is read in a special way", at)
    elif tag == "<%=":
        builder.add_output(code, at)
    elif code.endswith("\n"):
        builder.add_code(code[:-1], at)
        builder.end_line(behind)
    elif code:
        builder.add_code(code, at)
    else:
        builder.add_code("", at)
    if end == "-%>" and (newline := _NEWLINE.match(template, behind)) is not None:
        builder.end_line(behind)
        return newline.end()
    return behind
