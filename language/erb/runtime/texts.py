"""Ruby's methods of strings, of symbols where they have them, and of regular expressions."""

from __future__ import annotations

import json
import math
import re

from shared.regexps import Match, quoted

from ...values.core import value_of
from ..errors import Doubt, RubyError
from .values import Pattern, RubySymbol, Value, as_long, check_text, class_name, inspect, missing_method, pattern, symbol, to_s

MAX_JSON_DEPTH = 90
"""Values inside values that become JSON; Ruby has a limit of 100."""

_WITHOUT_MATCH = frozenset((bool, int, float, list, dict))
_BLANK = "\0\t\n\v\f\r "
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)(\d+(?:_\d+)*)", re.ASCII)
_STRICT_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_STRICT_FLOAT = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_FORMAT = re.compile(r"%(-?)(0?)([1-9][0-9]*)?(\.[0-9]+)?([sdf%])|%")
_NAMED = re.compile(r"%\{(\w+)\}", re.ASCII)
_REPLACEMENT = re.compile(r"\\(.?)", re.DOTALL)


def string(name: str, value: Value) -> str:
    """Return the receiver of a method that only strings have here."""
    if value.__class__ is not str:
        raise missing_method(name, value)
    return check_text(value)


def text_argument(value: Value) -> str:
    """Return an argument that has to be a string."""
    if value.__class__ is not str:
        if value is None or value.__class__ in (int, bool, list, dict):
            what = "nil" if value is None else str(value).lower() if value.__class__ is bool else class_name(value)
            raise RubyError(f"no implicit conversion of {what} into String")
        raise Doubt(f"{class_name(value)} in place of a string")
    return check_text(value)


def ascii_string(name: str, value: Value) -> str:
    """Return the receiver of a method about which we are certain for ASCII only."""
    text = string(name, value)
    if not text.isascii():
        raise Doubt(f"String#{name} of characters that are not ASCII")
    return text


# --- case and blanks ----------------------------------------------------------------------------------------------


def upcase(value: Value) -> str:
    return ascii_string("upcase", value).upper()


def downcase(value: Value) -> str:
    return ascii_string("downcase", value).lower()


def capitalize(value: Value) -> str:
    return ascii_string("capitalize", value).capitalize()


def swapcase(value: Value) -> str:
    return ascii_string("swapcase", value).swapcase()


def strip(value: Value) -> str:
    return string("strip", value).rstrip(_BLANK).lstrip(_BLANK)


def lstrip(value: Value) -> str:
    return string("lstrip", value).lstrip(_BLANK)


def rstrip(value: Value) -> str:
    return string("rstrip", value).rstrip(_BLANK)


def chomp(value: Value) -> str:
    text = string("chomp", value)
    for end in ("\r\n", "\n", "\r"):
        if text.endswith(end):
            return text[: -len(end)]
    return text


def chop(value: Value) -> str:
    text = string("chop", value)
    return text[:-2] if text.endswith("\r\n") else text[:-1]


def ljust(value: Value, width: Value, padding: Value = " ") -> str:
    text, fill = _justified("ljust", value, width, padding)
    return text + fill


def rjust(value: Value, width: Value, padding: Value = " ") -> str:
    text, fill = _justified("rjust", value, width, padding)
    return fill + text


def center(value: Value, width: Value, padding: Value = " ") -> str:
    text, fill = _justified("center", value, width, padding)
    if len(padding) != 1:
        raise Doubt("center with several characters")
    left = len(fill) // 2
    return fill[:left] + text + fill[left:]


def _justified(name: str, value: Value, width: Value, padding: Value) -> tuple[str, str]:
    text = string(name, value)
    if width.__class__ is not int or width > 10_000 or padding.__class__ is not str or not padding:
        raise Doubt(f"arguments of {name}")
    missing = max(width - len(text), 0)
    return text, (check_text(padding) * missing)[:missing]


# --- parts --------------------------------------------------------------------------------------------------------


