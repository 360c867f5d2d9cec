"""
Ruby's regular expressions on Python's `re`: translated once, where the two flavours differ.

Differences handled: `^ $` are line anchors and `^` is not one behind a final line break, `\\A \\z \\Z \\h \\H \\R \\e`,
`\\w \\d \\s` are ASCII, POSIX brackets are not, `(?m)` is "dot matches line break", `(?<name>…)`, `\\k<name>`, sets and `&&` inside
brackets. `\\g`, `\\G` and `\\K` are refused. Possessive quantifiers and atomic groups are the same in both (Python 3.11).
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from .errors import EvaluationError

__all__ = ["Regexp", "quoted", "translate"]


class Regexp:
    """A regular expression of the language; equal when the sources are. Compiled at the first use."""

    __slots__ = ("_pattern", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._pattern: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Raises EvaluationError when the source is not valid, or has no equivalent here."""
        if self._pattern is None:
            self._pattern = compiled(self.source)
        return self._pattern

    def search(self, text: str) -> re.Match[str] | None:
        return self.pattern.search(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regexp) and self.source == other.source

    def __hash__(self) -> int:
        return hash((Regexp, self.source))

    def __repr__(self) -> str:
        return f"Regexp({self.source!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Regexp, (self.source,))

    def __str__(self) -> str:
        """With delimiters: `/source/`, a slash inside escaped."""
        return "/" + _escaped_slashes(self.source) + "/"


def _escaped_slashes(source: str) -> str:
    if "/" not in source:
        return source
    out, escaped = [], False
    for char in source:
        if char == "/" and not escaped:
            out.append("\\")
        out.append(char)
        escaped = char == "\\" and not escaped
    return "".join(out)


_RUBY_WORDS = {
    "missing ), unterminated subpattern": "end pattern with unmatched parenthesis",
    "unbalanced parenthesis": "unmatched close parenthesis",
    "nothing to repeat": "target of repeat operator is not specified",
    "unterminated character set": "premature end of char-class",
    "bad escape (end of pattern)": "too short escape sequence",
}


@lru_cache(maxsize=4096)
def compiled(source: str) -> re.Pattern[str]:
    """The pattern for a Ruby regular expression; EvaluationError names what is wrong with it."""
    try:
        return re.compile(translate(source), re.MULTILINE)
    except re.error as error:
        raise EvaluationError(
            f"{_RUBY_WORDS.get(error.msg, error.msg)}: /{source}/", hint="The regular expression is not valid, or not supported here."
        ) from error
    except RecursionError as error:
        raise EvaluationError(f"too deeply nested: /{source[:80]}/") from error


def quoted(text: str) -> str:
    """`text` as a regular expression that matches itself, as Ruby's Regexp.escape writes it."""
    special = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f", "\v": "\\v", " ": "\\ "}
    return "".join(special.get(c) or ("\\" + c if c in ".*?+^$|\\()[]{}-#" else c) for c in text)


