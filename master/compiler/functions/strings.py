"""Strings: case, white space, length, joining, quoting, versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..callables.signatures import Parameter, Signature
from ..types.aliases import AliasType
from ..types.base import VariantType
from ..types.containers import ArrayType, HashType
from ..types.iterables import elements
from ..types.notation.operands import flatten_arrays
from ..types.scalars import NumericType, StringType
from ..values.core import Binary, Sensitive, Value, entries, key_of
from ..values.text import inspect, to_s
from .api import Context, Dispatch, Function, function, legacy_function

_WHITE: Final = " \t\n\v\f\r\0"


def _each_string(name: str, doc: str, change: Callable[[str], str]) -> Function:
    """A function of a string, or of every string of an iterable; numbers stay as they are."""
    declared = Function(name, (), doc)

    def one(value: Value) -> Value:
        return change(value) if value.__class__ is str else value

    declared.also("Numeric arg")(lambda context, arg: arg)
    declared.also("String arg")(lambda context, arg: change(arg))
    declared.also("Iterable[Variant[String, Numeric]] arg")(lambda context, arg: [one(item) for item in elements(arg)])
    return declared


def capitalized(text: str) -> str:
    return text[:1].title() + downcased(text[1:])


def downcased(text: str) -> str:
    """In lower case, letter by letter: a sigma at the end of a word is none of its own, as in Ruby."""
    return text.lower() if text.isascii() else "".join([letter.lower() for letter in text])


def _chopped(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text[:-1]


def _chomped(text: str) -> str:
    for ending in ("\r\n", "\n", "\r"):
        if text.endswith(ending):
            return text[: -len(ending)]
    return text


def _camel(text: str) -> str:
    return "".join(capitalized(part) for part in text.split("_"))


camelcase = _each_string("camelcase", "`foo_bar` as `FooBar`.", _camel)
capitalize = _each_string("capitalize", "The first character in upper case, the others in lower case.", capitalized)
chomp = _each_string("chomp", "Without a line break at the end.", _chomped)
chop = _each_string("chop", "Without the last character.", _chopped)
lstrip = _each_string("lstrip", "Without white space in front.", lambda text: text.lstrip(_WHITE))
rstrip = _each_string("rstrip", "Without white space at the end.", lambda text: text.rstrip(_WHITE))
strip = _each_string("strip", "Without white space at both ends.", lambda text: text.rstrip(_WHITE).lstrip(_WHITE))


def _string_data() -> AliasType:
    alias = AliasType("StringData")
    alias.define(VariantType((StringType(), NumericType(), ArrayType(alias), HashType(alias, alias))))
    return alias


def _recased(name: str, doc: str, change: Callable[[str], str]) -> Function:
    def recase(value: Value) -> Value:
        kind = value.__class__
        if kind is str:
            return change(value)
        if kind is list:
            return [recase(item) for item in value]
        if kind is dict:
            return {key_of(recase(key)): recase(item) for key, item in entries(value)}
        return value

    def code(context: Context, arg: Value) -> Value:
        return recase(arg)

    data = _string_data()
    types = (NumericType(), StringType(), ArrayType(data), HashType(data, data))
    return Function(name, [Dispatch(Signature([Parameter("arg", type_)]), code) for type_ in types], doc)


upcase = _recased("upcase", "All letters in upper case, in strings, arrays and hashes.", str.upper)
downcase = _recased("downcase", "All letters in lower case, in strings, arrays and hashes.", downcased)


@function("length", "Collection arg")
def length(context: Context, arg: Value) -> int:
    """How many elements, characters or bytes."""
    return len(arg)


@length.also("String arg")
def length_of_string(context: Context, arg: str) -> int:
    return len(arg)


@length.also("Binary arg")
def length_of_binary(context: Context, arg: Binary) -> int:
    return len(arg.data)


@function("size", "Variant[Collection, String, Binary] arg")
def size(context: Context, arg: Value) -> int:
    """As `length`."""
    return len(arg.data if isinstance(arg, Binary) else arg)


@function("empty", "Collection coll")
def empty(context: Context, coll: Value) -> bool:
    """Whether there is nothing in it."""
    return not coll


@empty.also("Sensitive[String] str")
def empty_sensitive(context: Context, str_: Sensitive) -> bool:
    return not str_.unwrap()


@empty.also("String str")
def empty_string(context: Context, str_: str) -> bool:
    return not str_


@empty.also("Numeric num")
def empty_number(context: Context, num: float) -> bool:
    context.warn_once("deprecations", "empty-from", "Calling function empty() with Numeric value is deprecated.", place=True)
    return False


@empty.also("Binary bin")
def empty_binary(context: Context, bin_: Binary) -> bool:
    return not bin_.data


@empty.also("Undef x")
def empty_undef(context: Context, x: None) -> bool:
    return True


def ruby_text(value: Value) -> str:
    """`to_s` of the reference's own language: as ours, but collections as `inspect` shows them."""
    if value.__class__ is Regexp:
        return str(value.embedded())
    return inspect(value) if value.__class__ in (list, dict) else to_s(value)


