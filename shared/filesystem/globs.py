"""File name patterns by the rules of Ruby's `File.fnmatch`, without flags, at a cost that no pattern can drive up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_STAR: Final = None  # any run of characters; other tokens take exactly one

Token = Callable[[str], bool] | str | None


class Glob:
    """
    One pattern: `*`, `?`, `[a-z]`, `[!a]`, `[^a]`, `\\` quotes. A leading dot of a name is only matched by a dot,
    or with `dots` by anything.

    Reading a pattern is linear in its length; matching is linear in the name for each star, and a pattern that needs more
    characters than the name has is refused at once, so that the cost is bounded by the square of a file name's length.
    """

    def __init__(self, pattern: str, *, dots: bool = False) -> None:
        self.pattern = pattern
        self._tokens = _tokens(pattern)
        self._least = 0 if self._tokens is None else sum(token is not _STAR for token in self._tokens)
        self._dotted = dots or pattern.removeprefix("\\").startswith(".")

    def matches(self, name: str) -> bool:
        """Return whether the whole of `name` fits."""
        tokens = self._tokens
        if tokens is None or self._least > len(name) or (name.startswith(".") and not self._dotted):
            return False
        at = star = retry = 0
        starred = False
        position = 0
        while position < len(name):
            if at < len(tokens) and tokens[at] is _STAR:
                starred, star, retry = True, at, position
                at += 1
            elif at < len(tokens) and _takes(tokens[at], name[position]):
                at += 1
                position += 1
            elif starred:
                retry += 1
                at, position = star + 1, retry
            else:
                return False
        return all(token is _STAR for token in tokens[at:])


def _takes(token: Token, char: str) -> bool:
    return token == char if isinstance(token, str) else token is not None and token(char)


def _tokens(pattern: str) -> list[Token] | None:
    """Return the pattern's parts, runs of stars as one; None when a bracket is left open: such a pattern matches nothing."""
    tokens: list[Token] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            if not tokens or tokens[-1] is not _STAR:
                tokens.append(_STAR)
        elif char == "?":
            tokens.append(lambda _: True)
        elif char == "[":
            ranges, negated, end = _bracket(pattern, at)
            if end is None:
                return None
            tokens.append(_one_of(ranges, negated))
            at = end
        else:
            if char == "\\" and at < len(pattern):
                char = pattern[at]
                at += 1
            tokens.append(char)
    return tokens


def _bracket(pattern: str, at: int) -> tuple[list[tuple[str, str]], bool, int | None]:
    """Return the ranges of a bracket whose inside starts at `at`, whether it is negated, and where it ends (None: nowhere)."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    ranges: list[tuple[str, str]] = []

    def char() -> str:
        nonlocal at
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
        at += 1
        return pattern[at - 1]

    while at < len(pattern) and pattern[at] != "]":
        low = high = char()
        if pattern[at : at + 1] == "-" and at + 1 < len(pattern) and pattern[at + 1] != "]":
            at += 1
            high = char()
        ranges.append((low, high))
    return ranges, negated, at + 1 if at < len(pattern) else None


def _one_of(ranges: list[tuple[str, str]], negated: bool) -> Callable[[str], bool]:
    return lambda char: any(low <= char <= high for low, high in ranges) != negated