_ESCAPES = {
    "A": r"\A",
    "z": r"\Z",
    "Z": r"(?=\n?\Z)",
    "h": "[0-9a-fA-F]",
    "H": "[^0-9a-fA-F]",
    "w": "[a-zA-Z0-9_]",
    "W": "[^a-zA-Z0-9_]",
    "d": "[0-9]",
    "D": "[^0-9]",
    "s": r"[ \t\r\n\f\v]",
    "S": r"[^ \t\r\n\f\v]",
    "R": r"(?>\r\n|[\n\v\f\r\u0085\u2028\u2029])",
    "X": r"(?>\r\n|[^\u0300-\u036f][\u0300-\u036f]*)",
    "e": r"\x1b",
    "b": r"\b",
    "B": r"\B",
}
_IN_SET = {
    "h": "0-9a-fA-F",
    "w": "a-zA-Z0-9_",
    "d": "0-9",
    "s": r" \t\r\n\f\v",
    "H": r"\x00-/:-@G-`g-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "D": r"\x00-/:-\U0010ffff",
    "S": r"\x00-\x08\x0e-\x1f!-\U0010ffff",
    "e": r"\x1b",
    "b": r"\x08",
}
_LINE_START = r"(?:^(?!(?<=\n)\Z))"
_PROPERTIES: dict[str, Callable[[str], bool]] = {
    "alpha": lambda c: unicodedata.category(c)[0] in "LM" or unicodedata.category(c) == "Nl",
    "alnum": lambda c: unicodedata.category(c)[0] in "LMN",
    "digit": lambda c: unicodedata.category(c) == "Nd",
    "upper": str.isupper,
    "lower": str.islower,
    "space": lambda c: c.isspace() and not "\x1c" <= c <= "\x1f",
    "blank": lambda c: c == "\t" or unicodedata.category(c) == "Zs",
    "cntrl": lambda c: unicodedata.category(c) == "Cc",
    "punct": lambda c: unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~",
    "print": lambda c: unicodedata.category(c)[0] != "C",
    "graph": lambda c: unicodedata.category(c)[0] not in "CZ",
    "word": lambda c: unicodedata.category(c)[0] in "LMN" or unicodedata.category(c) == "Pc",
    "l": lambda c: unicodedata.category(c)[0] == "L",
    "lu": lambda c: unicodedata.category(c) == "Lu",
    "ll": lambda c: unicodedata.category(c) == "Ll",
    "n": lambda c: unicodedata.category(c)[0] == "N",
    "nd": lambda c: unicodedata.category(c) == "Nd",
    "p": lambda c: unicodedata.category(c)[0] == "P",
    "s": lambda c: unicodedata.category(c)[0] == "S",
    "z": lambda c: unicodedata.category(c)[0] == "Z",
    "letter": lambda c: unicodedata.category(c)[0] == "L",
    "han": lambda c: "CJK" in unicodedata.name(c, ""),
    "latin": lambda c: unicodedata.name(c, "").startswith("LATIN "),
    "greek": lambda c: unicodedata.name(c, "").startswith("GREEK "),
    "cyrillic": lambda c: unicodedata.name(c, "").startswith("CYRILLIC "),
}
_FIXED = {"xdigit": "0-9A-Fa-f", "ascii": r"\x00-\x7f", "any": r"\x00-\U0010ffff"}


@lru_cache(maxsize=64)
def _ranges(name: str, negated: bool) -> str:
    """The content of a bracket set for a property; of the Basic Multilingual Plane, where names and words live."""
    key = name.lower()
    if key in _FIXED and not negated:
        return _FIXED[key]
    if key == "xdigit":
        return r"\x00-/:-@G-`g-\U0010ffff"
    if key == "ascii":
        return r"\x80-\U0010ffff"
    test = _PROPERTIES.get(key)
    if test is None:
        raise re.error(f"invalid character property name {{{name}}}")
    parts = []
    start = None
    for code in range(0x10001):
        inside = code < 0x10000 and (not 0xD800 <= code < 0xE000) and bool(test(chr(code))) != negated
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            parts.append(f"\\u{start:04x}" if start == code - 1 else f"\\u{start:04x}-\\u{code - 1:04x}")
            start = None
    if negated:
        parts.append(r"\U00010000-\U0010ffff")
    return "".join(parts)


def _union(content: list[str], others: list[str]) -> str:
    parts = [f"[{''.join(content)}]"] if content else []
    return parts[0] if parts and not others else "(?:" + "|".join([*parts, *others]) + ")"


def translate(source: str) -> str:
    """`source`, a Ruby regular expression, as one for `re` with MULTILINE; re.error when it cannot be."""
    return _Translator(source).run()