def joined(items: list[Value], delimiter: str) -> str:
    return delimiter.join(joined(item, delimiter) if item.__class__ is list else ruby_text(item) for item in items)


@function("join", "Array arg", "String delimiter?")
def join(context: Context, arg: list[Value], delimiter: str = "") -> str:
    """The elements as one string; nested arrays are flattened."""
    return joined(arg, delimiter)


_SAFE: Final = re.compile(r"[a-zA-Z0-9@%_+=:,./-]+")
_DANGEROUS: Final = '!"`$\\'


@legacy_function("shellquote", -1)
def shellquote(context: Context, *words: Value) -> str:
    """The words, each quoted for a POSIX shell, joined with blanks."""
    out = []
    for word in flatten_arrays(words):
        if not isinstance(word, str):
            raise EvaluationError(f"shellquote(): expects strings, got {inspect(word)}")
        if _SAFE.fullmatch(word):
            out.append(word)
        elif not any(c in word for c in _DANGEROUS):
            out.append(f'"{word}"')
        elif "'" not in word:
            out.append(f"'{word}'")
        else:
            out.append('"' + "".join("\\" + c if c in _DANGEROUS else c for c in word) + '"')
    return " ".join(out)


@function("versioncmp", "String a", "String b", "Boolean ignore_trailing_zeroes?")
def versioncmp(context: Context, a: str, b: str, ignore_trailing_zeroes: bool = False) -> int:
    """-1, 0 or 1 for two version strings."""
    return compare_versions(a, b, ignore_trailing_zeroes)


_TOKENS: Final = re.compile(r"[-.]|\d+|[^-.\d]+")


def _without_zeroes(version: str) -> str:
    """Without zeroes and dots at the end of what is in front of the first dash."""
    head, dash, rest = version.partition("-")
    return re.sub(r"[.0]+$", "", head) + dash + rest


def compare_versions(a: str, b: str, ignore_trailing_zeroes: bool = False) -> int:
    """Source: functions reference, versioncmp."""
    if ignore_trailing_zeroes:
        a, b = _without_zeroes(a), _without_zeroes(b)
    ours, theirs = _TOKENS.findall(a), _TOKENS.findall(b)
    for mine, other in zip(ours, theirs, strict=False):
        if mine == other:
            continue
        for mark in ("-", "."):
            if mine == mark:
                return -1
            if other == mark:
                return 1
        if mine.isdigit() and other.isdigit():
            if mine[0] == "0" or other[0] == "0":
                return _order(mine.upper(), other.upper())
            return _order(len(mine), len(other)) or _order(mine, other)  # no leading zeroes here: longer is larger
        return _order(mine.upper(), other.upper())
    return _order(a, b)


def _order(one: str | int, two: str | int) -> int:
    return (one > two) - (one < two)  # type: ignore[operator]
