"""
Source text to tokens.

A token is a plain tuple `(kind, text, at, end)`. Kinds: an operator is its own kind and so is a keyword; the others are `name`, `word`,
`ref`, `variable`, `number`, `boolean`, `string`, `regex`, `dqpre dqmid dqpost` (the literal parts of an interpolated string, with the
tokens of the expressions between them), `heredoc` (its text follows as string tokens), `render`, `render=` (templates), `other`, and
`end`. Three operators have a second kind that depends on what stands before them: ` (` first on its line, ` [` after white space,
`?{` after `?`.

Text that is not a token becomes one token of kind `error`, whose text is the ParseError that the parser raises when it arrives there: an
error of syntax before it is reported first, as in the reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import Location, ParseError

from . import heredoc, strings
from .nodes import LexerWarning
from .source import Source

Token = tuple[str, str, int, int]
"""Kind, text, offset of the first character, and offset behind the last character."""


# fmt: off
KEYWORDS: frozenset[str] = frozenset((
    "and", "attr", "case", "class", "default", "define", "else", "elsif", "false", "function", "if", "in", "inherits", "node", "or",
    "private", "true", "type", "undef", "unless",
))
# After these a slash is a division; after anything else it may begin a regular expression.
_OPERANDS = frozenset((
    ")", "]", "|>", "|>>", "name", "ref", "number", "string", "boolean", "dqpost", "heredoc", "regex", "variable", "word",
))
# fmt: on

_BLANK = heredoc.BLANK[1:-1]
_SPACE = frozenset(" \t\r\n\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))

# The white space is not taken possessively: before 3.11.5, CPython loses its place in such a group when a part of it backtracks.
_PATTERN = r"""
    ( (?: [SPACE]++ | \#[^\n]*+ | /\*[\s\S]*?\*/ )* )
    (?:
        {epp}
        (?P<word> (?: (?:::)? [a-z_] (?:[\w-]*\w)? )+ )
      | \$ (?P<variable> (?:::)? (?:\w+::)* \w+ )
      | ' (?P<single> [^'\\]*+ (?:\\.[^'\\]*+)*+ ) '
      | (?P<op> => | [,.;)\]}}] | :(?!:) | \|>>? | \| | == | =~ | = | \+= | \+> | \+ | -> | -= | - | != | !~ | ! | ~> | ~
              | <<\| | << | <= | <\| | <- | <~ | < | >> | >= | > | @@ | @(?!\() | [?*%] )
      | (?P<brace> \{{ )
      | (?P<bracket> \[ )
      | (?P<paren> \( )
      | (?P<ref> (?: (?:::)? [A-Z]\w* )+ )
      | " (?P<double> [^"\\$]*+ ) "
      | (?P<interpolated> " )
      | (?P<number> (?: 0[xX][0-9A-Fa-f]+ | \d+ (?:\.\d+)? (?:[eE]-?\d+)? ) \b )
      | (?P<slash> / )
      | (?P<heredoc> @\( )
      | (?P<colons> :: )
      | (?P<badnumber> \d )
      | (?P<unclosed> ' )
      | (?P<dollar> \$ )
      | (?P<end> \Z )
      | (?P<other> [\s\S] )
    )
"""


def _mode(epp: str) -> Callable[[str, int], re.Match[str] | None]:
    pattern = _PATTERN.format(epp=epp).replace("SPACE", _BLANK + r"\r\n")
    return re.compile(pattern, re.VERBOSE | re.ASCII | re.DOTALL).match


_CODE = _mode("")
_EPP_CODE = _mode("(?P<close> -?%> ) |")

_REGEX = re.compile(r"/[^/\\]*+(?:\\.[^/\\]*+)*+/", re.DOTALL)
_SCANNED = frozenset(("boolean", "name", "word", "ref", "number", "variable", "regex"))
_HEX = re.compile(r"0[xX][0-9A-Fa-f]+")
_OCTAL = re.compile(r"0[0-7]+")
_DECIMAL_START = re.compile(r"\d+[eE.]", re.ASCII)
_DECIMAL = re.compile(r"\d+(?:\.\d+)?(?:[eE]-?\d+)?", re.ASCII)
_NAME = re.compile(r"(?:::)?(?:\w+::)*\w+", re.ASCII)
_SEGMENT = re.compile(r'([^"\\$]*+(?:\\.[^"\\$]*+)*+)("|\$\{?)', re.DOTALL)
_UNQUOTED = re.compile(r"([^\\$]*+(?:\\(?:.|\Z)[^\\$]*+)*+)(\$\{?|\Z)", re.DOTALL)
_UNQUOTED_PLAIN = re.compile(r"([^$]*+)(\$\{?|\Z)")
_COMMENT_END = re.compile(r"[^%]%>", re.DOTALL)
_TRIMMED = re.compile(r"[ \t]*\r?(?:\n|\Z)?")
_WORD = re.compile(r"\w+", re.ASCII)
_UNICODE_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class TokenizedSource:
    """All tokens of a source; the last is of kind `end` or `error`. In the latter case the parser raises `error` when it arrives there."""

    tokens: list[Token]
    warnings: list[LexerWarning]
    error: ParseError | None = None


def lex(source: Source, *, epp: bool = False, tasks: bool = False, max_depth: int = 100) -> TokenizedSource:
    """
    Return the tokens of a source.

    `tasks` makes `plan` a keyword; `max_depth` bounds strings within strings.
    Source: language reference 1 and 12.1.
    """
    if source.text.startswith(_UNICODE_BOM):
        raise ParseError(
            "Illegal UTF-8 Byte Order mark at beginning of input: [EF BB BF] - remove these from the puppet source",
            where=Location(source.file) if source.file else None,
        )
    size = len(source.text)
    lexer = _Lexer(source, source.text, KEYWORDS | {"plan"} if tasks else KEYWORDS, max_depth)
    try:
        if epp:
            lexer.template()
        else:
            lexer.code(0, nested=False)
    except ParseError as error:
        if lexer.compound is not None:
            del lexer.out[lexer.compound :]
        lexer.out.append(("error", "", size, size))
        return TokenizedSource(lexer.out, lexer.warnings, error)
    lexer.out.append(("end", "", size, size))
    return TokenizedSource(lexer.out, lexer.warnings)


class _Lexer:
    """Reads the tokens of one text: of a file, or of the inside of a heredoc."""

    def __init__(self, source: Source, text: str, keywords: frozenset[str], depth: int, place: Callable[[int], int] | None = None) -> None:
        self.source = source
        self.text = text
        self.keywords = keywords
        self.depth = depth  # how many more strings may be nested
        self.place = place  # offset in `text` to offset in the source; None: the same
        self.out: list[Token] = []
        self.warnings: list[LexerWarning] = []
        self.compound: int | None = None  # where in `out` the outermost unfinished string or heredoc begins
        self.jump: int | None = None  # where the line behind the pending heredoc texts starts
        self.epp = False
        self.rendering = False  # inside <%= %>
        self.quote = '"'  # what the reference names as standing before an unclosed string, or
        self.inside: tuple[int, int, int] | None = None  # the interpolation to look for it in: first token, first and last offset

    def fail(self, message: str, at: int) -> ParseError:
        return self.source.error(message, self.place(at) if self.place else at)

    def warn(self, message: str, at: int) -> None:
        self.warnings.append(LexerWarning(self.place(at) if self.place else at, message))

    # --- code -------------------------------------------------------------------------------------------------

    def code(self, pos: int, *, nested: bool) -> int:
        """
        Read code from `pos` to the end, or when `nested` to the `}` that closes an interpolation.

        Returns the offset behind it; the end of the text when nothing closes it.
        """
        text, out, match = self.text, self.out, (_EPP_CODE if self.epp else _CODE)
        append, keywords = out.append, self.keywords
        braces = 0
        while True:
            m = match(text, pos)
            assert m is not None
            at = m.end(1)
            if self.jump is not None and at > pos:
                line = self._line_break(pos, at)
                if line:
                    pos, self.jump = self.jump, None
                    continue
            pos = m.end()
            kind = m.lastgroup
            if kind == "op":
                op = text[at:pos]
                if op == "}":
                    if braces == 0 and nested:
                        return pos
                    braces -= 1
                append((op, op, at, pos))
            elif kind == "word":
                word = text[at:pos]
                if word in keywords:
                    append(("boolean" if word in ("true", "false") else word, word, at, pos))
                else:
                    append(("word" if "-" in word or word[0] == "_" or "::_" in word else "name", word, at, pos))
            elif kind == "variable":
                append(("variable", text[at + 1 : pos], at, pos))
            elif kind == "single":
                append(("string", strings.single_quoted(text[at + 1 : pos - 1]), at, pos))
            elif kind == "double":
                append(("string", text[at + 1 : pos - 1], at, pos))
            elif kind == "brace":
                braces += 1
                append(("?{" if out and out[-1][0] == "?" else "{", "{", at, pos))
            elif kind == "bracket":
                append((" [" if at == 0 or text[at - 1] in _SPACE else "[", "[", at, pos))
            elif kind == "end":
                return at
            elif kind == "close":
                if self.rendering:
                    append((m["close"], m["close"], at, pos))
                pos = self.literal(pos, trim=m["close"] == "-%>")
            else:
                pos = self._rare(kind, m, at, pos)

    def _rare(self, kind: str | None, m: re.Match[str], at: int, pos: int) -> int:
        """Read a token of a kind that needs more than its pattern; return the offset behind it."""
        text, append = self.text, self.out.append
        if kind == "ref":
            if text.startswith("::", pos):
                full = text[at] == ":"
                raise self.fail(f"Illegal {'fully qualified ' if full else ''}class reference", pos + (3 if full else 1))
            append(("ref", m["ref"], at, pos))
        elif kind == "paren":
            line = text[text.rfind("\n", 0, at) + 1 : at]
            append((" (" if _SPACE.issuperset(line) else "(", "(", at, pos))
        elif kind == "interpolated":
            return self._compound(self._string, at)
        elif kind == "heredoc":
            return self._compound(self._heredoc, at)
        elif kind == "number":
            self._check_number(m["number"], at)
            append(("number", m["number"], at, pos))
        elif kind == "slash":
            return self._slash(at)
        elif kind == "dollar":
            append(("variable", "", at, pos))
        elif kind == "badnumber":
            self._bad_number(at)
        elif kind == "unclosed":
            raise self._unclosed("'", pos)
        elif kind == "colons":
            raise self.fail("Illegal fully qualified name", pos)
        else:
            append(("other", "", at, pos))
        return pos

    def _line_break(self, pos: int, end: int) -> bool:
        """Return whether a line ends between two offsets that enclose only white space and comments."""
        text = self.text
        while pos < end:
            if text[pos] == "\n":
                return True
            if text.startswith("/*", pos):
                pos = text.index("*/", pos + 2) + 2
            else:
                pos += 1
        return False

    def _slash(self, at: int) -> int:
        text = self.text
        if text.startswith("/*", at):
            raise self.fail("Unclosed multiline comment", at)
        if not self.out or self.out[-1][0] not in _OPERANDS:
            m = _REGEX.match(text, at)
            if m:
                self.out.append(("regex", m[0][1:-1].replace("\\/", "/"), at, m.end()))
                return m.end()
        self.out.append(("/", "/", at, at + 1))
        return at + 1

    def _check_number(self, number: str, at: int) -> None:
        if number[0] == "0" and len(number) > 1:
            if number[1] in "xX":
                if not _HEX.fullmatch(number):
                    raise self.fail(f"Not a valid hex number {number}", at)
                return
            if number[1] != ".":
                if not _OCTAL.fullmatch(number):
                    raise self.fail(f"Not a valid octal number {number}", at)
                return
        if _DECIMAL_START.match(number):
            if not _DECIMAL.fullmatch(number):
                raise self.fail(f"Not a valid decimal number {number}", at)
        elif not number.isdecimal():
            raise self.fail(f"Illegal number '{number}'", at)

    def _bad_number(self, at: int) -> None:
        """Raise the error for digits followed by other characters; a preceding `1.` is part of the number that was meant."""
        word = _WORD.match(self.text, at)
        assert word is not None
        start = at
        if self.text[at - 1 : at] == "." and self.text[at - 2 : at - 1].isdecimal():
            start = at - 1
            while start and self.text[start - 1].isdecimal():
                start -= 1
        number = self.text[start : word.end()]
        self._check_number(number, start)
        raise self.fail(f"Illegal number '{number}'", start)

    def _unclosed(self, quote: str, at: int) -> ParseError:
        after = '"\'"' if quote == "'" else f"'{quote}'"
        rest = self.text[at : at + 5]
        shown = rest.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r") + "..." if rest else "<eof>"
        return self.fail(f"Unclosed quote after {after} followed by '{shown}'", at)

    # --- strings ----------------------------------------------------------------------------------------------

    def _compound(self, read: Callable[[int], int], at: int) -> int:
        """Read a construct of many tokens; an error inside it removes all of its tokens."""
        if self.depth <= 0:
            raise self.fail("Strings are nested too deeply", at)
        self.depth -= 1
        outermost = self.compound is None
        if outermost:
            self.compound = len(self.out)
        pos = read(at)
        if outermost:
            self.compound = None
        self.depth += 1
        return pos

    def _string(self, at: int) -> int:
        self.quote, self.inside = '"', None
        return self._segments(at, at + 1, _SEGMENT, strings.DOUBLE_QUOTED, ("string", "dqpre", "dqmid", "dqpost"), warn=True)

    def _segments(self, at: int, pos: int, pattern: re.Pattern[str], escapes: frozenset[str], kinds: tuple[str, ...], *, warn: bool) -> int:
        """
        Read literal text and interpolations from `pos` to the closing quote (or the end of a heredoc's text); return the offset behind.

        `kinds` are those of the whole text without interpolation, and of its first, middle and last part.
        """
        whole, first, middle, last = kinds
        seen = False  # an interpolation
        value = ""
        while True:
            m = pattern.match(self.text, pos)
            if not m:
                raise self._unclosed(self._last_scanned(*self.inside) if self.inside else self.quote, pos)
            pos, stop = m.end(), m[2]
            value += strings.unescape(m[1], escapes, self._warner(pos) if warn else None)
            if stop == "${":
                self.out.append((middle if seen else first, value, at, pos))
                pos = self._expression(pos)
            elif stop == "$":
                name = _NAME.match(self.text, pos)
                if not name:
                    value += "$"
                    self.quote, self.inside = "", None
                    continue
                self.out.append((middle if seen else first, value, at, pos - 1))
                self.out.append(("variable", name[0], pos - 1, name.end()))
                self.quote, self.inside = name[0], None
                pos = name.end()
            else:
                self.out.append((last if seen else whole, value, at, pos))
                return pos
            seen, value, at = True, "", pos

    def _expression(self, pos: int) -> int:
        """Read the expression of `${…}` from behind the brace; a bare name at its beginning becomes a variable."""
        out = self.out
        start = len(out)
        end = self.code(pos, nested=True)
        self.inside = (start, pos, end)
        size = len(out) - start
        if size == 1 or (size > 1 and out[start + 1][0] in (".", "[")):
            kind, text, first, last = out[start]
            if kind in ("name", "number", "word", "boolean") or kind in self.keywords:
                out[start] = ("variable", text, first, last)
        return end

    def _warner(self, at: int) -> Callable[[str], None]:
        """Return a function that warns at one place."""
        return lambda message: self.warn(message, at)

    def _last_scanned(self, start: int, pos: int, end: int) -> str:
        """Return the text that the reference reports before a string that is not closed behind an interpolation: its last match."""
        text = ""
        for kind, _, first, last in self.out[start:]:
            if first > pos:
                text = ""
            if kind in _SCANNED or kind in KEYWORDS:
                text = self.text[first:last]
            elif kind in ("string", "dqpost"):
                text = self.text[max(last - 2, first + (kind == "string")) : last]
            pos = last
        gap = self.text[pos:end].removesuffix("}")
        return "" if gap else text

    def _heredoc(self, at: int) -> int:
        text = self.text
        close = text.find(")", at)
        if close == -1:
            followed = text[at : at + 5].replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
            raise self.fail(f"Unclosed parenthesis after '@(' followed by '{followed}...'", at)
        after = close + 1
        header = heredoc.read_header(text[at:after], lambda message: self.fail(message, after))
        self.out.append(("heredoc", header.syntax, at, after))
        start = self.jump
        if start is None:
            line = text.find("\n", after)
            if line == -1:
                raise self.fail("Heredoc without any following lines of text", after)
            start = line + 1
        body = heredoc.read_body(text, start, header.tag)
        if not body:
            raise self.fail("Heredoc without end-tagged line", start)
        self.jump = body.after
        place = self.place
        inner = _Lexer(self.source, body.text, self.keywords, self.depth, (lambda at: place(body.place(at))) if place else body.place)
        pattern = _UNQUOTED_PLAIN if "$" not in header.escapes else _UNQUOTED
        if header.interpolates:
            inner._segments(0, 0, pattern, header.escapes, ("string", "dqpre", "dqmid", "dqpost"), warn=False)
        else:
            inner.out.append(("string", strings.unescape(body.text, header.escapes, None), 0, len(body.text)))
        self.out.extend((kind, value, body.place(first), body.place(last)) for kind, value, first, last in inner.out)
        self.warnings.extend(inner.warnings)
        return after

    # --- templates --------------------------------------------------------------------------------------------

    def template(self) -> None:
        """Read the whole text as an EPP template."""
        self.epp = True
        size = len(self.text)
        pos = self.literal(0, trim=False)
        if pos < size or self.opened:
            self.code(pos, nested=False)
        if self.opened:
            raise self.fail("Unbalanced epp tag, reached <eof> without closing tag.", size)

    opened = False  # a tag

    def literal(self, pos: int, *, trim: bool) -> int:
        """Read literal text up to the end of the next opening tag; return the offset where the code begins."""
        start, size, text = pos, len(self.text), self.text
        self.opened = self.rendering = False
        if pos >= size:
            return pos
        parts = ""
        while pos < size:
            tag = text.find("<%", pos)
            end = size if tag == -1 else tag
            if trim:
                blank = _TRIMMED.match(text, pos, end)
                pos = blank.end() if blank else pos
                trim = False
            parts += text[pos:end].replace("%%>", "%>")
            if tag == -1:
                pos = size
                break
            pos = tag + 2
            mark = text[pos : pos + 1]
            if mark == "":
                raise self.fail("Unbalanced embedded expression - opening <% and reaching end of input", pos)
            if mark == "%":
                parts += "<%"
                pos += 1
            elif mark == "#":
                close = _COMMENT_END.search(text, pos)
                if not close:
                    raise self.fail("Reaching end after opening <%# without seeing %>", pos)
                if text[pos + 1] == "-":
                    parts = parts.rstrip(" \t")
                trim = text[close.end() - 3] == "-"
                pos = close.end()
            else:
                if mark == "-":
                    parts = parts.rstrip(" \t")
                self.opened, self.rendering = True, mark == "="
                pos += mark in "-="
                break
        if parts or not self.opened:  # at the end even nothing is text: what stands before it is not last
            self.out.append(("render", parts, start, pos))
        if self.rendering:
            self.out.append(("render=", "", start, pos))
        return pos
