"""Strings: line ends, escapes of regular expressions, URIs and XML, squeeze, swapcase, beginnings and ends."""

from __future__ import annotations

import re
from collections.abc import Callable

from shared.errors import EvaluationError
from shared.regexps import quoted

from ...values.core import Value
from ...values.labels import ruby_class
from ..api import Context, function, legacy_function, require_count
from .octets import encode_octets


@legacy_function("dos2unix", 1)
def dos2unix(context: Context, text: Value) -> str:
    """Return the text with line feeds as line ends."""
    if not isinstance(text, str):
        raise EvaluationError("dos2unix(): Requires string as argument")
    return text.replace("\r\n", "\n")


@legacy_function("unix2dos", 1)
def unix2dos(context: Context, text: Value) -> str:
    """Return the text with carriage return and line feed as line ends."""
    if not isinstance(text, str):
        raise EvaluationError("unix2dos(): Requires string as argument")
    return re.sub(r"\r*\n", "\r\n", text)


def _change_strings(name: str, arguments: tuple[Value, ...], change: Callable[[str], str]) -> Value:
    """Return the string, or the strings of the array, changed; other elements stay."""
    require_count(name, arguments, 1)
    value = arguments[0]
    if isinstance(value, list):
        return [change(item) if isinstance(item, str) else item for item in value]
    if not isinstance(value, str):
        raise EvaluationError(f"{name}(): Requires either array or string to work with")
    return change(value)


@legacy_function("regexpescape", -1)
def regexpescape(context: Context, *arguments: Value) -> Value:
    """Return a string, or the strings of an array, as regular expressions that match only it."""
    return _change_strings("regexpescape", arguments, quoted)


@legacy_function("swapcase", -1)
def swapcase(context: Context, *arguments: Value) -> Value:
    """Return a string, or the strings of an array, with upper and lower case exchanged."""
    return _change_strings("swapcase", arguments, str.swapcase)


@legacy_function("uriescape", -1)
def uriescape(context: Context, *arguments: Value) -> Value:
    """Return a string, or the strings of an array, with percent escapes for all characters that a URI may not contain."""
    from urllib.parse import quote

    return _change_strings("uriescape", arguments, lambda text: quote(encode_octets(text), safe="-_.!~*'();/?:@&=+$,[]"))


def _char_test(spec: str) -> Callable[[str], bool]:
    """Return the test for a set of characters as Ruby's `squeeze` and `delete` write it: `a-z`, `^abc`, `\\-`."""
    negated = len(spec) > 1 and spec.startswith("^")
    body = spec[1:] if negated else spec
    members: list[str] = []
    offset = 0
    while offset < len(body):
        if body[offset] == "\\" and offset + 1 < len(body):
            offset += 1
        elif offset + 2 < len(body) and body[offset + 1] == "-":
            low, high = body[offset], body[offset + 2]
            if low > high:
                raise EvaluationError(f'invalid range "{low}-{high}" in string transliteration')
            members.append(f"{re.escape(low)}-{re.escape(high)}")
            offset += 3
            continue
        members.append(re.escape(body[offset]))
        offset += 1
    pattern = re.compile(f"[{'^' if negated else ''}{''.join(members)}]", re.DOTALL) if members else None
    return lambda char: pattern is not None and pattern.match(char) is not None


def _squeeze_text(text: Value, test: Callable[[str], bool] | None) -> str:
    if not isinstance(text, str):
        raise EvaluationError(f"squeeze(): Requires a string, got {ruby_class(text)}")
    chars: list[str] = []
    for char in text:
        if not (chars and chars[-1] == char and (test is None or test(char))):
            chars.append(char)
    return "".join(chars)


@legacy_function("squeeze", -1)
def squeeze(context: Context, *arguments: Value) -> Value:
    """Return a string, or the strings of an array, with runs of a character, or of one in a set, reduced to one."""
    if len(arguments) not in (1, 2):
        raise EvaluationError(f"squeeze(): Wrong number of arguments given {len(arguments)} for 2 or 1")
    test: Callable[[str], bool] | None = None
    if len(arguments) == 2 and arguments[1] is not False:
        if not isinstance(arguments[1], str):
            raise EvaluationError(f"no implicit conversion of {ruby_class(arguments[1])} into String")
        test = _char_test(arguments[1])
    value = arguments[0]
    return [_squeeze_text(item, test) for item in value] if isinstance(value, list) else _squeeze_text(value, test)


def _as_tuple(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@function("stdlib::start_with", "String test_string", "Variant[String[1],Array[String[1], 1]] prefixes", returns="Boolean")
def start_with(context: Context, test_string: str, prefixes: str | list[str]) -> bool:
    """Return whether a string begins with one of these."""
    return test_string.startswith(_as_tuple(prefixes))


@function("stdlib::end_with", "String test_string", "Variant[String[1],Array[String[1], 1]] suffixes", returns="Boolean")
def end_with(context: Context, test_string: str, suffixes: str | list[str]) -> bool:
    """Return whether a string ends with one of these."""
    return test_string.endswith(_as_tuple(suffixes))


@function("stdlib::xml_encode", "String str", "Enum['text','attr'] type?", returns="String")
def xml_encode(context: Context, text: str, kind: str = "text") -> str:
    """Return a string for use between XML tags, or, with its quotes, as the value of an attribute."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if kind == "text":
        return safe
    return '"' + safe.replace('"', "&quot;").replace("'", "&apos;") + '"'
