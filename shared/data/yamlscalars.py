"""
The meaning of YAML scalars: for Ruby's psych, which reads a site's files, and in a 3.x agent's messages.

Every pattern here is linear, and no number has more digits than JSON may have (see plainjson).
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from ..errors import BadData
from ..names import quoted_for_log
from .plainjson import MAX_NUMBER

MAX_DEPTH = 100  # levels of nesting
MAX_NODES = 1_000_000  # keys and values; what an alias names is counted each time it is used
STANDARD = "tag:yaml.org,2002:"

ALLOWED_CLASSES = frozenset(
    {
        "Puppet::Transaction::Report",
        "Puppet::Transaction::Event",
        "Puppet::Resource::Status",
        "Puppet::Util::Log",
        "Puppet::Util::Metric",
        "Puppet::Util::TagSet",
        "Puppet::Node",
        "Puppet::Node::Facts",
        "Puppet::Node::Environment",
        "Puppet::Resource",
        "Puppet::Resource::Catalog",
        "Puppet::SSL::Host",
        "Puppet::Status",
        "Hash",
        "ActiveSupport::HashWithIndifferentAccess",
        "Set",
        "Array",
        "String",
        "Symbol",
    }
)
_RUBY = re.compile(r"!ruby/(object|hash|sym|symbol|array|string|class|struct)(?::([\w:]+))?")

_SCALARS = frozenset(("binary", "bool", "float", "int", "merge", "null", "str", "timestamp", "value"))
_COLLECTIONS = frozenset(("map", "omap", "pairs", "seq", "set"))

_PSYCH_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("~", "null")),
    **dict.fromkeys(("yes", "true", "on"), True),
    **dict.fromkeys(("no", "false", "off"), False),
}
_CORE_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAYBE_NUMBER = frozenset("+-.0123456789")  # first characters

_TIME = re.compile(
    r"(-?[0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|\s+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?"
    r"(?:\s*(?:(Z)|([-+][0-9]{1,2}):?([0-9]{2})?))?"
)
_DATE = re.compile(r"([0-9]{4})-(1[012]|0?[0-9])-([12][0-9]|3[01]|0?[0-9])")
_QUOTED_SYMBOL = re.compile(r""":(["'])(.*)\1""")
_SIXTIES = re.compile(r"([-+]?[0-9][0-9_]*)((?::[0-5]?[0-9]){1,2})(\.[0-9_]*)?")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_,]*)?\.[0-9]*(?:[eE][-+][0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0b([01_,]+)|0x([0-9a-fA-F_,]+)|0([0-7_,]+)|(0|[1-9](?:[0-9]|[,_][0-9])*))")
_CORE_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_CORE_HEX = re.compile(r"0x([0-9a-fA-F]+)")
_CORE_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?")
_INFINITE = frozenset((".inf", "+.inf", "-.inf", ".nan"))


class ScalarError(BadData):
    """A scalar, map or list that cannot be read; the caller adds the place."""


class YamlError(BadData):
    """A text that is not YAML, or that is not accepted; `problem` without the place, `line` and `column` from 1, None if unknown."""

    def __init__(self, problem: str, line: int | None = None, column: int | None = None, *, syntax: bool = False) -> None:
        place = f" (line: {line}, column: {column})" if line is not None else ""
        super().__init__(f"{'Not YAML: ' if syntax else ''}{problem}{place}")
        self.problem = problem
        self.line = line
        self.column = column


class Scalars:
    """
    The reader of a document's scalars; a base class.

    Ruby's tags are read as their content if their class is on the allow-list; otherwise only YAML's own tags are known.
    `text_keys`: keys are their text, as in JSON, and none is merged.
    """

    text_keys = False

    def plain(self, text: str) -> Any:
        """Return the value of a scalar without quotes and without tag."""
        raise NotImplementedError

    def tagged(self, tag: str, text: str) -> Any:
        """Return the value of a scalar with a tag; ScalarError when the tag is not allowed, or does not fit."""
        return self._with_tag(tag, text, self.standard)

    def collection(self, tag: str, value: Any) -> Any:
        """Return the value of a map or list with a tag; errors as for scalars."""
        return self._with_tag(tag, value, self.standard_collection)

    def _with_tag(self, tag: str, value: Any, standard: Callable[[str, Any], Any]) -> Any:
        if tag.startswith("!ruby/"):
            return self.ruby(tag, value)
        if not tag.startswith(STANDARD):
            raise ScalarError(f"The YAML tag {quoted_for_log(tag)} is not allowed")
        return standard(tag.removeprefix(STANDARD), value)

    def ruby(self, tag: str, value: Any) -> Any:
        """Return the value of a text, a map or a list with a tag of Ruby."""
        match = _RUBY.fullmatch(tag)
        if not match or (match[2] and match[1] not in ("sym", "symbol") and match[2] not in ALLOWED_CLASSES):
            raise ScalarError(f"The YAML tag {quoted_for_log(tag)} is not allowed")
        return value

    def standard(self, kind: str, text: str) -> Any:
        """Return the value of a scalar with YAML's own tag `!!kind`."""
        raise NotImplementedError

    def standard_collection(self, kind: str, value: Any) -> Any:
        """Return the value of a map or list with YAML's own tag `!!kind`."""
        raise NotImplementedError

    def symbol(self, name: str) -> Any:
        """Return the value of a Ruby symbol."""
        return name


class Psych(Scalars):
    """
    As Ruby's psych 4: words of YAML 1.1, base 60 in up to three parts, underscores and commas in numbers.

    Args:
        times: times become `datetime`; otherwise they stay the text they were written as, with their nanoseconds.
    """

    def __init__(self, *, times: bool = False) -> None:
        self.times = times

    def plain(self, text: str) -> Any:
        if not text:
            return None
        first = text[0]
        if first not in _MAYBE_NUMBER:
            if first == ":" and len(text) > 1:
                quoted = _QUOTED_SYMBOL.match(text)
                return self.symbol(quoted[2] if quoted else text[1:])
            return _PSYCH_WORDS.get(text.lower(), text) if len(text) <= 5 else text
        if "-" in text[1:6]:
            if match := _TIME.fullmatch(text):
                return self.moment(text, _moment(match))
            if match := _DATE.fullmatch(text):
                return self.day(text, _day(match))
        if ":" in text:
            return _sixties(text)
        if text.lower() in _INFINITE:
            return float(text.replace(".", "", 1))
        if (integer := _INTEGER.fullmatch(text)) is not None:
            return _psych_integer(integer)
        if _FLOAT.fullmatch(text) and text.strip("+-") != ".":
            return _float(text.replace("_", "").replace(",", ""))
        return text

    def moment(self, text: str, moment: datetime | None) -> Any:
        """Return the value of a text in the form of a time; `moment` is None when there is no such time."""
        return moment if self.times and moment else text

    def day(self, text: str, day: date | None) -> Any:
        """Return the value of a text of the shape of a date."""
        return day if self.times and day else text

    def standard(self, kind: str, text: str) -> Any:
        if kind not in _SCALARS:
            raise ScalarError(f"The YAML tag {quoted_for_log('!!' + kind)} is not allowed")
        if kind == "binary":
            return self.binary(text)
        if kind == "str":
            return text
        if kind == "float":
            number = self.plain(text)
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ScalarError(f"{quoted_for_log(text)} is no number, as the tag !!float says")
            return float(number)
        return self.plain(text)

    def binary(self, text: str) -> str:
        """Return the content of base64 text; octets that are not UTF-8 are surrogate escapes, as in PSON."""
        return utf8_of(text, "surrogateescape")

    def standard_collection(self, kind: str, value: Any) -> Any:
        if kind not in _COLLECTIONS:
            raise ScalarError(f"The YAML tag {quoted_for_log('!!' + kind)} is not allowed")
        if kind == "set" and isinstance(value, dict):
            raise ScalarError("Tried to load unspecified class: Psych::Set")
        if kind == "omap" and isinstance(value, list) and all(isinstance(pair, dict) for pair in value):
            return {key: item for pair in value for key, item in pair.items()}
        return value


class Core(Scalars):
    """
    As 3.x agents mean it: the words and decimal numbers of YAML 1.2's core.

    Whatever 3.x writes without quotes although some version of YAML takes it for a number (`0o17`, `1e3`, `1_000`, `08`, `1:30`)
    is a text there, and is one here. Nothing is read that JSON could not say: keys are text, numbers are finite.
    """

    text_keys = True

    def plain(self, text: str) -> Any:
        if text in _CORE_WORDS:
            return _CORE_WORDS[text]
        first = text[0]
        if first not in _MAYBE_NUMBER:
            return self.symbol(text[1:]) if first == ":" and len(text) > 1 else text
        if _CORE_INTEGER.fullmatch(text):
            return _integer(text, 10)
        if _CORE_FLOAT.fullmatch(text) or text.lower() in _INFINITE:
            return _finite(text)
        if match := _CORE_HEX.fullmatch(text):
            return _integer(match[1], 16)
        return text

    def standard(self, kind: str, text: str) -> Any:
        if kind in ("str", "timestamp"):
            return text
        if kind == "binary":
            return utf8_of(text)
        expected = {"int": int, "float": float, "bool": bool, "null": type(None)}.get(kind)
        if expected is None:
            raise ScalarError(f"The YAML tag {quoted_for_log('!!' + kind)} is not allowed")
        value = self.plain(text)
        if expected is float and type(value) is int:
            return _finite(text)
        if type(value) is not expected:
            raise ScalarError(f"{quoted_for_log(text)} is not what the tag !!{kind} says")
        return value

    def standard_collection(self, kind: str, value: Any) -> Any:
        if kind != ("map" if isinstance(value, dict) else "seq"):
            raise ScalarError(f"The YAML tag {quoted_for_log('!!' + kind)} is not allowed")
        return value


def _moment(match: re.Match[str]) -> datetime | None:
    """Return the time of a match of _TIME, in UTC when it has no offset; None when there is no such time."""
    year, month, day, hour, minute, second = (int(match[number]) for number in range(1, 7))
    micro = int(((match[7] or "")[:6] or "0").ljust(6, "0"))
    offset = timedelta()
    if match[9]:
        hours, minutes = int(match[9]), int(match[10] or 0)
        offset = timedelta(hours=hours, minutes=-minutes if match[9].startswith("-") else minutes)
    try:
        return datetime(year, month, day, hour, minute, second, micro, timezone(offset) if offset else UTC)
    except ValueError:
        return None


def _day(match: re.Match[str]) -> date | None:
    """Return the day of a match of _DATE; None when there is no such day."""
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def _sixties(text: str) -> Any:
    """Return a number in base 60, whose last part is seconds if it has three parts and minutes if it has two; otherwise the text."""
    match = _SIXTIES.fullmatch(text)
    if match is None:
        return text
    first, rest = _integer(match[1].replace("_", ""), 10), match[2].split(":")[1:]
    seconds = first * 3600 + sum(int(part) * 60 ** (1 - number) for number, part in enumerate(rest))
    if match[3] is None:
        return seconds
    fraction = float(match[3].replace("_", "") + "0") if len(match[3]) <= MAX_NUMBER else _too_long()
    return _in_range(lambda: seconds + fraction * 60 ** (2 - len(rest)))


def _psych_integer(match: re.Match[str]) -> int:
    for group, base in ((2, 2), (3, 16), (4, 8), (5, 10)):
        if match[group] is not None:
            digits = match[group].replace("_", "").replace(",", "")
            return _integer(match[1] + (digits or "0"), base)
    raise AssertionError


def _integer(digits: str, base: int) -> int:
    """BadData when it has more digits than JSON may have."""
    if len(digits) > MAX_NUMBER * 4:  # the most that so many decimal digits have in base 2, and then some
        _too_long()
    number = int(digits, base)
    if len(str(number)) > MAX_NUMBER:
        _too_long()
    return number


def _too_long() -> Any:
    raise ScalarError("A number is too long")


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScalarError(f"{quoted_for_log(text)} is no number") from None


def _finite(text: str) -> float:
    number = math.nan if text.lower() in _INFINITE else float(text)
    if not math.isfinite(number):
        raise ScalarError(f"The number {quoted_for_log(text)} is out of range")
    return number


def _in_range(number: Any) -> float:
    try:
        return float(number())
    except OverflowError:
        raise ScalarError("A number is out of range") from None


def utf8_of(text: str, errors: str = "strict") -> str:
    """Return the content of base64 text when it is UTF-8."""
    try:
        return base64.b64decode(text).decode("utf-8", errors)
    except ValueError:
        raise ScalarError("!!binary is not the base64 of UTF-8") from None
