"""
Ruby's values in translated templates, and the methods that all of them have in Ruby's core: text, equality, order, class.

nil, booleans, numbers, strings, arrays and hashes are Python's None, bool, int, float, str, list and dict, keys of dicts as
`language.values.core` has them. Strings are never changed. A value of another class is one of the language that has no
counterpart here: whatever asks for more than its truth raises a Doubt.
"""

from __future__ import annotations

import itertools
import re
from functools import cache, cmp_to_key, lru_cache
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...values.core import HashKey, key_of, value_of
from ...values.text import float_text
from ..errors import LONG_BITS, Doubt, RubyError
from .lacking import LACKING, OF_BOOLEANS, OF_NIL

Value = Any


class RubySymbol:
    """One of Ruby's symbols; two with one name are the same object."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f":{self.name}"


@cache
def symbol(name: str) -> RubySymbol:
    """Return the symbol of a name; names come from the text of templates only."""
    return RubySymbol(name)


class RubyClass:
    """One of Ruby's classes as a value; two with one name are the same object."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


@cache
def ruby_class(name: str) -> RubyClass:
    """Return the class of a name; names come from `_CLASSES`."""
    return RubyClass(name)


UNDEF, DEFAULT_SYMBOL = symbol("undef"), symbol("default")


class RubyRange:
    """A range of integers; `last` is the value after the dots, None for an endless range."""

    __slots__ = ("first", "is_exclusive", "last")

    def __init__(self, first: int, last: int, *, is_exclusive: bool) -> None:
        self.first = first
        self.last = last
        self.is_exclusive = is_exclusive

    def items(self) -> range:
        return range(self.first, self.last + (0 if self.is_exclusive else 1))


def make_range(first: Value, last: Value, is_exclusive: bool) -> RubyRange:
    if first.__class__ is not int or last.__class__ is not int:
        raise Doubt("a range that is not of integers")
    return RubyRange(first, last, is_exclusive=is_exclusive)


class Pattern:
    """A regular expression; compiled when it is first used."""

    __slots__ = ("regexp",)

    def __init__(self, source: str) -> None:
        self.regexp = Regexp(source)

    def search(self, text: str, start: int = 0) -> Any:
        """Return the first match at or behind `start`; a Doubt when we do not support the expression or the text."""
        check_text(text)
        try:
            _ = self.regexp.pattern
        except EvaluationError as error:
            raise Doubt("a regular expression that is not known here") from error
        return self.regexp.search(text, start)


@lru_cache(maxsize=1000)
def pattern(source: str) -> Pattern:
    """Return the regular expression of a source."""
    return Pattern(source)


class TextSoFar:
    """The value of a statement that adds to the text: in Ruby the text so far."""


TEXT_SO_FAR = TextSoFar()

_CLASSES = {
    type(None): "NilClass",
    str: "String",
    int: "Integer",
    float: "Float",
    list: "Array",
    dict: "Hash",
    RubySymbol: "Symbol",
    RubyRange: "Range",
    Pattern: "Regexp",
    RubyClass: "Class",
}


def as_long(value: Value) -> Value:
    """Return the result of arithmetic; Doubt about an integer that Ruby's methods do not take."""
    if value.__class__ is int and value.bit_length() > LONG_BITS:
        raise Doubt("a large number")
    return value


def class_name(value: Value) -> str:
    """Return the name of a value's class."""
    if value.__class__ is bool:
        return "TrueClass" if value else "FalseClass"
    name = _CLASSES.get(value.__class__)
    if name is None:
        raise Doubt(f"a value of the class {value.__class__.__name__}")
    return name


def is_a(value: Value, name: str) -> bool:
    actual = class_name(value)
    return actual == name or (name == "Numeric" and actual in ("Integer", "Float"))


def class_of(value: Value) -> RubyClass:
    """Return the result of `class`."""
    return ruby_class(class_name(value))


def lacks(name: str, value: Value) -> bool:
    """Return whether the class of a value does not have a method."""
    if value is None:
        return name not in OF_NIL
    if value.__class__ is bool:
        return name not in OF_BOOLEANS
    return name in LACKING.get(class_name(value), ())


def missing_method(name: str, value: Value) -> Exception:
    """Return the error for a method that a value does not have; a Doubt when it may have it."""
    kind = class_name(value)
    return RubyError(f"undefined method `{name}' for {_shown(value)}:{kind}") if lacks(name, value) else Doubt(f"{kind}#{name}")


def _shown(value: Value) -> str:
    try:
        return inspect(value)
    except Doubt:
        return "a value"


# --- text ---------------------------------------------------------------------------------------------------------


def to_s(value: Value) -> str:
    """Return the result of `to_s`."""
    if value.__class__ is str:
        return value
    if value.__class__ is int:
        return str(value)
    if value is None:
        return ""
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is float:
        return float_text(value)
    if value.__class__ is list or value.__class__ is dict:
        return inspect(value)
    if value.__class__ is RubySymbol or value.__class__ is RubyClass:
        return value.name
    raise Doubt(f"the text of a {value.__class__.__name__}")


_QUOTED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\x1b": "\\e"}
_TO_QUOTE = re.compile(r"[\x00-\x1f\x7f\"\\]|#(?=[{$@])")
_PLAIN_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[?!=]?")


