"""
Ruby's regular expressions, and how long one match may take.

A pattern with repeats inside repeats can take longer than anybody waits, and neither Ruby's engine nor Python's ends by itself. Each
match here has a budget of processor time, so that a machine under load does not shorten it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import regex

from .errors import EvaluationError
from .pattern_timeout import PATTERN_TIMEOUT
from .regexp_syntax.translation import InvalidRegexp, translate

Match = regex.Match[str]
MAX_REMEMBERED = 10_000
MAX_REMEMBERED_TEXT = 200  # characters
_REMEMBERED: ContextVar[dict[tuple[str, str], Match | None] | None] = ContextVar("remembered", default=None)


@contextmanager
def remembered_matches() -> Iterator[None]:
    """Let each expression match the same short text once in the block, and forget all at its end: the texts may be secrets."""
    token = _REMEMBERED.set({})
    try:
        yield
    finally:
        _REMEMBERED.reset(token)


class Regexp:
    """A regular expression of the language; equal when the sources are. Compiled at the first use."""

    __slots__ = ("_pattern", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._pattern: regex.Pattern[str] | None = None

    @property
    def pattern(self) -> regex.Pattern[str]:
        """Raises EvaluationError when the source is not valid, or has no equivalent here. Match with `search`: it has the budget."""
        if self._pattern is None:
            self._pattern = _compile(self.source)[0]
        return self._pattern

    @property
    def group_numbers(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of the named groups; several can have one name."""
        return _compile(self.source)[1]

    def search(self, text: str, start: int = 0) -> Match | None:
        """
        Return the first match at or behind `start`.

        Raises:
            EvaluationError: the source is not valid, or the match takes longer than `pattern_timeout`, or never ends calling itself.
        """
        remembered = _REMEMBERED.get()
        if remembered is None or start or len(text) > MAX_REMEMBERED_TEXT:
            return self._search(text, start)
        key = (self.source, text)
        if key in remembered:
            return remembered[key]
        match = self._search(text, start)
        if len(remembered) < MAX_REMEMBERED:
            remembered[key] = match
        return match

    def _search(self, text: str, start: int) -> Match | None:
        pattern = self._pattern or self.pattern
        try:
            # A pattern of a module can take exponential time on a fact that a node chooses.
            return pattern.search(text, start, timeout=PATTERN_TIMEOUT.get())
        except TimeoutError:
            raise _overtime(str(self), text) from None
        except MemoryError:  # of the engine's own stack, which has a bound
            message = f"The regular expression {self!s:.200} nests without end on a text of {len(text)} characters"
            raise EvaluationError(message, hint="A group may not call itself before it has matched a character.") from None

    def substitute(self, text: str, replacement: Callable[[Match], str], *, everywhere: bool = True) -> str:
        """Return `text` with the matches replaced, or the first. After an empty match Ruby continues with the next character."""
        parts: list[str] = []
        at = done = 0
        while at <= len(text) and (match := self.search(text, at)):
            start, end = match.span()
            parts += (text[done:start], replacement(match))
            done = end
            at = end + 1 if start == end else end
            if not everywhere:
                break
        parts.append(text[done:])
        return "".join(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regexp) and self.source == other.source

    def __hash__(self) -> int:
        return hash((Regexp, self.source))

    def __repr__(self) -> str:
        return f"Regexp({self.source!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Regexp, (self.source,))

    def __str__(self) -> str:
        """With delimiters: `/source/`, or `/(?-mix:source)/` when Ruby reads it as Unicode only."""
        return f"/{self.embedded()}/" if self.is_unicode else self.delimited

    @property
    def delimited(self) -> str:
        """The source with delimiters, a slash inside escaped."""
        return f"/{_escaped_slashes(self.source)}/"

    @property
    def is_unicode(self) -> bool:
        """True if Ruby fixes its encoding: it has characters, or escapes of some, beyond ASCII, or properties."""
        return not self.source.isascii() or ("\\" in self.source and _UNICODE_ESCAPE.search(self.source) is not None)

    @property
    def flagged_source(self) -> str:
        """The source as it is in catalogs and texts without delimiters."""
        return f"(?-imx:{self.source})" if self.is_unicode else self.source

    def embedded(self) -> str:
        """
        Return the expression in the form inside another one: `(?-mix:source)`, a slash escaped.

        A group with options around the whole of it is not written twice: `(?i:a)` is `(?i-mx:a)`, and so is `(?i)a`.
        """
        options: set[str] = set()
        body = self.source
        while (head := _OPTIONS.match(body)) is not None and len(body) >= _SHORTEST_GROUP:
            options = (options | set(head[1])) - set(head[2] or "")
            rest = body[head.end() :]
            if head[3] == ")":
                body = rest
                continue
            is_whole = head[3] == ":" and rest.endswith(")") and _is_valid(rest[:-1])
            options, body = (options, rest[:-1]) if is_whole else (set(), self.source)
            break
        on = "".join(letter for letter in "mix" if letter in options)
        off = "".join(letter for letter in "mix" if letter not in options)
        return f"(?{on}{'-' if off else ''}{off}:{_escaped_slashes(body)})"


