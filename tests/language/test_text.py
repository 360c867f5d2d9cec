"""Values as text: to-string, program form, formats, sprintf. Origin of what is expected: Puppet 7.23."""

from __future__ import annotations

import pytest

from language.callables.formats import to_string
from language.callables.sprintf import format_text
from language.types.kinds.references import ClassType, ResourceEntryType
from language.types.kinds.scalars import IntegerType
from language.types.notation.parse import parse_type
from language.values.core import DEFAULT, Binary, Deferred, Sensitive, Value, key_of
from language.values.text import float_text, inspect, program, quoted, to_s
from language.values.times import Timespan, Timestamp
from language.values.uris import URI
from language.values.versions import SemVer
from shared.errors import EvaluationError
from shared.regexps import Regexp

TO_S: list[tuple[Value, str]] = [
    ("a", "a"),
    (1, "1"),
    (True, "true"),
    (None, ""),
    (DEFAULT, "default"),
    ([1, None, "x"], "[1, , x]"),
    ({"k": {key_of(1.0): [True]}}, "{k => {1.0 => [true]}}"),
    ({}, "{}"),
    (Regexp("a/b"), r"/a\/b/"),
    (IntegerType(1, 2), "Integer[1, 2]"),
    (ResourceEntryType("notify", "a"), "Notify['a']"),
    (ClassType("a::b"), "Class[a::b]"),
    (Sensitive("secret"), "Sensitive [value redacted]"),
    (Timespan.seconds(90), "0-00:01:30.0"),
    (Timestamp(0), "1970-01-01T00:00:00.000000000 UTC"),
    (SemVer.parse("1.2.3-a+b"), "1.2.3-a+b"),
    (URI.parse("http://a/b"), "http://a/b"),
    (Binary(b"abc"), "YWJj"),
    (Deferred("x", [1]), "Deferred({'name' => 'x', 'arguments' => [1]})"),
]


@pytest.mark.parametrize(("value", "text"), TO_S)
def test_interpolated(value: Value, text: str) -> None:
    assert to_s(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e14, "100000000000000.0"),
        (1e15, "1.0e+15"),
        (1234567890123456.0, "1.234567890123456e+15"),
        (1e16, "1.0e+16"),
        (0.0001, "0.0001"),
        (0.00001, "1.0e-05"),
        (-0.0, "-0.0"),
        (-1.5e20, "-1.5e+20"),
        (float("inf"), "Infinity"),
    ],
)
def test_floats(value: float, text: str) -> None:
    assert float_text(value) == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("a", "'a'"),
        ("it's", r"'it\'s'"),
        ("a\\b", r"'a\b'"),
        ("end\\", "'end\\'"),
        ("n\n", r'"n\n"'),
        ("\x07$", r'"\u{7}\$"'),
        ("é", "'é'"),
    ],
)
def test_quoted(text: str, literal: str) -> None:
    assert quoted(text) == literal


def test_program_form_quotes_strings_inside() -> None:
    assert program([1, "a", None, {"k": "v"}]) == "[1, 'a', undef, {'k' => 'v'}]"


def test_inspect_is_what_the_reference_prints_for_hashes_in_join() -> None:
    assert inspect({"a": [1, None, 'x"#{y}']}) == r'{"a"=>[1, nil, "x\"\#{y}"]}'


FORMATS: list[tuple[Value, Value, str]] = [
    (1, DEFAULT, "1"),
    (1.0, DEFAULT, "1.000000"),
    (255, "%#x", "0xff"),
    (-255, "%x", "..f01"),
    (65, "%c", "A"),
    (3.7, "%d", "3"),
    ("foo::bar", "%C", "Foo::Bar"),
    ("x", "%#p", '"x"'),
    (" x ", "%t", "x"),
    (True, "%y", "yes"),
    (False, "%#T", "F"),
    (None, "%u", "undef"),
    (None, "%d", "NaN"),
    (DEFAULT, "%D", "Default"),
    (Regexp("a"), "%p", "/a/"),
    (Regexp("a"), "%s", "a"),
    ([1, "a", None], DEFAULT, "[1, 'a', undef]"),
    ([1, [2, 3]], "%#a", "[1,\n  [2, 3]]"),
    ([1, 2], "%(a", "(1, 2)"),
    ({"a": 1}, "%|h", "|'a' => 1|"),
    ({"a": [1, 2]}, "%#h", "{\n  'a' => [1, 2]\n}"),
    ({"a": 1}, "%a", "[['a', 1]]"),
    (Binary(b"abc"), "%s", "abc"),
    (10, {parse_type("Integer"): "%x"}, "a"),
    ([1, "a"], {parse_type("Array"): {"format": "%(a", "separator": "; ", "string_formats": {parse_type("Integer"): "%#x"}}}, "(0x1; 'a')"),
]


@pytest.mark.parametrize(("value", "formats", "text"), FORMATS)
def test_string_formats(value: Value, formats: Value, text: str) -> None:
    assert to_string(value, formats) == text


@pytest.mark.parametrize(
    ("value", "format_", "message"),
    [
        (1, "%z", "Illegal format 'z' specified for value of Integer type - expected one of the characters 'dxXobBeEfgGaAspc'"),
        ("a", "%z", "Illegal format 'z' specified for value of String type - expected one of the characters 'cCudspt'"),
        (1, "x", "The format 'x' is not a valid format on the form '%<flags><width>.<prec><format>'"),
        (1, "%##d", "The same flag can only be used once, got '%##d'"),
    ],
)
def test_formats_that_are_wrong_are_named(value: Value, format_: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        to_string(value, format_)
    assert caught.value.message == message


SPRINTF: list[tuple[str, list[Value], str]] = [
    ("%5d|%-5d|%05d|%+d|% d", [1, 2, 3, 4, 5], "    1|2    |00003|+4| 5"),
    ("%x %X %#x %o %b", [255, 255, 255, 8, 5], "ff FF 0xff 10 101"),
    ("%08x|%.5x|%8x", [-255, -255, -255], "..ffff01|..f01|   ..f01"),
    ("%e %g %.0f", [12345.678, 1e-10, 2.5], "1.234568e+04 1e-10 2"),
    ("%s %p %.2s|", ["a", "b", "xyz"], 'a "b" xy|'),
    ("%c%c", [65, "z"], "Az"),
    ("%<a>d %{b}", [{"a": 1, "b": 2}], "1 2"),
    ("%2$s %1$s", ["a", "b"], "b a"),
    ("%*d", [5, 42], "   42"),
    ("%d %d", ["0x1f", -3.99], "31 -3"),
    ("100%%", [], "100%"),
    ("%.2f %.1f %.3f %.3f", [12.345, 0.35, 2.0005, 0.0005], "12.34 0.4 2.000 0.001"),
]


@pytest.mark.parametrize(("format_", "args", "text"), SPRINTF)
def test_sprintf(format_: str, args: list[Value], text: str) -> None:
    assert format_text(format_, args) == text


@pytest.mark.parametrize(
    ("format_", "args", "message"),
    [
        ("%s", [], "too few arguments"),
        ("%d", ["x"], 'invalid value for Integer(): "x"'),
        ("%d", [None], "can't convert nil into Integer"),
        ("%z", [1], "malformed format string - %z"),
        ("%<a>s", [{"b": 1}], "key<a> not found"),
        ("%99999999999d", [1], "width too big"),
    ],
)
def test_sprintf_refuses_in_rubys_words(format_: str, args: list[Value], message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        format_text(format_, args)
    assert caught.value.message == message
