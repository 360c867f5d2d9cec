"""scanf: reads values from a string by a format."""

from __future__ import annotations

import re
from typing import Final

from ..values.core import Value
from ..values.digits import parse_integer
from .api import Closure, Context, function

_DIRECTIVE: Final = re.compile(r"%(\*?)(\d*)([hlL]?)([diouxXeEfFgGaAsc]|\[(?:\^?\]?[^\]]*)\]|%)")
_NUMBERS: Final = {
    "d": r"[+-]?\d+",
    "u": r"[+-]?\d+",
    "i": r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)",
    "o": r"[+-]?[0-7]+",
    "x": r"[+-]?(?:0[xX])?[0-9a-fA-F]+",
    "X": r"[+-]?(?:0[xX])?[0-9a-fA-F]+",
}


@function("scanf", "String data", "String format", "Callable &block?")
def scanf(context: Context, data: str, format_: str, *, block: Closure | None = None) -> Value:
    """
    Parse the start of the text by the format and return the values, as far as it matches; with a lambda, return the lambda's result for
    them.
    """
    values = scan_values(data, format_)
    return block(values) if block is not None else values


def scan_values(data: str, format_: str) -> list[Value]:
    """Return the values that C's scanf reads: white space in the format matches any white space, other characters match themselves."""
    values: list[Value] = []
    offset = position = 0
    while position < len(format_):
        if format_[position].isspace():
            position += 1
            offset = _skip_white_space(data, offset)
            continue
        directive = _DIRECTIVE.match(format_, position)
        if directive is None or directive[4] == "%":
            if not data.startswith(format_[position], offset):
                return values
            offset += 1
            position += 1 if directive is None else 2
            continue
        position = directive.end()
        kind = directive[4]
        if kind != "c" and kind[0] != "[":
            offset = _skip_white_space(data, offset)
        match = re.compile(_pattern(kind, int(directive[2]) if directive[2] else None), re.ASCII).match(data, offset)
        if not match:
            return values
        width = int(directive[2]) if directive[2] else None
        text = match[0] if width is None or kind == "c" else match[0][:width]
        if not text:
            return values
        offset += len(text)
        if not directive[1]:
            values.append(_value(kind, text))
    return values


def _skip_white_space(data: str, offset: int) -> int:
    while offset < len(data) and data[offset].isspace():
        offset += 1
    return offset


def _pattern(kind: str, width: int | None) -> str:
    if kind == "c":
        return f"(?s:.{{1,{width or 1}}})"
    if kind == "s":
        return r"\S+"
    if kind[0] == "[":
        negated = kind[1] == "^"
        inner = kind[2:-1] if negated else kind[1:-1]
        escaped = re.sub(r"([\\\[\]])", r"\\\1", inner)
        return f"[{'^' if negated else ''}{escaped}]+"
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    return r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?"


def _value(kind: str, text: str) -> Value:
    if kind in "du":
        return parse_integer(text)
    if kind == "i":
        return parse_integer(text, 16 if "x" in text.lower() else 8 if text.lstrip("+-").startswith("0") else 10)
    if kind == "o":
        return parse_integer(text, 8)
    if kind in "xX":
        return parse_integer(text, 16)
    return float(text) if kind in "eEfFgGaA" else text
