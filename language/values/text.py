"""
Values as text: `to_s` for interpolation and `notice`, `program` for `%p` and type parameters, `inspect` for Ruby's notation.

Source: language reference 8.1, 8.2.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from functools import singledispatch

from shared.regexps import Regexp

from .core import DEFAULT, Binary, Deferred, ForeignObject, Instance, Iterator, PuppetType, Sensitive, Value, entries
from .times import Timespan, Timestamp
from .uris import URI
from .versions import SemVer, SemVerRange


def to_s(value: Value) -> str:
    """Return `value` as interpolation shows it: strings without quotes at any depth, undef as the empty string."""
    if value.__class__ is str:
        return value
    if value.__class__ is int:
        return str(value)
    if value is None:
        return ""
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is list:
        return "[" + ", ".join([to_s(item) for item in value]) + "]"
    if value.__class__ is dict:
        return "{" + ", ".join([f"{to_s(key)} => {to_s(item)}" for key, item in entries(value)]) + "}"
    if value.__class__ is float:
        return float_text(value)
    if value is DEFAULT:
        return "default"
    if value.__class__ is Sensitive:
        return "Sensitive [value redacted]"
    if value.__class__ is Iterator:
        return "Iterator-Value" if value.element_type is None else f"Iterator[{value.element_type.generalized()}]-Value"
    if value.__class__ is Instance or value.__class__ is Deferred:
        return program(value)
    return str(value)


def ascii_fold(text: str) -> str:
    """Return `text` with A-Z in lower case and nothing else changed: the language compares strings in this form."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


_LOWER = {code: code + 32 for code in range(65, 91)}


def join(values: list[Value] | tuple[Value, ...], separator: str = " ") -> str:
    """Return the joined texts of `values`."""
    return separator.join([to_s(value) for value in values])


def float_text(value: float) -> str:
    """Return the shortest text, with a fraction, that reads back as `value`; with an exponent from 1e15 on and below 1e-4."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        power = int(exponent)
        mantissa += "" if "." in mantissa else ".0"
        return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if abs(value) >= 1e15:
        sign, digits = ("-", text[1:-2]) if value < 0 else ("", text[:-2])
        return f"{sign}{digits[0]}.{digits[1:].rstrip('0') or '0'}e+{len(digits) - 1:02d}"
    return text


_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "$": "\\$", "\\": "\\\\"}


def quoted(text: str) -> str:
    """Return `text` as a literal: in single quotes when all of it is printable, else in double quotes with escapes."""
    if all(c >= " " for c in text):
        # A backslash in front of a quote is that quote's escape; nothing else is doubled.
        return "'" + re.sub(r"(\\.)|'", lambda match: match[1] or "\\'", text) + "'"
    return double_quoted(text)


def double_quoted(text: str) -> str:
    """Return `text` in double quotes, whatever it contains."""
    return '"' + "".join(_ESCAPES.get(c) or (f"\\u{{{ord(c):X}}}" if c < " " else c) for c in text) + '"'


def program(value: Value) -> str:
    """Return `value` as Puppet source would write it, as far as it has a literal."""
    if value.__class__ is str:
        return quoted(value)
    if value is None:
        return "undef"
    if value.__class__ is list:
        return "[" + ", ".join([program(item) for item in value]) + "]"
    if value.__class__ is dict:
        return "{" + ", ".join([f"{program(key)} => {program(item)}" for key, item in entries(value)]) + "}"
    if value.__class__ in (Timespan, Timestamp, SemVer, SemVerRange):
        return f"'{value}'"
    if value.__class__ is URI:
        return f"URI('{value}')"
    if value.__class__ is Binary:
        return "Instance of Binary"
    if value.__class__ is Deferred:
        attributes = {"name": value.name} | ({} if value.arguments is None else {"arguments": value.arguments})
        return f"Deferred({program(attributes)})"
    if value.__class__ is Instance:
        return f"{value.type.name}({program(value.type.init_hash(value))})"
    if value.__class__ is Regexp:
        return str(value)
    if isinstance(value, PuppetType):
        return value.notation()
    return inspect(value) if value.__class__ is ForeignObject else to_s(value)


def inspect(value: Value) -> str:
    """Return Ruby's `inspect` of `value`, which is also the text of a joined hash or a failed conversion."""
    if value.__class__ is str:
        return _inspect_text(value, _escape)
    if value is None:
        return "nil"
    if value.__class__ is list:
        return "[" + ", ".join([inspect(item) for item in value]) + "]"
    if value.__class__ is dict:
        return "{" + ", ".join([f"{inspect(key)}=>{inspect(item)}" for key, item in entries(value)]) + "}"
    if value is DEFAULT:
        return ":default"
    if value.__class__ is Regexp:
        return value.delimited
    if value.__class__ is Sensitive:
        return "#<Sensitive [value redacted]>"
    if value.__class__ is Timespan or value.__class__ is Timestamp:
        return f"#<Puppet::Pops::Time::{value.__class__.__name__} @nsecs={value.nanoseconds}>"
    if value.__class__ is URI:
        return f"#<{value.ruby_class} {value}>"
    if value.__class__ is Binary:
        return f"#<Puppet::Pops::Types::PBinaryType::Binary @binary_buffer={_inspect_bytes(value.data)}>"
    if value.__class__ is ForeignObject and value.ruby_class == "Symbol":
        return f":{value.text}"
    return inspect_object(value)


@singledispatch
def inspect_object(value: Value) -> str:
    """Return the `inspect` of a value of any other class; types register their own functions."""
    return to_s(value)


def _inspect_bytes(data: bytes) -> str:
    """Return octets as Ruby shows them: those that are not printable ASCII by their numbers."""
    return _inspect_text(data.decode("latin-1"), lambda octet: octet if " " <= octet <= "~" else f"\\x{ord(octet):02X}")


def _inspect_text(text: str, escape: Callable[[str], str]) -> str:
    shown = "".join(_INSPECTED.get(c) or escape(c) for c in text)
    return '"' + shown.replace("#{", "\\#{").replace("#$", "\\#$").replace("#@", "\\#@") + '"'


def _escape(character: str) -> str:
    """Return a character as Ruby shows it in a text: by its number when it has no shape in any font."""
    if character.isprintable() or unicodedata.category(character) not in _WITHOUT_SHAPE:
        return character
    number = ord(character)
    return f"\\u{number:04X}" if number <= _LAST_OF_FOUR_DIGITS else f"\\u{{{number:X}}}"


_WITHOUT_SHAPE = frozenset(("Cc", "Cn", "Zl", "Zp"))
_LAST_OF_FOUR_DIGITS = 0xFFFF
_INSPECTED = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e", "\a": "\\a", "\b": "\\b", "\v": "\\v", "\f": "\\f",
}  # fmt: skip


def inspect_bare(value: Value) -> str:
    """Return `value` as some messages of the reference show it: collections and patterns in Ruby's notation, undef as nothing."""
    if value.__class__ is Regexp:
        return str(value.embedded())
    return inspect(value) if value.__class__ in (list, dict) else to_s(value)
