"""Strings: case, white space, length, joining, quoting, versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..callables.signatures import Parameter, Signature
from ..types.inference.iterables import elements
from ..types.kinds.base import VariantType
from ..types.kinds.containers import ArrayType, HashType
from ..types.kinds.scalars import NumericType, StringType
from ..types.named.aliases import AliasType
from ..types.notation.operands import flatten_arrays
from ..values.core import Binary, Key, Sensitive, Value, entries, key_of
from ..values.text import inspect, to_s
from .api import Context, Dispatch, Function, function, legacy_function

Token = TypeVar("Token", int, str)
_WHITE: Final = " \t\n\v\f\r\0"


def _map_strings(name: str, doc: str, change: Callable[[str], str]) -> Function:
    """Return a function that changes a string, or every string of an iterable; numbers stay as they are."""
    mapping = Function(name, (), doc)

    def change_item(value: Value) -> Value:
        return change(value) if value.__class__ is str else value

    mapping.also("Numeric arg")(lambda context, arg: arg)
    mapping.also("String arg")(lambda context, arg: change(arg))
    mapping.also("Iterable[Variant[String, Numeric]] arg")(lambda context, arg: [change_item(item) for item in elements(arg)])
    return mapping


def capitalize_text(text: str) -> str:
    return text[:1].title() + downcase_text(text[1:])


def downcase_text(text: str) -> str:
    """Return the text in lower case, letter by letter: as in Ruby, sigma has no other form at the end of a word."""
    return text.lower() if text.isascii() else "".join([letter.lower() for letter in text])


def _chop_text(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text[:-1]


def _chomp_text(text: str) -> str:
    for ending in ("\r\n", "\n", "\r"):
        if text.endswith(ending):
            return text[: -len(ending)]
    return text


def _camelcase_text(text: str) -> str:
    return "".join(capitalize_text(part) for part in text.split("_"))


camelcase = _map_strings("camelcase", "Return a string such as `foo_bar` as `FooBar`.", _camelcase_text)
capitalize = _map_strings(
    "capitalize", "Return a string with the first character in upper case and the others in lower case.", capitalize_text
)
chomp = _map_strings("chomp", "Return a string without a line break at its end.", _chomp_text)
chop = _map_strings("chop", "Return a string without its last character.", _chop_text)
lstrip = _map_strings("lstrip", "Return a string without white space at its start.", lambda text: text.lstrip(_WHITE))
rstrip = _map_strings("rstrip", "Return a string without white space at its end.", lambda text: text.rstrip(_WHITE))
strip = _map_strings("strip", "Return a string without white space at both ends.", lambda text: text.rstrip(_WHITE).lstrip(_WHITE))


def _string_data() -> AliasType:
    alias = AliasType("StringData")
    alias.define(VariantType((StringType(), NumericType(), ArrayType(alias), HashType(alias, alias))))
    return alias


def _map_case(name: str, doc: str, change: Callable[[str], str]) -> Function:
    def recase(value: Value) -> Value:
        if value.__class__ is str:
            return change(value)
        if value.__class__ is list:
            return [recase(item) for item in value]
        if value.__class__ is dict:
            return {key_of(recase(key)): recase(item) for key, item in entries(value)}
        return value

    def code(context: Context, arg: Value) -> Value:
        return recase(arg)

    data = _string_data()
    types = (NumericType(), StringType(), ArrayType(data), HashType(data, data))
    return Function(name, [Dispatch(Signature([Parameter("arg", type_)]), code) for type_ in types], doc)


upcase = _map_case("upcase", "Return strings in upper case, also those in arrays and hashes.", str.upper)
downcase = _map_case("downcase", "Return strings in lower case, also those in arrays and hashes.", downcase_text)


@function("length", "Collection arg")
def length(context: Context, arg: list[Value] | dict[Key, Value]) -> int:
    """Return the number of elements, characters or bytes."""
    return len(arg)


@length.also("String arg")
def length_of_string(context: Context, arg: str) -> int:
    return len(arg)


@length.also("Binary arg")
def length_of_binary(context: Context, arg: Binary) -> int:
    return len(arg.data)


@function("size", "Variant[Collection, String, Binary] arg")
def size(context: Context, arg: list[Value] | dict[Key, Value] | str | Binary) -> int:
    """Return the number of elements, characters or bytes; the older name of `length`."""
    return len(arg.data if isinstance(arg, Binary) else arg)


@function("empty", "Collection coll")
def empty(context: Context, coll: Value) -> bool:
    """Return whether a collection, string or Binary has no elements; true for undef."""
    return not coll


@empty.also("Sensitive[String] str")
def empty_sensitive(context: Context, str_: Sensitive) -> bool:
    return not str_.unwrap()


@empty.also("String str")
def empty_string(context: Context, str_: str) -> bool:
    return not str_


@empty.also("Numeric num")
def empty_number(context: Context, _: float) -> bool:
    context.warn_once("deprecations", "empty-from", "Calling function empty() with Numeric value is deprecated.", place=True)
    return False


@empty.also("Binary bin")
def empty_binary(context: Context, bin_: Binary) -> bool:
    return not bin_.data


@empty.also("Undef x")
def empty_undef(context: Context, _: None) -> bool:
    return True


def ruby_text(value: Value) -> str:
    """Return the result of Ruby's `to_s`: the text as in the language, but collections as `inspect` writes them."""
    if value.__class__ is Regexp:
        return str(value.embedded())
    return inspect(value) if value.__class__ in (list, dict) else to_s(value)