class _Translator:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.extended = [False]

    def run(self) -> str:
        source, out = self.source, []
        while self.at < len(source):
            char = source[self.at]
            if char == "\\":
                out.append(self.escape())
            elif char == "[":
                out.append(self.char_set()[0])
            elif char == "(":
                out.append(self.group())
            elif char == ")":
                self.at += 1
                if len(self.extended) > 1:
                    self.extended.pop()
                out.append(")")
            elif char == "^":
                self.at += 1
                out.append(_LINE_START)
            elif char == "{":
                out.append(self.braces())
            elif self.extended[-1] and (char.isspace() or char == "#"):
                self.blank()
            else:
                self.at += 1
                out.append(char)
        return "".join(out)

    def blank(self) -> None:
        """White space and comments in `(?x)`."""
        if self.source[self.at] == "#":
            end = self.source.find("\n", self.at)
            self.at = len(self.source) if end < 0 else end + 1
        else:
            self.at += 1

    def braces(self) -> str:
        """`{n,m}` is a quantifier, any other brace a character; `{,m}` counts from 0. Python reads the same but for `{,}`."""
        found = re.compile(r"\{(\d*)(,?)(\d*)\}").match(self.source, self.at)
        if found and (found[1] or found[3]):
            self.at = found.end()
            text = found[0] if found[1] else "{0" + found[0][1:]
            if found[2] == "" and self.source[self.at : self.at + 1] == "+":  # {n}+ is a repetition in Ruby, possessive in Python
                self.at += 1
                return "{" + found[1] + ",}"
            return text
        self.at += 1
        return r"\{"

    def escape(self) -> str:
        source = self.source
        if self.at + 1 >= len(source):
            raise re.error("too short escape sequence")
        char = source[self.at + 1]
        self.at += 2
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "k":
            found = re.compile(r"<(\w+)>|'(\w+)'").match(source, self.at)
            if not found:
                raise re.error("invalid backref number/name")
            self.at = found.end()
            name = found[1] or found[2]
            return f"(?:\\{name})" if name.isdigit() else f"(?P={name})"
        if char in "pP":
            return "[" + self.property(char) + "]"
        if char in "GKg":
            raise re.error(f"\\{char} is not supported")
        if char in "uxc0" or (char.isdigit()):
            self.at -= 2
            return self.code()
        if char.isalpha():
            return {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "v": r"\v", "a": r"\a"}.get(char) or re.escape(char)
        return "\\" + char if char.isascii() else char

    def property(self, char: str) -> str:
        found = re.compile(r"\{(\^?)(\w+)\}").match(self.source, self.at)
        if not found:
            raise re.error("invalid character property name")
        self.at = found.end()
        return _ranges(found[2], (char == "P") != bool(found[1]))

    def code(self) -> str:
        r"""`\x41 \u0041 \u{41} \0 \12` and back references."""
        source, start = self.source, self.at
        for pattern in (r"\\x([0-9a-fA-F]{1,2})", r"\\u([0-9a-fA-F]{4})", r"\\u\{([0-9a-fA-F]{1,6})\}"):
            found = re.compile(pattern).match(source, start)
            if found:
                self.at = found.end()
                value = int(found[1], 16)
                if value > sys.maxunicode:
                    raise re.error("invalid Unicode range")
                return f"\\U{value:08x}"
        found = re.compile(r"\\(0[0-7]{0,2}|[1-9]\d*)").match(source, start)
        if not found:
            raise re.error("invalid escape")
        self.at = found.end()
        return f"\\U{int(found[1], 8):08x}" if found[1][0] == "0" else f"(?:\\{found[1]})"

    def group(self) -> str:
        source = self.source
        self.extended.append(self.extended[-1])
        for ruby, python in (("(?<=", "(?<="), ("(?<!", "(?<!"), ("(?:", "(?:"), ("(?=", "(?="), ("(?!", "(?!"), ("(?>", "(?>")):
            if source.startswith(ruby, self.at):
                self.at += len(ruby)
                return python
        found = re.compile(r"\(\?(?:<(\w+)>|'(\w+)')").match(source, self.at)
        if found:
            self.at = found.end()
            return f"(?P<{found[1] or found[2]}>"
        found = re.compile(r"\(\?#[^)]*\)").match(source, self.at)
        if found:
            self.at = found.end()
            self.extended.pop()
            return ""
        found = re.compile(r"\(\?([imxadu]*)(?:-([imx]*))?([:)])").match(source, self.at)
        if found:
            return self.options(found)
        if source.startswith("(?", self.at):
            raise re.error(f"undefined group option {source[self.at : self.at + 4]}")
        self.at += 1
        # With a named group in the expression, Ruby's plain groups do not capture.
        return "(?:" if re.search(r"\(\?<\w", source) else "("

    def options(self, found: re.Match[str]) -> str:
        """`(?im-x:…)` and `(?i)…`, which in Ruby holds to the end of the enclosing group."""
        self.at = found.end()
        on, off = found[1], found[2] or ""
        flags = ("i" if "i" in on else "") + ("s" if "m" in on else "")
        minus = ("i" if "i" in off else "") + ("s" if "m" in off else "")
        extended = self.extended[-1]
        if "x" in on:
            extended = True
        elif "x" in off:
            extended = False
        head = f"(?{flags}{'-' + minus if minus else ''}:" if flags or minus else "(?:"
        if found[3] == ":":
            self.extended[-1] = extended
            return head
        self.extended.pop()
        body = _Translator(self.rest_of_group())
        body.extended = [extended]
        return head + body.run() + ")"

    def rest_of_group(self) -> str:
        """The text up to the bracket that closes the group we are in, which stays; `at` is moved to it."""
        start, depth = self.at, 0
        source = self.source
        while self.at < len(source):
            char = source[self.at]
            if char == "\\":
                self.at += 1
            elif char == "[":
                self.char_set()
                continue
            elif char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    break
                depth -= 1
            self.at += 1
        return source[start : self.at]

    def char_set(self) -> tuple[str, str | None]:
        """
        A bracket set as an expression for one character, and its plain content when it is no more than that.

        Python has neither sets in sets nor `&&`: what is negated inside becomes an alternative, `&&` a lookahead.
        """
        source = self.source
        self.at += 1
        negated = source.startswith("^", self.at)
        self.at += negated
        unions: list[str] = []
        content: list[str] = []
        others: list[str] = []
        first = True
        while True:
            if self.at >= len(source):
                raise re.error("premature end of char-class")
            char = source[self.at]
            if char == "]" and not first:
                self.at += 1
                break
            first = False
            if source.startswith("&&", self.at):
                self.at += 2
                unions.append(_union(content, others))
                content, others = [], []
            else:
                self.set_item(char, content, others)
        if not unions and not others:
            plain = "".join(content)
            return (f"[^{plain}]", None) if negated else (f"[{plain}]", plain)
        *before, last = [*unions, _union(content, others)]
        whole = "".join(f"(?={union})" for union in before) + last
        return (rf"(?:(?!{whole})[\s\S])" if negated else f"(?:{whole})"), None

    def set_item(self, char: str, content: list[str], others: list[str]) -> None:
        found = re.compile(r"\[:(\^?)(\w+):\]").match(self.source, self.at)
        if found:
            self.at = found.end()
            content.append(_ranges(found[2], bool(found[1])))
        elif char == "[":
            expression, plain = self.char_set()
            if plain is None:
                others.append(expression)
            else:
                content.append(plain)
        elif char == "\\":
            content.append(self.set_escape())
        else:
            self.at += 1
            content.append("\\" + char if char in "[]&~|^" else char)

    def set_escape(self) -> str:
        char = self.source[self.at + 1 : self.at + 2]
        if char in ("p", "P"):
            self.at += 2
            return self.property(char)
        if char in _IN_SET:
            self.at += 2
            return _IN_SET[char]
        if char and (char in "ux" or char.isdigit()):
            if char.isdigit():
                found = re.compile(r"\\([0-7]{1,3})").match(self.source, self.at)
                if found:
                    self.at = found.end()
                    return f"\\U{int(found[1], 8):08x}"
            return self.code()
        self.at += 2
        if char.isalpha():
            return {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "v": r"\v", "a": r"\a"}.get(char) or re.escape(char)
        return "\\" + char if char.isascii() else char