def inspect(value: Value, depth: int = 0) -> str:
    """Return the result of `inspect`."""
    if value.__class__ is str:
        return inspect_text(value)
    if value is None:
        return "nil"
    if depth > 100:
        raise Doubt("a value that is nested too deeply")
    if value.__class__ is list:
        return "[" + ", ".join([inspect(item, depth + 1) for item in value]) + "]"
    if value.__class__ is dict:
        pairs = [f"{inspect(value_of(key), depth + 1)}=>{inspect(item, depth + 1)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if value.__class__ is RubySymbol:
        if _PLAIN_SYMBOL.fullmatch(value.name) is None:
            raise Doubt("a symbol with a special name")
        return f":{value.name}"
    return to_s(value)


def inspect_text(text: str) -> str:
    if not text.isascii():
        raise Doubt("the notation of characters that are not ASCII")

    def quoted(match: re.Match[str]) -> str:
        character = match[0]
        if character == "#":
            return "\\#"
        known = _QUOTED.get(character)
        if known is None:
            raise Doubt("the notation of a control character")
        return known

    return f'"{_TO_QUOTE.sub(quoted, text)}"'


def check_text(text: str) -> str:
    """Return a text that is valid UTF-8; a Doubt about others."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Doubt("text that is not UTF-8") from None
    return text


def finish(text: str) -> str:
    """Return the text of a template, which may not have octets that could form characters together."""
    return check_text(text)


# --- equality and order -------------------------------------------------------------------------------------------

_SCALARS = frozenset((str, int, float, bool, type(None)))


def equal(left: Value, right: Value) -> bool:
    """Return the result of `==`."""
    kind, other = left.__class__, right.__class__
    if kind in _SCALARS and other in _SCALARS:
        if kind is other:
            return bool(left == right)
        if kind is bool or other is bool:
            return False
        return bool(left == right) if kind in (int, float) and other in (int, float) else False
    class_name(left)
    class_name(right)
    if kind is not other:
        return False
    if kind is list:
        return len(left) == len(right) and all(equal(one, two) for one, two in zip(left, right, strict=True))
    if kind is dict:
        if len(left) != len(right):
            return False
        return all(key in right and equal(item, right[key]) for key, item in left.items())
    if kind is RubySymbol or kind is RubyClass:
        return left is right
    raise Doubt(f"equality of {class_name(left)}")


def eql(left: Value, right: Value) -> bool:
    """Return the result of `eql?`."""
    if left.__class__ is not right.__class__:
        class_name(left)
        class_name(right)
        return False
    if left.__class__ is list:
        return len(left) == len(right) and all(eql(one, two) for one, two in zip(left, right, strict=True))
    if left.__class__ is dict:
        raise Doubt("hashes that are compared by eql?")
    return equal(left, right)


def identity(value: Value) -> Any:
    """Return a key that two values share exactly when Ruby's `hash` and `eql?` treat them as equal."""
    if value.__class__ is str:
        return value
    if value.__class__ is list:
        return ("array", tuple([identity(item) for item in value]))
    if value.__class__ is dict:
        raise Doubt("hashes that are compared by eql?")
    class_name(value)
    if value.__class__ is float and value != value:
        raise Doubt("NaN")
    return (value.__class__, value)


def key_for(value: Value) -> Any:
    """Return the key of a dict for a value."""
    if value.__class__ in (str, int, RubySymbol) or value is None:
        return value
    if value.__class__ in (bool, float):
        return key_of(value)
    raise Doubt(f"a key of the class {value.__class__.__name__}")


def from_key(key: Any) -> Value:
    """Return the value of a key of a dict."""
    return key.value if key.__class__ is HashKey else key


def spaceship(left: Value, right: Value) -> int | None:
    """Return the result of `<=>`."""
    kind, other = left.__class__, right.__class__
    if kind is other and kind in (str, int):
        if kind is str and not (left.isascii() and right.isascii()):
            check_text(left)
            check_text(right)
        return int(left > right) - int(left < right)
    if kind in (int, float) and other in (int, float):
        if left != left or right != right:
            raise Doubt("NaN")
        return int(left > right) - int(left < right)
    if kind is list and other is list:
        for one, two in zip(left, right, strict=False):
            result = spaceship(one, two)
            if result != 0:
                return result
        return (len(left) > len(right)) - (len(left) < len(right))
    if kind is RubySymbol or other is RubySymbol:
        raise Doubt("the order of symbols")
    class_name(left)
    class_name(right)
    return 0 if kind is other and kind in (bool, type(None), dict) and equal(left, right) else None


def compare(left: Value, right: Value) -> int:
    """Return the order of two values that are sorted; raise Ruby's error for values without an order."""
    result = spaceship(left, right)
    if result is None:
        what = "nil" if right is None else inspect(right) if right.__class__ in (int, float, bool) else class_name(right)
        raise RubyError(f"comparison of {class_name(left)} with {what} failed")
    return result


SORT_KEY = cmp_to_key(compare)


def sort_values(values: list[Value]) -> list[Value]:
    """Return sorted values; raise Doubt when equal values can be distinguished, because Ruby's order of them is not certain."""
    if all(value.__class__ is str and value.isascii() for value in values) or all(value.__class__ is int for value in values):
        return sorted(values)
    result = sorted(values, key=SORT_KEY)
    for one, two in itertools.pairwise(result):
        if compare(one, two) == 0 and not eql(one, two):
            raise Doubt("the order of equal values")
    return result


def copy(value: Value) -> Value:
    """Return a value that can be changed without the original."""
    if value.__class__ is list:
        return [copy(item) for item in value]
    if value.__class__ is dict:
        return {key: copy(item) for key, item in value.items()}
    return value