def lines(value: Value) -> list[str]:
    text = string("lines", value)
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def chars(value: Value) -> list[str]:
    return list(string("chars", value))


def split(value: Value, separator: Value = None) -> list[str]:
    text = string("split", value)
    if separator.__class__ is Pattern:
        parts = _split_by_pattern(text, separator)
    elif separator is None or separator == " ":
        if separator.__class__ not in (str, type(None)) or not text.isascii() or re.search(r"[\x00\x1c-\x1f\v\f]", text):
            raise Doubt("String#split")
        return text.split()
    else:
        if separator.__class__ is not str:
            raise Doubt("the separator of split")
        sought = text_argument(separator)
        parts = text.split(sought) if sought else list(text)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _split_by_pattern(text: str, separator: Pattern) -> list[str]:
    parts, done = [], 0
    at = 0
    while (match := separator.search(text, at)) is not None:
        start, end = match.span()
        if start == end or match.re.groups:
            raise Doubt("String#split by an expression with groups, or that matches nothing")
        parts.append(text[done:start])
        done = at = end
    return [*parts, text[done:]]


def start_with(value: Value, *beginnings: Value) -> bool:
    return any(string("start_with?", value).startswith(text_argument(beginning)) for beginning in beginnings)


def end_with(value: Value, *ends: Value) -> bool:
    return any(string("end_with?", value).endswith(text_argument(end)) for end in ends)


def delete_prefix(value: Value, beginning: Value) -> str:
    return string("delete_prefix", value).removeprefix(text_argument(beginning))


def delete_suffix(value: Value, end: Value) -> str:
    return string("delete_suffix", value).removesuffix(text_argument(end))


def tr(value: Value, old: Value, new: Value) -> str:
    """`tr` with one character for one character."""
    text = string("tr", value)
    if old.__class__ is not str or new.__class__ is not str or len(old) != 1 or len(new) > 1 or old in "^-\\" or new == "\\":
        raise Doubt("the arguments of String#tr")
    return text.replace(check_text(old), check_text(new))


# --- matches ------------------------------------------------------------------------------------------------------


def match_data(left: Value, right: Value) -> Match | None:
    """
    Return the match that `=~` finds, whichever side the expression is on.

    A value that is not a string matches nothing: so it is in every Ruby that Puppet's servers have; Ruby 3.2 has no such method any more.
    """
    if left.__class__ in _WITHOUT_MATCH and right.__class__ is Pattern:
        return None
    if left.__class__ is Pattern:
        left, right = right, left
    if right.__class__ is not Pattern:
        raise Doubt("=~ without a regular expression")
    if left is None:
        return None
    if left.__class__ is RubySymbol:
        left = left.name
    if left.__class__ is not str:
        raise Doubt(f"=~ on {class_name(left)}")
    found: Match | None = right.search(left)
    return found


def match_index(left: Value, right: Value) -> int | None:
    return match_start(match_data(left, right))


def match_noting(left: Value, right: Value, groups: Match | None) -> tuple[Match | None, int | None]:
    """Return the match that is the last one after `=~`, whose left side leaves the one before if it is not text, and its index."""
    if right.__class__ is Pattern and (left is None or left.__class__ in _WITHOUT_MATCH):
        return groups, None
    match = match_data(left, right)
    return match, match_start(match)


def match_start(match: Match | None) -> int | None:
    return match.start() if match is not None else None


def split_noting(value: Value, separator: Value, groups: Match | None) -> tuple[Match | None, list[str]]:
    """Return the match that is the last one after `split`, and the parts: the search of an expression ends with one that finds nothing."""
    parts = split(value, separator)
    return (None if separator.__class__ is Pattern else groups), parts


def group(match: Match | None, number: int) -> str | None:
    """Return the value of `$1` and the like."""
    if match is None:
        return None
    if match.re.groupindex:
        raise Doubt("named groups")
    return match.group(number) if number <= match.re.groups else None