def match_whole(pattern: regex.Pattern[str] | str, text: str) -> Match | None:
    """
    Match all of `text` with an expression of Python's, such as a type's author writes.

    Raises:
        EvaluationError: it takes longer than `pattern_timeout`.
    """
    pattern = regex.compile(pattern) if isinstance(pattern, str) else pattern
    try:
        return pattern.fullmatch(text, timeout=PATTERN_TIMEOUT.get())
    except TimeoutError:
        raise _overtime(f"/{pattern.pattern}/", text) from None


def _overtime(shown: str, text: str) -> EvaluationError:
    """The text itself is not shown: it may be a secret."""
    return EvaluationError(
        f"The regular expression {shown:.200} takes longer than pattern_timeout ({PATTERN_TIMEOUT.get():g} seconds)"
        f" on a text of {len(text)} characters",
        hint="Write it without repeats inside repeats and without alternatives that begin alike: /^(a+)+$/ is /^a+$/.",
    )


_OPTIONS = regex.compile(r"\(\?([mix]*)(?:-([mix]*))?(.)", regex.DOTALL)
_UNICODE_ESCAPE = regex.compile(r"(?<!\\)(?:\\\\)*\\(?:[upP]|x[89a-fA-F][0-9a-fA-F])")
_SHORTEST_GROUP = len("(?:)")


def _is_valid(source: str) -> bool:
    try:
        _compile(source)
    except EvaluationError:
        return False
    return True


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


def _shown_as_wrong(source: str) -> str:
    """Return a source as Ruby's errors show it: where some character needs an escape, all beyond ASCII get one."""
    text = _escaped_slashes(source)
    if text == source and source.isprintable():
        return source
    forms = ("\\x{:02X}", "\\u{:04X}", "\\u{{{:X}}}")
    return regex.sub(r"[^ -~\s]", lambda match: forms[(match[0] > "\x7f") + (match[0] > "\uffff")].format(ord(match[0])), text)


@lru_cache(maxsize=4096)
def _compile(source: str) -> tuple[regex.Pattern[str], Mapping[str, tuple[int, ...]]]:
    """Return the pattern for a regular expression of Ruby's, and its named groups; raise EvaluationError with the fault."""
    try:
        translated = translate(source)
        return regex.compile(translated.text, regex.VERSION1 | regex.MULTILINE, cache_pattern=False), translated.group_numbers
    except (InvalidRegexp, regex.error) as error:
        raise EvaluationError(
            f"{str(error).split(' at position')[0]}: /{_shown_as_wrong(source)}/",
            hint="The regular expression is not valid, or not supported here.",
        ) from error
    except RecursionError as error:
        raise EvaluationError(f"too deeply nested: /{source[:80]}/") from error


def quoted(text: str) -> str:
    """Return `text` as a regular expression that matches itself, as Ruby's Regexp.escape writes it."""
    special = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f", "\v": "\\v", " ": "\\ "}
    return "".join(special.get(c) or ("\\" + c if c in ".*?+^$|\\()[]{}-#" else c) for c in text)
