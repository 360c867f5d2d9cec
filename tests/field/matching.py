"""A text that a regular expression matches, to name a node by."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import Any

__all__ = ["text_for"]

_parser: Any = re._parser  # type: ignore[attr-defined]  # Python has no public one
CHARACTERS = string.digits[1:] + "0" + string.ascii_letters + string.punctuation
_CATEGORIES = {"CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w", "CATEGORY_SPACE": r"\s"}


def text_for(pattern: str, domain: str) -> Iterator[str]:
    """The shortest text made up of the pattern's first choices, below `domain` where it leaves this open; nothing if it does not match."""
    try:
        text = "".join(_text(_parser.parse(pattern.replace("\\A", "^").replace("\\Z", "$").replace("\\z", "$"))))
    except re.error:
        return
    if text and re.search(pattern.replace("\\z", "\\Z"), text):
        yield f"{text}{domain}" if text.endswith(".") else text if "." in text else f"{text}.{domain}"


def _text(parsed: Any) -> Iterator[str]:
    for op, value in parsed:
        match str(op):
            case "LITERAL":
                yield chr(value)
            case "NOT_LITERAL":
                yield "b" if chr(value) == "a" else "a"
            case "ANY":
                yield "a"
            case "IN":
                yield _one_of(value)
            case "BRANCH":
                yield from _text(value[1][0])
            case "SUBPATTERN":
                yield from _text(value[3])
            case "MAX_REPEAT" | "MIN_REPEAT":
                yield from [*_text(value[2])] * value[0]


def _one_of(choices: Any) -> str:
    allowed = re.compile("[" + "".join(_shown(op, value) for op, value in choices) + "]")
    return next((each for each in CHARACTERS if allowed.match(each)), "a")


def _shown(op: Any, value: Any) -> str:
    match str(op):
        case "NEGATE":
            return "^"
        case "LITERAL":
            return re.escape(chr(value))
        case "RANGE":
            return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        case _:
            return _CATEGORIES.get(str(value), r"\W")