def join_nested(items: list[Value], delimiter: str) -> str:
    return delimiter.join(join_nested(item, delimiter) if item.__class__ is list else ruby_text(item) for item in items)


@function("join", "Array arg", "String delimiter?")
def join(context: Context, arg: list[Value], delimiter: str = "") -> str:
    """Return the elements as one string; nested arrays are flattened."""
    return join_nested(arg, delimiter)


_SAFE: Final = re.compile(r"[a-zA-Z0-9@%_+=:,./-]+")
_DANGEROUS: Final = '!"`$\\'


@legacy_function("shellquote", -1)
def shellquote(context: Context, *words: Value) -> str:
    """Return the words, each quoted for a POSIX shell, joined with blanks."""
    quoted_words = []
    for word in flatten_arrays(words):
        if not isinstance(word, str):
            raise EvaluationError(f"shellquote(): expects strings, got {inspect(word)}")
        if _SAFE.fullmatch(word):
            quoted_words.append(word)
        elif not any(char in word for char in _DANGEROUS):
            quoted_words.append(f'"{word}"')
        elif "'" not in word:
            quoted_words.append(f"'{word}'")
        else:
            quoted_words.append('"' + "".join("\\" + char if char in _DANGEROUS else char for char in word) + '"')
    return " ".join(quoted_words)


@function("versioncmp", "String a", "String b", "Boolean ignore_trailing_zeroes?")
def versioncmp(context: Context, a: str, b: str, ignore_trailing_zeroes: bool = False) -> int:
    """Return -1, 0 or 1 for two version strings."""
    return compare_versions(a, b, ignore_trailing_zeroes)


_TOKENS: Final = re.compile(r"[-.]|\d+|[^-.\d]+")


def _strip_zeroes(version: str) -> str:
    """Return a version without zeroes and dots at the end of the part before the first dash."""
    head, dash, rest = version.partition("-")
    return re.sub(r"[.0]+$", "", head) + dash + rest


def compare_versions(a: str, b: str, ignore_trailing_zeroes: bool = False) -> int:
    """Return -1, 0 or 1 for two versions. Source: functions reference, versioncmp."""
    if ignore_trailing_zeroes:
        a, b = _strip_zeroes(a), _strip_zeroes(b)
    tokens_a, tokens_b = _TOKENS.findall(a), _TOKENS.findall(b)
    for token_a, token_b in zip(tokens_a, tokens_b, strict=False):
        if token_a == token_b:
            continue
        for separator in ("-", "."):
            if token_a == separator:
                return -1
            if token_b == separator:
                return 1
        if token_a.isdigit() and token_b.isdigit():
            if token_a[0] == "0" or token_b[0] == "0":
                return _compare(token_a.upper(), token_b.upper())
            return _compare(len(token_a), len(token_b)) or _compare(token_a, token_b)  # no leading zeroes here: longer is larger
        return _compare(token_a.upper(), token_b.upper())
    return _compare(a, b)


def _compare(left: Token, right: Token) -> int:
    return (left > right) - (left < right)