def match_method(value: Value, other: Value) -> Match | None:
    """`match`: of a regular expression with a string, or of a string with an expression."""
    if value.__class__ is Pattern and other is None:
        return None
    if value.__class__ is str and other.__class__ is str:
        return match_data(value, pattern(text_argument(other)))
    if value.__class__ not in (Pattern, str) or other.__class__ not in (Pattern, str) or value.__class__ is other.__class__:
        if value is None:
            raise missing_method("match", value)
        raise Doubt("the arguments of match")
    return match_data(value, other)


def is_match(value: Value, other: Value) -> bool:
    if value is None:
        raise missing_method("match?", value)
    return match_method(value, other) is not None


def scan(value: Value, sought: Value) -> list[str]:
    text = string("scan", value)
    if sought.__class__ is not Pattern:
        raise Doubt("String#scan")
    parts, at = [], 0
    while at <= len(text) and (match := sought.search(text, at)) is not None:
        if match.re.groups:
            raise Doubt("String#scan with groups")
        parts.append(match.group())
        at = match.end() + (match.start() == match.end())
    return parts


def gsub(value: Value, sought: Value, replacement: Value) -> str:
    return _substitute("gsub", value, sought, replacement, everywhere=True)


def sub(value: Value, sought: Value, replacement: Value) -> str:
    return _substitute("sub", value, sought, replacement, everywhere=False)


def _substitute(name: str, value: Value, sought: Value, replacement: Value, *, everywhere: bool) -> str:
    text = string(name, value)
    if replacement.__class__ is not str:
        raise Doubt(f"the replacement of {name}")
    new = text_argument(replacement)
    if sought.__class__ is Pattern:
        sought.search("")
        return sought.regexp.substitute(text, lambda match: _expanded(new, match), everywhere=everywhere)
    if "\\" in new:
        raise Doubt(f"a backslash in the replacement of {name}")
    if sought.__class__ is not str:
        raise Doubt(f"what {name} seeks")
    old = text_argument(sought)
    if not old:
        raise Doubt(f"{name} of nothing")
    return text.replace(old, new) if everywhere else text.replace(old, new, 1)


def _expanded(replacement: str, match: Match) -> str:
    if "\\" not in replacement:
        return replacement

    def expand(reference: re.Match[str]) -> str:
        letter = reference[1]
        if letter == "\\":
            return "\\"
        if not letter.isdecimal() or not letter.isascii() or match.re.groupindex:
            raise Doubt("a backslash in a replacement")
        number = int(letter)
        return (match.group(number) or "") if number <= match.re.groups else ""

    return _REPLACEMENT.sub(expand, replacement)


# --- numbers in texts, and formats --------------------------------------------------------------------------------


def leading_integer(text: str) -> int:
    """Return the result of `to_i` for a text."""
    match = _INTEGER.match(check_text(text))
    if match is None:
        return 0
    number = int(match[2].replace("_", ""))
    return int(as_long(-number if match[1] == "-" else number))


def leading_float(text: str) -> float:
    """Return the result of `to_f` for a text that is a plain number; raise Doubt for others."""
    if _STRICT_FLOAT.fullmatch(text) is None:
        raise Doubt("String#to_f")
    return float(text)


def strict_integer(value: Value) -> int:
    """`Integer(…)`"""
    if value.__class__ is int:
        return value
    if value is None:
        raise RubyError("can't convert nil into Integer")
    if value.__class__ is not str or _STRICT_INTEGER.fullmatch(value) is None:
        if value.__class__ is str and not re.search(r"[0-9]", value) and value.isascii() and "\0" not in value:
            raise RubyError(f"invalid value for Integer(): {inspect(value)}")
        raise Doubt("the argument of Integer()")
    return int(as_long(int(value)))


def strict_float(value: Value) -> float:
    """`Float(…)`"""
    if value.__class__ is float or (value.__class__ is int and abs(value) < 2**53):
        return float(value)
    if value.__class__ is not str or _STRICT_FLOAT.fullmatch(value) is None:
        raise Doubt("the argument of Float()")
    return float(value)


