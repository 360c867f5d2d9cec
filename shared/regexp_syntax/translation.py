"""
Ruby's syntax of regular expressions, rewritten for the module `regex` (V1): only where the two differ.

They agree on sets and `&&`, properties, possessive and lazy quantifiers, atomic groups, `\\R`, `\\X`, `\\K`, `\\G` and calls of groups.
They differ in: `^` behind a final line break, `\\A \\z \\Z \\h`, `\\w \\d \\s` (ASCII in Ruby), `[[:punct:]]`, `[[:xdigit:]]`, what `(?m)`
and `(?i)` in the middle mean, names of groups, `\\g`, `\\k`, `\\u{}`, blanks of `(?x)`, quantifiers of quantifiers, look-behind, `(?~…)`,
and whatever only `regex` knows (fuzzy matching, set differences, verbs, named lists), which has to stay plain text.

Groups are numbered, never named: in Ruby several groups can have one name, and plain groups do not capture beside named ones.
Ruby's look-behind takes alternatives of any fixed lengths, each without look-ahead, atomic groups and references; for this, and for
absent operators, the number of characters that an expression matches is counted: None where that is not one number.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import regex

from .groups import Groups, OpenGroup


class InvalidRegexp(ValueError):
    """The source is not a regular expression of Ruby's; the text has the reason, as in Ruby."""


@dataclass(frozen=True, slots=True)
class TranslatedRegexp:
    """A regular expression as `regex` takes it, and the numbers of its named groups."""

    text: str
    group_numbers: Mapping[str, tuple[int, ...]]


def translate(source: str) -> TranslatedRegexp:
    """Return `source`, a regular expression of Ruby's, as one for `regex` with V1 and MULTILINE; raise InvalidRegexp."""
    first = _Translator(source, Groups())
    text = first.run()
    if first.refers_to_groups or first.groups.numbers:  # names and numbers may be used before the group stands there
        first = _Translator(source, first.groups)
        text = first.run()
    if not first.looks_behind_well:
        raise InvalidRegexp("invalid pattern in look-behind")
    return TranslatedRegexp(text, {name: tuple(numbers) for name, numbers in first.groups.numbers.items()})


