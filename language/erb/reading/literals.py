"""Texts of Ruby's literals as values: escapes of strings, numbers, regular expressions."""

from __future__ import annotations

import re

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..errors import LONG_BITS, Refusal

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "e": "\x1b", "a": "\a", "b": "\b", "v": "\v", "f": "\f", "0": "\0", "\n": ""}
_DECIMAL = re.compile(r"0|[1-9][0-9]*(?:_[0-9]+)*")
_FLOAT = re.compile(r"(?:0|[1-9][0-9]*)\.[0-9]+")
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_FLAGS = re.compile(r"[/)}\]!|,]([imx]*)\Z")


def escape(text: str, at: int) -> str:
    """Return the character of an escape in a string with double quotes."""
    letter = text[1:]
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if re.fullmatch(r"x[0-7][0-9a-fA-F]", letter):
        return chr(int(letter[1:], 16))
    if re.fullmatch(r"u[0-9a-fA-F]{4}", letter) and not 0xD800 <= int(letter[1:], 16) < 0xE000:
        return chr(int(letter[1:], 16))
    if len(letter) == 1 and letter.isascii() and letter.isprintable() and letter not in "uxcCM1234567":
        return letter
    raise Refusal(f"the escape {text}", at)


def is_raw(opening: str) -> bool:
    """Return whether a string that opens so has no escapes but those of `single_quoted`, and no expressions."""
    return opening == "'" or opening.startswith(("%q", "%w", "%i", "%s"))


def characters(text: str, opening: str, at: int, *, is_escape: bool) -> str:
    """Return the text of a part of a string, which the grammar may take for an escape."""
    if is_raw(opening):
        return single_quoted(text, opening, at)
    return escape(text, at) if is_escape else text


def single_quoted(text: str, delimiter: str, at: int) -> str:
    """Return the value of a string without escapes but those of its delimiter and of the backslash."""
    if "\\" not in text:
        return text
    if delimiter.startswith(("%w", "%i")):
        raise Refusal("a backslash in %w", at)  # at which the grammar does not divide words as Ruby does
    special = "".join(f"\\{character}" for character in {delimiter[-1], _CLOSING.get(delimiter[-1], delimiter[-1]), "\\"})
    return re.sub(rf"\\([{special}])", r"\1", text)


def integer(text: str, at: int) -> int:
    if _DECIMAL.fullmatch(text) is None:
        raise Refusal(f"the number {text}", at)
    number = int(text.replace("_", ""))
    if number.bit_length() > LONG_BITS:
        raise Refusal("a large number", at)
    return number


def floating(text: str, at: int) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise Refusal(f"the number {text}", at)
    return float(text)


def regexp(source: str, end: str, at: int) -> str:
    """Return the source of a regular expression, with the options after `end`, its delimiter."""
    flags = _FLAGS.search(end)
    if flags is None:
        raise Refusal("options of a regular expression", at)
    source = source.replace("\\/", "/")
    if not source.isascii():
        raise Refusal("a regular expression with characters that are not ASCII", at)
    on = "".join(letter for letter in "mix" if letter in flags[1])
    off = "".join(letter for letter in "mix" if letter not in flags[1])
    source = f"(?{on}{'-' if off else ''}{off}:{source})" if on else source
    try:
        _ = Regexp(source).pattern
    except EvaluationError as error:
        raise Refusal("a regular expression that is not known here", at) from error
    return source