def _format_named(template: str, values: dict[Value, Value]) -> str:
    """`%` with a hash, and `%{name}` only."""
    if "%" in _NAMED.sub("", template):
        raise Doubt("a format")
    parts: list[str] = []
    at = 0
    for match in _NAMED.finditer(template):
        name = symbol(match[1])
        if name not in values:
            raise Doubt("a name that a format's hash does not have")
        parts += [template[at : match.start()], check_text(to_s(values[name]))]
        at = match.end()
    return "".join([*parts, template[at:]])


def format_text(template: Value, *arguments: Value) -> str:
    """`format(…)` and `%`, with `%s`, `%d`, `%f`, `%%` and widths."""
    if len(arguments) == 1 and arguments[0].__class__ is dict and "%{" in string("%", template):
        return _format_named(template, arguments[0])
    pending = list(arguments)

    def converted(match: re.Match[str]) -> str:
        left, zero, width, precision, letter = match.groups()
        if letter == "%" and match[0] == "%%":
            return "%"
        if letter is None or letter == "%" or not pending or (width and int(width) > 10_000):
            raise Doubt("a format")
        value = pending.pop(0)
        if letter == "s":
            if zero or precision:
                raise Doubt("a format")
            text = check_text(to_s(value))
        elif letter == "d":
            if value.__class__ is not int or precision or (zero and left):
                raise Doubt("a format")
            text = str(value)
            if zero and width:
                text = f"{value:0{int(width)}d}"
        else:
            if value.__class__ not in (int, float) or zero or (precision and int(precision[1:]) > 50):
                raise Doubt("a format")
            text = f"{value:{precision or '.6'}f}"
        size = int(width or 0)
        return text.ljust(size) if left else text.rjust(size)

    result = _FORMAT.sub(converted, string("%", template))
    if pending:
        raise Doubt("more arguments than a format has")
    return result


def file_join(*parts: Value) -> str:
    """`File.join`: exactly one slash between two parts."""
    result = text_argument(parts[0])
    for part in parts[1:]:
        text = text_argument(part)
        if "\0" in text or (result.endswith("/") and text.startswith("/")):
            raise Doubt("File.join with slashes on both sides")
        result = result + text if result.endswith("/") or text.startswith("/") else f"{result}/{text}"
    return result


def file_basename(path: Value, suffix: Value = "") -> str:
    text = text_argument(path)
    if not text or text.endswith("/") or "\0" in text or suffix == ".*":
        raise Doubt("File.basename")
    name, end = text.rpartition("/")[2], text_argument(suffix)
    return name.removesuffix(end) if name != end else name


def regexp_escape(value: Value) -> str:
    return quoted(text_argument(value))


# --- JSON ---------------------------------------------------------------------------------------------------------


def to_json(value: Value, depth: int = 0) -> str:
    if depth > MAX_JSON_DEPTH:
        raise Doubt("a value that is nested too deeply")
    if value is None:
        return "null"
    if value.__class__ in (str, RubySymbol):
        return _json_text(value)
    if value.__class__ is list:
        return f"[{','.join([to_json(item, depth + 1) for item in value])}]"
    if value.__class__ is dict:
        return f"{{{','.join([f'{_json_key(key)}:{to_json(item, depth + 1)}' for key, item in value.items()])}}}"
    if value.__class__ is float and not math.isfinite(value):
        raise Doubt("a number that JSON does not have")
    if value.__class__ in (int, float, bool):
        return to_s(value)
    raise Doubt(f"a {class_name(value)} as JSON")


def _json_key(key: Value) -> str:
    value = value_of(key)
    if value.__class__ not in (str, int, RubySymbol):
        raise Doubt("a key of JSON")
    return _json_text(value)


def _json_text(value: Value) -> str:
    return json.dumps(check_text(to_s(value)), ensure_ascii=False)