_LINE_START = r"(?:^(?!(?<=\n)\Z))"
_WORD, _DIGIT, _SPACE, _HEX = "a-zA-Z0-9_", "0-9", r"\ \t\r\n\f\v", "0-9a-fA-F"
_CLASSES = {"w": _WORD, "d": _DIGIT, "s": _SPACE, "h": _HEX}
_ANCHORS = {"A": r"\A", "z": r"\Z", "Z": r"(?=\n?\Z)", "b": r"\b", "B": r"\B", "G": r"\G", "K": r"\K"}
_SEQUENCES = {"R": r"(?>\r\n|[\n\v\f\r\u0085\u2028\u2029])", "X": r"\X"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_POSIX = frozenset(
    ["alpha", "alnum", "digit", "upper", "lower", "space", "blank", "cntrl", "punct", "print", "graph", "word", "xdigit", "ascii"]
)
_ASCII_PROPERTIES = {"xdigit": _HEX, "ascii": r"\x00-\x7f"}
_ASCII_PUNCTUATION = r"!-/:-@\[-`\{-~"
_QUANTIFIER = re.compile(r"([*+?])([?+]?)|(\{(?:\d+(?:,\d*)?|,\d+)\})(\??)")
_GROUP_NAME = re.compile(r"\(\?(?:<([^\W\d][^>)]*)>|'([^\W\d][^')]*)')")
_GROUP_OPTIONS = re.compile(r"\(\?([imxadu]*)(?:-([imx]*))?([:)])")
_CONDITION = re.compile(r"\(\?\((?:<([^>]+)>|'([^']+)'|(\d+))\)")
_REFERENCE = re.compile(r"<([^>]+)>|'([^']+)'")
_PROPERTY = re.compile(r"\{(\^?)([\w -]*)\}")
_POSIX_BRACKET = re.compile(r"\[:(\^?)(\w+):\]")
_LOOK_BEHIND = frozenset(["(?<=", "(?<!"])
_NOT_BEHIND = frozenset(["(?=", "(?!", "(?>", "(?~", "(?("])
_LARGEST_REPEAT = 100_000


def _escape(char: str) -> str:
    """Return one character as `regex` reads it anywhere, also in sets."""
    return char if (char.isalnum() and char.isascii()) or char == "_" else f"\\U{ord(char):08x}"


def _property(name: str, negated: bool) -> str:
    known = re.sub(r"[ _-]", "", name).lower()
    if known in _ASCII_PROPERTIES:
        return f"[{'^' if negated else ''}{_ASCII_PROPERTIES[known]}]"
    if not _is_property(name):
        raise InvalidRegexp(f"invalid character property name {{{name}}}")
    return rf"\{'P' if negated else 'p'}{{{name}}}"


@lru_cache(maxsize=256)
def _is_property(name: str) -> bool:
    try:
        regex.compile(rf"\p{{{name}}}", regex.VERSION1)
    except regex.error:
        return False
    return True


class _Translator:
    """One pass over the source; syntax that is not listed here is copied."""

    def __init__(self, source: str, known: Groups) -> None:
        self.source = source
        self.known = known
        self.groups = Groups()
        self.at = 0
        self.out: list[str] = []
        self.open = [OpenGroup(0, extended=False, unicode=False)]
        self.atom: int | None = None  # where in `out` begins what a quantifier would repeat
        self.atom_lengths: tuple[int | None, int | None] = (0, 0)  # before it, and its own
        self.looks_behind_well = True
        self.quantified = False
        self.refers_to_groups = False

    def run(self) -> str:
        source = self.source
        while self.at < len(source):
            char = source[self.at]
            if char in "*+?{" and (match := _QUANTIFIER.match(source, self.at)):
                self.quantify(match)
            elif char == "\\":
                self.translate_escape()
            elif char == "[":
                self.add(self.read_set())
            elif char == "(":
                self.open_group()
            elif char == ")":
                self.close_group()
            elif self.open[-1].extended and (char.isspace() or char == "#"):
                self.skip_blank(char)
            else:
                self.at += 1
                self.add({"^": _LINE_START, ".": ".", "$": "$", "|": "|"}.get(char) or _escape(char), 0 if char in "^$|" else 1)
                if char == "|":
                    self.atom = None
                    group = self.open[-1]
                    group.lengths.append(group.length)
                    group.length = group.prefix
        if len(self.open) > 1:
            raise InvalidRegexp("end pattern with unmatched parenthesis")
        self.groups.complete = True
        return "".join(self.out) + ")" * self.open[0].option_groups

    def add(self, text: str, length: int | None = 1) -> None:
        """Append an item that a quantifier can repeat."""
        self.count(length)
        self.atom = len(self.out)
        self.quantified = False
        self.out.append(text)

    def count(self, length: int | None) -> None:
        """Record that the group continues with an item of this length."""
        group = self.open[-1]
        self.atom_lengths = (group.length, length)
        group.length = None if group.length is None or length is None else group.length + length

    def skip_blank(self, char: str) -> None:
        """White space and comments of `(?x)`."""
        end = self.source.find("\n", self.at) if char == "#" else self.at
        self.at = len(self.source) if end < 0 else end + 1

    def quantify(self, match: re.Match[str]) -> None:
        """`a**`, `a+{2}` and `a{2}+` repeat a repetition in Ruby; `a{2}?` makes it optional."""
        if self.atom is None:
            raise InvalidRegexp("target of repeat operator is not specified")
        self.at = match.end()
        sign, suffix, interval, lazy = match.groups(default="")
        if self.quantified:
            self.wrap(self.atom)
        if interval:
            least, _, most = interval[1:-1].partition(",")
            if any(len(number) > 6 or int(number) > _LARGEST_REPEAT for number in (least, most) if number):
                raise InvalidRegexp("too big number for repeat range")
            if least and most and int(least) > int(most):
                raise InvalidRegexp("upper is smaller than lower in repeat range")
            self.out.append(interval if least else "{0" + interval[1:])
            most = most if "," in interval else least
            if lazy and "," not in interval:
                self.wrap(self.atom)
        before, length = self.atom_lengths
        self.open[-1].length = before
        times = int(least or 0) if interval and not lazy and int(least or 0) == int(most or -1) else None
        self.count(None if length is None or times is None else length * times)
        self.atom_lengths = (before, self.atom_lengths[1])
        self.out.append(sign + suffix + lazy)
        self.quantified = True

    def wrap(self, start: int) -> None:
        self.out[start] = "(?:" + self.out[start]
        self.out.append(")")

    # --- escapes

    def translate_escape(self) -> None:
        source, start = self.source, self.at
        char = source[start + 1 : start + 2]
        if not char:
            raise InvalidRegexp("too short escape sequence")
        if char.isdigit() and char != "0" and self.is_reference():
            return
        if char in "gk" and source[start + 2 : start + 3] in ("<", "'"):
            self.refer(char)
        elif char in _ANCHORS or char in _SEQUENCES:
            self.at += 2
            self.add(_ANCHORS.get(char) or _SEQUENCES[char], 0 if char in _ANCHORS else None)
        elif (class_ := self.read_class()) is not None:
            self.add(class_)
        else:
            for code in self.read_codes():
                self.add(_escape(code))

    def read_class(self) -> str | None:
        r"""Return a class such as `\w` or `\p{Alpha}` as a set; None when there is none at this place."""
        char = self.source[self.at + 1 : self.at + 2]
        if char in ("p", "P"):
            match = _PROPERTY.match(self.source, self.at + 2)
            if not match:
                name = re.compile(r"\{?([^}]{0,40})").match(self.source, self.at + 2)
                raise InvalidRegexp(f"invalid character property name {{{name[1] if name else ''}}}")
            self.at = match.end()
            return _property(match[2], (char == "P") != bool(match[1]))
        if not char or char.lower() not in _CLASSES:
            return None
        self.at += 2
        if self.open[-1].unicode and char not in "hH":
            return "\\" + char
        return f"[{'^' if char.isupper() else ''}{_CLASSES[char.lower()]}]"

    def read_codes(self) -> str:
        r"""Return the characters of an escape: one, or several of `\u{41 42}`."""
        source, start = self.source, self.at
        char = source[start + 1 : start + 2]
        self.at += 2
        if not char:
            raise InvalidRegexp("too short escape sequence" if start else "premature end of char-class")
        if char == "u":
            match = re.compile(r"([0-9a-fA-F]{4})|\{\s*([0-9a-fA-F]{1,8}(?:\s+[0-9a-fA-F]{1,8})*)\s*\}").match(source, self.at)
            if not match:
                raise InvalidRegexp("invalid Unicode escape")
            self.at = match.end()
            codes = [int(digits, 16) for digits in (match[1] or match[2]).split()]
            if any(code > sys.maxunicode or 0xD800 <= code < 0xE000 for code in codes):
                raise InvalidRegexp("invalid Unicode range")
            return "".join(map(chr, codes))
        if char == "x":
            return self.read_bytes(start)
        if char in "01234567":
            match = re.compile(r"[0-7]{1,3}").match(source, start + 1)
            assert match is not None
            self.at = match.end()
            if int(match[0], 8) > 0x7F:
                raise InvalidRegexp("invalid escape code" if int(match[0], 8) > 0xFF else "invalid multibyte escape")
            return chr(int(match[0], 8))
        if char in "cCM" and (match := re.compile(r"\\(?:c|C-)([\x20-\x7e])").match(source, start)):
            self.at = match.end()
            return chr(ord(match[1]) & 0x1F)
        return _CONTROLS.get(char, char)

    def read_bytes(self, start: int) -> str:
        r"""Return the characters of `\x41`, or of bytes of UTF-8 that stand together: `\xc3\xa9`."""
        match = re.compile(r"\\x([0-9a-fA-F]{1,2})").match(self.source, start)
        if match is None:
            raise InvalidRegexp("invalid hex escape")
        self.at = match.end()
        if int(match[1], 16) < 0x80:
            return chr(int(match[1], 16))
        match = re.compile(r"(?:\\x[89a-fA-F][0-9a-fA-F])+").match(self.source, start)
        try:
            text = bytes.fromhex(match[0].replace("\\x", "")).decode() if match else ""
        except UnicodeDecodeError:
            text = ""
        if not match or not text:
            raise InvalidRegexp("invalid multibyte escape")
        self.at = match.end()
        return text

    # --- references to groups

    def is_reference(self) -> bool:
        r"""Translate `\1`, and return whether it is a reference: beyond the existing groups, `\10` is a character in octal."""
        match = re.compile(r"[1-9]\d{0,5}").match(self.source, self.at + 1)
        assert match is not None
        number = int(match[0])
        self.refers_to_groups = True
        if self.known.complete:
            if number > self.known.count and len(match[0]) > 1 and match[0][0] not in "89":
                return False
            if self.known.numbers:
                raise InvalidRegexp("numbered backref/call is not allowed. (use name)")
            if number > self.known.count:
                raise InvalidRegexp("invalid backref number/name")
        self.at = match.end()
        self.add(rf"(?:\{number})", None)
        return True

    def refer(self, kind: str) -> None:
        r"""`\k<name>` matches a group's text, `\g<name>` its expression again; both also take numbers and relative numbers."""
        match = _REFERENCE.match(self.source, self.at + 2)
        if not match:
            raise InvalidRegexp("invalid backref number/name" if kind == "k" else "invalid group name <>")
        self.at = match.end()
        self.refers_to_groups = True
        name = match[1] or match[2]
        if not self.known.complete:
            self.add("(?:)", None)
            return
        numbers = self.numbers_of(name)
        if kind == "g":
            if len(numbers) > 1:
                raise InvalidRegexp(f"multiplex definition name <{name}> call")
            self.add(f"(?{numbers[0]})" if numbers[0] else "(?R)", self.known.lengths.get(numbers[0]))
        else:
            self.add("(?:" + "|".join(rf"\{number}" for number in reversed(numbers)) + ")", None)

    def numbers_of(self, name: str) -> list[int]:
        """Return the numbers of the groups that a name, a number or a distance such as -1 refers to."""
        digits = re.fullmatch(r"([+-]?)(\d{1,6})", name)
        if digits is None:
            if name not in self.known.numbers:
                raise InvalidRegexp(f"undefined name <{name}> reference")
            return self.known.numbers[name]
        number = int(digits[2])
        if digits[1] == "-":
            number = self.groups.count + 1 - number
        elif digits[1]:
            number += self.groups.count
        if self.known.numbers and name != "0":
            raise InvalidRegexp("numbered backref/call is not allowed. (use name)")
        if not 0 <= number <= self.known.count:
            raise InvalidRegexp("invalid backref number/name")
        return [number]

    # --- groups

    def open_group(self) -> None:
        source, outer = self.source, self.open[-1]
        if source.startswith("(?#", self.at):
            end = source.find(")", self.at)
            if end < 0:
                raise InvalidRegexp("end pattern in group")
            self.at = end + 1
            return
        if (match := _GROUP_OPTIONS.match(source, self.at)) and match[0] != "(?:":
            self.set_options(match)
            return
        group = OpenGroup(len(self.out), outer.extended, outer.unicode)
        for plain in ("(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?~"):
            if source.startswith(plain, self.at):
                self.enter(group, plain, self.at + len(plain), plain)
                return
        if match := _GROUP_NAME.match(source, self.at):
            self.groups.named += 1
            self.groups.numbers.setdefault(match[1] or match[2], []).append(self.groups.named)
            group.number = self.groups.named
            self.enter(group, "(", match.end(), "(")
        elif match := _CONDITION.match(source, self.at):
            self.refers_to_groups = True
            numbers = self.numbers_of(match[1] or match[2] or match[3]) if self.known.complete else []
            self.enter(group, f"(?({numbers[0]})" if numbers else "(?:", match.end(), "(?(")
        elif source.startswith("(?", self.at):
            named = re.compile(r"\(\?[<'](\w*)").match(source, self.at)
            raise InvalidRegexp(f"invalid group name <{named[1]}>" if named else "undefined group option")
        elif self.known.numbers:
            self.enter(group, "(?:", self.at + 1, "(?:")
        else:
            self.groups.plain += 1
            group.number = self.groups.plain
            self.enter(group, "(", self.at + 1, "(")

    def enter(self, group: OpenGroup, text: str, end: int, opener: str) -> None:
        around = {outer.opener for outer in self.open}
        if (opener in _NOT_BEHIND and around & _LOOK_BEHIND) or (opener == "(" and "(?<!" in around):
            self.looks_behind_well = False
        group.opener = opener
        self.open.append(group)
        self.out.append(text)
        self.at = end
        self.atom = None

    def close_group(self) -> None:
        if len(self.open) == 1:
            raise InvalidRegexp("unmatched close parenthesis")
        self.at += 1
        group = self.open.pop()
        lengths = group.all_lengths
        self.out.append(")" * (group.option_groups + 1))
        length = lengths.pop() if len(lengths) == 1 else None
        if group.opener in _LOOK_BEHIND and None in group.all_lengths:
            self.looks_behind_well = False
        if group.opener == "(?~":
            self.write_absent(group, length)
        outer, first = self.open[-1], group.start
        is_whole = (
            outer.opener in {"(?:", *_LOOK_BEHIND} and not outer.lengths and outer.length == 0 and self.source.startswith(")", self.at)
        )
        self.groups.lengths[group.number] = length
        self.count(0 if group.opener in {"(?=", "(?!", *_LOOK_BEHIND} else None if group.opener in ("(?~", "(?(") else length)
        if group.opener == "(?:" and is_whole and outer.optioned is None:
            outer.lengths, outer.length = list(group.all_lengths), next(iter(group.all_lengths))
        self.atom = first
        self.quantified = False

    def write_absent(self, group: OpenGroup, length: int | None) -> None:
        """`(?~ab)` is the longest text, or a shorter one, without `ab` in it: up to where that begins, and all of it but its end."""
        absent = "".join(self.out[group.start + 1 :])[:-1]
        if 0 in group.all_lengths:
            self.out[group.start :] = ["(?!)"]
        elif length is None:
            raise InvalidRegexp("absent operators, (?~…), are supported for expressions of one length only")
        else:
            self.out[group.start :] = [f"(?:(?:(?!{absent})(?s:.))*(?s:.){{0,{length - 1}}})"]

    def set_options(self, match: re.Match[str]) -> None:
        """`(?im-x:…)`, and `(?i)`, which in Ruby takes the rest of the enclosing group along, alternatives too."""
        on, off = match[1], match[2] or ""
        flags = "".join(python for ruby, python in (("i", "i"), ("m", "s")) if ruby in on)
        cleared = "".join(python for ruby, python in (("i", "i"), ("m", "s")) if ruby in off)
        text = f"(?{flags}{'-' + cleared if cleared else ''}:" if flags or cleared else "(?:"
        outer = self.open[-1]
        extended = "x" in on or (outer.extended and "x" not in off)
        unicode = "u" in on or (outer.unicode and not set("ad") & set(on))
        if match[3] == ":":
            self.enter(OpenGroup(len(self.out), extended, unicode), text, match.end(), "(?i:")
            return
        self.out.append(text)
        self.at = match.end()
        self.atom = None
        outer.option_groups += 1
        if outer.optioned is None:
            outer.optioned, outer.lengths = outer.lengths, []
        outer.prefix = outer.length
        outer.extended, outer.unicode = extended, unicode

    # --- sets

    def read_set(self) -> str:
        """Return the bracket set at this place; each character escaped, each range made of two of them."""
        source = self.source
        self.at += 1
        negated = source.startswith("^", self.at)
        self.at += negated
        intersected: list[list[str]] = [[]]
        first = True
        while not source.startswith("]", self.at) or (first and "]" in source[self.at + 1 :]):
            if self.at >= len(source):
                raise InvalidRegexp("premature end of char-class")
            if source.startswith("&&", self.at):
                self.at += 2
                intersected.append([])
            else:
                intersected[-1].append(self.read_item())
            first = False
        if first:
            raise InvalidRegexp("empty char-class")
        self.at += 1
        never = r"[^\x00-\U0010ffff]"
        members = ["".join(items) for items in intersected]
        inside = members[0] if len(members) == 1 else "&&".join(f"[{items}]" if items else never for items in members)
        return f"[{'^' if negated else ''}{inside}]"

    def read_item(self) -> str:
        """Return one part of a set: a set, a class, a character or a range of characters."""
        source = self.source
        if match := _POSIX_BRACKET.match(source, self.at):
            self.at = match.end()
            name = match[2].lower()
            if name not in _POSIX:
                raise InvalidRegexp("invalid POSIX bracket type")
            if name == "punct":
                return rf"[{match[1]}\p{{punct}}{_ASCII_PUNCTUATION}]"
            return _property(name, bool(match[1]))
        if source[self.at] == "[":
            return self.read_set()
        if source[self.at] == "\\" and (class_ := self.read_class()) is not None:
            return class_
        characters = self.read_characters()
        low, text = characters[-1], "".join(map(_escape, characters[:-1]))
        if source[self.at : self.at + 1] != "-" or source[self.at + 1 : self.at + 2] in ("]", "", "[") or source.startswith("-&&", self.at):
            return text + _escape(low)
        self.at += 1
        if source[self.at] == "\\" and self.read_class() is not None:
            raise InvalidRegexp("char-class value at end of range")
        characters = self.read_characters()
        if low > characters[0]:
            raise InvalidRegexp("empty range in char class")
        return text + f"{_escape(low)}-" + "".join(map(_escape, characters))

    def read_characters(self) -> str:
        """Return the characters of a set at this place, or those of an escape."""
        char = self.source[self.at]
        if char != "\\":
            self.at += 1
            return char
        if self.source.startswith("\\b", self.at):
            self.at += 2
            return "\b"
        return self.read_codes()
