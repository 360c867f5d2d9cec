"""
Keeps Sensitive values out of messages: code that builds a message does not have to consider it.

Messages of a failure quote values in ways that cannot be listed completely: whole, in part, escaped, split into words. So a failure's text
is searched for any piece of the values, and is left out as a whole when it has one (`hide`). Every line of a run has the values themselves
replaced once more before it leaves (`mask`), but no value that could be a word of any sentence.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from .messages import REDACTED

HIDDEN = f"{REDACTED} (the reason quotes a Sensitive value)"
_PIECE = 5  # characters of a value that no message may have in a row
_LONG = 100  # characters from which on a value is text of its own, such as a file's content, that shares words with any message
_LONG_PIECE = 16
_SHORTEST_MASKED = 6


class Secrets:
    """The texts of Sensitive values: of one resource, or of a run."""

    __slots__ = ("_pattern", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def add(self, value: Any) -> None:
        """Add a value with all that it contains; booleans and None are not secrets."""
        for text in _texts_in(value):
            self._texts[text] = None
        self._pattern = None

    def update(self, other: Secrets) -> None:
        """Add the secrets of `other`."""
        if other:
            self._texts |= other._texts
            self._pattern = None

    def mask(self, message: str) -> str:
        """Return `message` with the values replaced where they are separate words; values that could be any word stay."""
        if not self._texts:
            return message
        if self._pattern is None:
            spellings = {spelling for text in self._texts if _is_distinctive(text) for spelling in _spellings(text)}
            texts = sorted(spellings, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(_as_whole_word, texts)) or "(?!)")
        return self._pattern.sub(REDACTED, message)

    def hide(self, message: str) -> str:
        """Return the message of a failure with the values replaced, or HIDDEN when pieces of them are left."""
        if not self._texts:
            return message
        masked = self.mask(message)
        return HIDDEN if self.reveals(masked.replace(REDACTED, "\0")) else masked

    def are_in(self, value: Any) -> bool:
        """Return whether a whole secret is part of `value`, which then is secret too; pieces that two commands share do not count."""
        if not self._texts:
            return False
        texts = list(_texts_in(value))
        return any(secret == text or (len(secret) >= _SHORTEST_MASKED and secret in text) for secret in self._texts for text in texts)

    def reveals(self, message: str) -> bool:
        """Return whether `message` contains a piece of a secret, in any case."""
        text = message.casefold()
        return any(_has_piece(text, secret.casefold()) for secret in self._texts)


def _texts_in(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts_in(key)
            yield from _texts_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, bytes):
        yield base64.b64encode(value).decode()
        yield from _texts_in(value.decode("utf-8", "replace"))
    elif value is not None and not isinstance(value, bool) and (text := str(value).strip()):
        yield text


def _spellings(text: str) -> Iterable[str]:
    """Return how a value may be written inside lists, commands and messages."""
    return text, repr(text)[1:-1], json.dumps(text)[1:-1], shlex.quote(text)


def _as_whole_word(text: str) -> str:
    """Return an expression that matches `text` where it is not a part of a longer word."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    return before + re.escape(text) + (r"(?!\w)" if text[-1].isalnum() else "")


def _is_distinctive(text: str) -> bool:
    """Return whether a value cannot be an ordinary word of a sentence."""
    return len(text) >= _SHORTEST_MASKED and not (text.isalpha() and text.islower())


def _has_piece(message: str, secret: str) -> bool:
    if len(secret) < _PIECE:
        return re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", message) is not None
    size = _PIECE if len(secret) < _LONG else _LONG_PIECE
    pieces = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    pieces |= {line for line in secret.split() if _PIECE <= len(line) < size and not line.isalpha()}
    return any(message[at : at + length] in pieces for length in {len(piece) for piece in pieces} for at in range(len(message)))
