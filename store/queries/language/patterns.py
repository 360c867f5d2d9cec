"""
Regular expressions of queries, rewritten so that both databases take them to mean the same.

They are PostgreSQL's advanced regular expressions. What depends on a database's locale has one meaning here: `\\d`, `\\w`, `\\s`,
`[[:alpha:]]` and the like are ASCII, `(?i)` becomes sets of letters. The result uses only what PostgreSQL and the module `regex` read
alike; what neither can express like the other, such as back references, is refused.
Source: PostgreSQL's documentation, 9.7.3; Debian's PostgreSQL 15, which tests ask the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from ..questions import QueryRefused

MAX_PATTERN = 10_000
"""Characters of a pattern, and of what it becomes when its repetitions are written out."""

MAX_DEPTH = 100
"""Groups in each other."""

MAX_OPTIONAL = 100
"""Characters and constraints in a row that may all be missing, repetitions written out; PostgreSQL's time grows with the cube of it."""

_MAX_COUNT = 255
_CONSTRAINT_SIZE = 10
_WORD = ((48, 57), (65, 90), (95, 95), (97, 122))
_CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((1, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_SHORTHANDS = {"d": "digit", "s": "space", "w": "word"}
_IN_WORD, _OUT_OF_WORD = "[0-9A-Z_a-z]", "[^0-9A-Z_a-z]"
_BEGIN, _END = f"(?<!{_IN_WORD})(?={_IN_WORD})", f"(?<={_IN_WORD})(?!{_IN_WORD})"
_CONSTRAINTS = {
    "A": r"\A",
    "Z": r"\Z",
    "m": _BEGIN,
    "M": _END,
    "y": f"(?:{_BEGIN}|{_END})",
    "Y": f"(?:(?<={_IN_WORD})(?={_IN_WORD})|(?<!{_IN_WORD})(?!{_IN_WORD}))",
}
_CHARACTERS = {"a": 7, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LOOKING = ("(?=", "(?!", "(?<=", "(?<!")
_BOUND = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}", re.ASCII)
_OPTIONS = re.compile(r"\(\?([a-zA-Z]+)\)")
_CLASS = re.compile(r"\[:(\w+):\]")
_HEXADECIMAL = {"x": re.compile(r"[0-9a-fA-F]+"), "u": re.compile(r"[0-9a-fA-F]{4}"), "U": re.compile(r"[0-9a-fA-F]{8}")}

Ranges = list[tuple[int, int]]


@lru_cache(256)
def translate(pattern: str, *, is_whole: bool = False) -> str:
    """
    Return a regular expression as both databases read it; the dot is any character.

    Args:
        is_whole: Whether it has to match a text from its beginning to its end.
    Raises:
        QueryRefused: It is invalid, or the databases would not agree on it; the text says why, in PostgreSQL's words where it has some.
    """
    if len(pattern) > MAX_PATTERN:
        raise QueryRefused(f"ERROR: regular expression is longer than {MAX_PATTERN} characters")
    text = _Translator(pattern).whole()
    return rf"\A(?:{text})\Z" if is_whole else text


@dataclass(frozen=True, slots=True)
class _Part:
    """
    A translated part of a pattern.

    Attributes:
        size: Its characters and constraints, repetitions written out.
        is_optional: Whether it matches the empty text, too.
    """

    text: str
    size: int = 1
    is_optional: bool = False


@dataclass(slots=True)
class _Translator:
    """Reads a pattern from its first to its last character; its methods return the parsed parts."""

    pattern: str
    place: int = 0
    depth: int = 0
    ignores_case: bool = False

    def whole(self) -> str:
        if self.pattern.startswith("***="):
            return "".join(_character(ord(letter)) for letter in self.pattern[4:])
        if self.pattern.startswith("***:"):
            self.place = 4
        if options := _OPTIONS.match(self.pattern, self.place):
            self._set_options(options[1])
        part = self.alternatives()
        if self.place < len(self.pattern):
            self._refuse("parentheses () not balanced")
        return part.text

    def _set_options(self, letters: str) -> None:
        self.place += 2
        for letter in letters:
            if letter not in "cist":
                self._refuse_here(f"the option {letter} is not supported")
            if letter in "ci":
                self.ignores_case = letter == "i"
            self.place += 1
        self.place += 1

    def alternatives(self) -> _Part:
        branches = [self.branch()]
        while self._takes("|"):
            branches.append(self.branch())
        is_optional = any(branch.is_optional for branch in branches)
        return self._bounded("|".join(branch.text for branch in branches), sum(branch.size for branch in branches), is_optional)

    def branch(self) -> _Part:
        texts: list[str] = []
        size = optional_size = 0
        is_optional = True
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            part = self.piece()
            texts.append(part.text)
            size += part.size
            is_optional &= part.is_optional
            optional_size = optional_size + part.size if part.is_optional else 0
            self._bounded("", optional_size, part.is_optional)
        return _Part("".join(texts), size, is_optional)

    def piece(self) -> _Part:
        if self._takes("^"):
            return _Part(r"\A", is_optional=True)
        if self._takes("$"):
            return _Part(r"\Z", is_optional=True)
        if looking := next((start for start in _LOOKING if self.pattern.startswith(start, self.place)), ""):
            return replace(self.group(looking, looking), is_optional=True)
        for mark, text in (("[[:<:]]", _BEGIN), ("[[:>:]]", _END)):
            if self._takes(mark):
                return _Part(text, _CONSTRAINT_SIZE, is_optional=True)
        if self._next() == "\\" and (constraint := _CONSTRAINTS.get(self._next(1))):
            self.place += 2
            return _Part(constraint, _CONSTRAINT_SIZE, is_optional=True)
        return self.repeated(self.atom())

    def repeated(self, part: _Part) -> _Part:
        mark = self._next()
        if mark and mark in "*+?":
            self.place += 1
            least, times = int(mark == "+"), 1
        elif self._is_bound():
            mark, least, times = self.bound()
        else:
            return part
        self._takes("?")  # the shortest or the longest: one of them is found exactly where the other is
        return self._bounded(part.text + mark, part.size * times, part.is_optional or not least)

    def bound(self) -> tuple[str, int, int]:
        bound = _BOUND.match(self.pattern, self.place)
        if bound is None:
            self._refuse_here("invalid repetition count(s)" if "}" in self.pattern[self.place :] else "braces {} not balanced")
        least = int(bound[1])
        most = least if bound[2] is None else int(bound[3] or least)
        if not least <= most <= _MAX_COUNT:
            self._refuse_here("invalid repetition count(s)")
        self.place = bound.end()
        return bound[0], least, max(most, 1)

    def atom(self) -> _Part:
        match self._next():
            case "(":
                if self._next(1) != "?":
                    return self.group("(", "(?:")
                if self.pattern.startswith("(?:", self.place):
                    return self.group("(?:", "(?:")
                self._refuse_here(f"{self.pattern[self.place : self.place + 4]} is not supported")
            case "[":
                return _Part(self.set())
            case "\\":
                return _Part(self.escape())
            case ".":
                self.place += 1
                return _Part(".")
            case "*" | "+" | "?":
                self._refuse_here("quantifier operand invalid")
            case "{" if self._is_bound():
                self._refuse_here("quantifier operand invalid")
        code = ord(self.pattern[self.place])
        self.place += 1
        return _Part(self.letter(code))

    def group(self, opening: str, text: str) -> _Part:
        self.place += len(opening)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(f"groups are nested more than {MAX_DEPTH} deep")
        inner = self.alternatives()
        if not self._takes(")"):
            self._refuse("parentheses () not balanced")
        self.depth -= 1
        return _Part(f"{text}{inner.text})", max(inner.size, 1), inner.is_optional)

    def letter(self, code: int) -> str:
        """Return the pattern of a character, in lower and upper case where case is ignored."""
        cases = self._cases(code)
        return _character(code) if len(cases) == 1 else _set([(case, case) for case in cases], is_negated=False)

    def escape(self) -> str:
        letter = self._next(1)
        if letter.lower() in _SHORTHANDS:
            self.place += 2
            return _set([*_CLASSES[_SHORTHANDS[letter.lower()]]], is_negated=letter.isupper())
        return self.letter(self.escaped_character())

    def escaped_character(self) -> int:
        letter = self._next(1)
        if not letter:
            self._refuse("invalid escape \\ sequence")
        if letter == "b":
            self._refuse_here(r"\b is not supported; \y is the begin or end of a word")
        if letter.isdigit():
            self._refuse_here("back references are not supported")
        if letter in _HEXADECIMAL:
            return self._hexadecimal(_HEXADECIMAL[letter])
        if letter == "c" and self._next(2).isascii() and self._next(2).isalpha():
            self.place += 3
            return ord(self.pattern[self.place - 1]) & 31
        if not letter.isascii() or (letter.isalnum() and letter not in _CHARACTERS):
            self._refuse_here("invalid escape \\ sequence")
        self.place += 2
        return _CHARACTERS.get(letter, ord(letter))

    def _hexadecimal(self, digits: re.Pattern[str]) -> int:
        match = digits.match(self.pattern, self.place + 2)
        code = int(match[0], 16) if match else 0
        if match is None or code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            self._refuse_here("invalid escape \\ sequence")
        self.place = match.end()
        return code

    def set(self) -> str:
        self.place += 1
        is_negated = self._takes("^")
        ranges: Ranges = []
        is_first = True
        while is_first or self._next() != "]":
            if not self._next():
                self._refuse("brackets [] not balanced")
            ranges += self.member(is_first=is_first)
            is_first = False
        self.place += 1
        return _set(ranges, is_negated=is_negated)

    def member(self, *, is_first: bool) -> Ranges:
        if self._next() == "[" and self._next(1) in (":", ".", "="):
            return self.named_class()
        if self._next() == "\\" and self._next(1) in _SHORTHANDS:
            self.place += 2
            return [*_CLASSES[_SHORTHANDS[self.pattern[self.place - 1]]]]
        if self._next() == "-" and not is_first and self._next(1) != "]":
            self._refuse_here("invalid character range")
        start = self.member_character()
        if self._next() != "-" or self._next(1) in ("]", ""):
            return [(case, case) for case in self._cases(start)]
        self.place += 1
        if self._next() == "[" and self._next(1) in (":", ".", "="):
            self._refuse_here("invalid character range")
        end = self.member_character()
        if start > end:
            self._refuse_here("invalid character range")
        if not self.ignores_case:
            return [(start, end)]
        if end > 127:
            self._refuse_here("a range beyond ASCII together with the option i is not supported")
        return [(case, case) for code in range(start, end + 1) for case in self._cases(code)]

    def member_character(self) -> int:
        if self._next() == "\\":
            return self.escaped_character()
        if not self._next():
            self._refuse("brackets [] not balanced")
        self.place += 1
        return ord(self.pattern[self.place - 1])

    def named_class(self) -> Ranges:
        match = _CLASS.match(self.pattern, self.place)
        if match is None:
            self._refuse_here(f"{self.pattern[self.place : self.place + 2]} is not supported")
        if match[1] not in _CLASSES:
            self._refuse_here("invalid character class")
        self.place = match.end()
        name = "alpha" if self.ignores_case and match[1] in ("lower", "upper") else match[1]
        return [*_CLASSES[name]]

    def _cases(self, code: int) -> list[int]:
        if not self.ignores_case:
            return [code]
        letter = chr(code)
        return sorted({code, *(ord(case) for case in (letter.lower(), letter.upper()) if len(case) == 1)})

    def _bounded(self, text: str, size: int, is_optional: bool) -> _Part:
        if size > (MAX_OPTIONAL if is_optional else MAX_PATTERN):
            self._refuse_here("regular expression is too complex")
        return _Part(text, size, is_optional)

    def _is_bound(self) -> bool:
        return self._next() == "{" and self._next(1).isascii() and self._next(1).isdigit()

    def _next(self, distance: int = 0) -> str:
        return self.pattern[self.place + distance : self.place + distance + 1]

    def _takes(self, text: str) -> bool:
        """Return whether the pattern continues with a text; if so, advance behind it."""
        is_there = self.pattern.startswith(text, self.place)
        if is_there:
            self.place += len(text)
        return is_there

    def _refuse(self, reason: str) -> NoReturn:
        raise QueryRefused(f"ERROR: invalid regular expression: {reason}")

    def _refuse_here(self, reason: str) -> NoReturn:
        self._refuse(f"{reason}, at character {self.place + 1}")


def _character(code: int) -> str:
    letter = chr(code)
    if not letter.isascii() or letter.isalnum():
        return letter
    return f"\\u{code:04x}" if not letter.isprintable() else f"\\{letter}"


def _set(ranges: Ranges, *, is_negated: bool) -> str:
    members = "".join(_character(start) if start == end else f"{_character(start)}-{_character(end)}" for start, end in sorted(set(ranges)))
    return f"[^{members}]" if is_negated else f"[{members}]"
