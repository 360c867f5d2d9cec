"""Operators on values. Origin of what is expected: Puppet 7.23."""

from __future__ import annotations

import pytest

from language.callables import operators as o
from language.errors.issues import BadOperand
from language.types.kinds.base import UNDEF, OptionalType, VariantType
from language.types.kinds.scalars import INTEGER, STRING, IntegerType, NumericType
from language.values import comparison
from language.values.core import DEFAULT, Binary, Reporter, Strictness, Value, key_of
from language.values.numbers import to_number
from language.values.times import Timespan, Timestamp
from language.values.uris import URI
from language.values.versions import SemVer, SemVerRange
from shared.errors import EvaluationError
from shared.regexps import Regexp


class Ear(Reporter):
    """A Reporter that keeps what it hears."""

    __slots__ = ("heard",)

    def __init__(self, strict: Strictness = Strictness.WARNING) -> None:
        super().__init__(strict)
        self.heard: list[str] = []

    def warn(self, message: str, operand: int | None = None) -> None:
        self.heard.append(message)


OFF = Ear(Strictness.OFF)
BINARY = {"+": o.plus, "-": o.minus, "*": o.times, "/": o.divide, "%": o.modulo, "<<": o.shift_left, ">>": o.shift_right}

RESULTS: list[tuple[Value, str, Value, Value]] = [
    (1, "+", 2, 3),
    (1, "+", 1.5, 2.5),
    (1, "+", "2", 3),
    ("0x10", "+", 1, 17),
    ("010", "+", 0, 8),
    (7, "/", 2, 3),
    (-10, "/", 3, -4),
    (7.0, "/", 2, 3.5),
    (10, "%", -3, -2),
    (1, "<<", 3, 8),
    (1, "<<", -1, 0),
    (16, ">>", 2, 4),
    ([1], "+", [2], [1, 2]),
    ([1], "+", {"a": 1}, [1, ["a", 1]]),
    ([1], "+", 2, [1, 2]),
    ([1, 2, 1, "a"], "-", 1, [2, "a"]),
    (["a", "A"], "-", ["A"], ["a"]),
    ([1], "<<", [2], [1, [2]]),
    ({"a": 1}, "+", {"a": 2, "b": 3}, {"a": 2, "b": 3}),
    ({"a": 1}, "+", [["b", 2]], {"a": 1, "b": 2}),
    ({"a": 1}, "+", ["b", 2], {"a": 1, "b": 2}),
    ({"a": 1, "b": 2}, "-", ["a"], {"b": 2}),
    ({"a": 1, "b": 2}, "-", {"b": 5}, {"a": 1}),
    (Timespan.seconds(60), "+", 5, Timespan.seconds(65)),
    (Timespan.seconds(60), "/", Timespan.seconds(120), 0.5),
    (Timestamp(10), "-", Timestamp(4), Timespan(6)),
    (Binary(b"a"), "+", Binary(b"b"), Binary(b"ab")),
    (URI.parse("http://x/a/b"), "+", "../c", URI.parse("http://x/c")),
]


@pytest.mark.parametrize(("left", "operator", "right", "expected"), RESULTS)
def test_results(left: Value, operator: str, right: Value, expected: Value) -> None:
    result = BINARY[operator](left, right, OFF)
    assert result == expected
    assert result.__class__ is expected.__class__


REFUSED: list[tuple[Value, str, Value, str, int | None]] = [
    ("abc", "+", 1, "The value 'abc' cannot be converted to Numeric.", 0),
    (1, "+", None, "The value '' cannot be converted to Numeric.", 1),
    (1, "/", 0, "Division by 0", 1),
    (7.5, "/", 0, "The result of the / expression is Infinity", 0),
    (10, "%", 1.5, "Operator '%' is not applicable to an Integer when right side is a Float.", 0),
    ({"a": 1}, "<<", 1, "Operator '<<' is not applicable to a Hash.", 0),
    (2**63 - 1, "+", 1, "A '+' expression resulted in a value outside of Puppet Integer max range, got '+0x8000000000000000'", None),
    (1, "<<", 10**9, None, None),
]


@pytest.mark.parametrize(("left", "operator", "right", "message", "operand"), REFUSED)
def test_what_cannot_be_computed_says_which_operand(
    left: Value, operator: str, right: Value, message: str | None, operand: int | None
) -> None:
    with pytest.raises(BadOperand) as caught:
        BINARY[operator](left, right, OFF)
    if message is not None:
        assert caught.value.message == message
    assert caught.value.operand == operand


def test_coercion_is_told_or_refused_as_the_setting_says() -> None:
    ear = Ear()
    assert o.plus("1", 2, ear) == 3
    assert ear.heard == ["The string '1' was automatically coerced to the numerical value 1"]
    with pytest.raises(EvaluationError, match="automatically coerced"):
        o.plus("1", 2, Ear(Strictness.ERROR))
    silent = Ear(Strictness.OFF)
    o.plus("1", 2, silent)
    assert silent.heard == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        (" -  5 ", -5),
        ("0x1F", 31),
        ("017", 15),
        ("1.5e3", 1500.0),
        ("09", None),
        ("1_000", None),
        ("0.0e5", None),
        ("", None),
        ("x", None),
    ],
)
def test_numbers_in_strings(text: str, number: float | None) -> None:
    assert to_number(text) == number


def test_numbers_without_end_are_refused_instead_of_read() -> None:
    for text in ("9" * 5000, "0x" + "f" * 5000):
        with pytest.raises(EvaluationError, match="has more than 4000 digits"):
            o.plus(text, 1, OFF)


EQUAL: list[tuple[Value, Value, bool]] = [
    ("a", "A", True),
    ("ä", "Ä", False),
    (1, 1.0, True),
    (1, "1", False),
    (1, True, False),
    ([1, "a"], [1.0, "A"], True),
    ({"a": 1}, {"A": 1}, False),
    ({"a": 1}, {"a": 1.0}, True),
    (None, "", False),
    (None, False, False),
    (OptionalType(STRING), VariantType([STRING, UNDEF]), True),
    (Timespan.seconds(1), 1, True),
    (DEFAULT, DEFAULT, True),
]


@pytest.mark.parametrize(("left", "right", "expected"), EQUAL)
def test_equality(left: Value, right: Value, expected: bool) -> None:
    assert comparison.equals(left, right) is expected
    assert comparison.equals(right, left) is expected


def test_ordering() -> None:
    assert comparison.less("a", "B")
    assert comparison.greater_equal(1.5, 1)
    assert comparison.less(INTEGER, NumericType())
    assert comparison.less(SemVer.parse("1.0.0-2"), SemVer.parse("1.0.0-10"))
    assert comparison.less(Timespan.seconds(1), 2)
    with pytest.raises(BadOperand) as caught:
        comparison.less(1, "a")
    assert caught.value.message == (
        "Comparison of: Integer < String, is not possible. Caused by 'A Numeric is not comparable to non Numeric'."
    )


IN: list[tuple[Value, Value, bool]] = [
    ("B", "abc", True),
    (1, "x1", False),
    (1, [1.0], True),
    ("a", ["A"], True),
    ("1", [1], False),
    (INTEGER, ["a", 1], True),
    ("a", {"A": 1}, True),
    (Regexp("b"), ["abc"], True),
    (SemVer(1, 2, 0), SemVerRange.parse("1.x"), True),
    (None, [None], True),
    ("a", 5, False),
]


@pytest.mark.parametrize(("left", "right", "expected"), IN)
def test_membership(left: Value, right: Value, expected: bool) -> None:
    assert bool(comparison.contains(left, right)) is expected


MATCHING: list[tuple[Value, Value, bool]] = [
    ("ABC", "abc", True),
    ("abc", Regexp("^b"), False),
    (5, Regexp("5"), False),
    (5, IntegerType(1, 6), True),
    ("1", 1, False),
    ([1, "a"], [INTEGER, Regexp("a")], True),
    ([1], [1, 2], False),
    ({"a": 1, "b": 2}, {"a": INTEGER}, True),
    ("1.2.3", SemVerRange.parse("1.x"), True),
    (None, None, True),
]


@pytest.mark.parametrize(("value", "option", "expected"), MATCHING)
def test_case_options(value: Value, option: Value, expected: bool) -> None:
    assert bool(comparison.matches(value, option)) is expected


def test_a_match_gives_its_groups() -> None:
    found = comparison.match("foo=bar", Regexp(r"(\w+)=(\w+)"))
    assert not isinstance(found, bool)
    assert found.groups() == ("foo", "bar")
    assert comparison.match("x", STRING) is True
    with pytest.raises(BadOperand, match=r"Left match operand must result in a String value\. Got an Integer\."):
        comparison.match(1, Regexp("a"))


ACCESS: list[tuple[Value, list[Value], Value]] = [
    ("abc", [1], "b"),
    ("abc", [-1], "c"),
    ("abc", [9], ""),
    ("abc", [1, -1], "bc"),
    ("hello", [-3, 2], "ll"),
    ([1, 2, 3], [5], None),
    ([1, 2, 3], ["1"], 2),
    ([1, 2, 3], [-5, 3], [1]),
    ([1, 2, 3], [1, -1], [2, 3]),
    ([1, 2, 3], [7, 2], []),
    ({"a": 1, "b": None, "c": 3}, ["a", "b", "c", "d"], [1, 3]),
    ({1: "x"}, ["1"], None),
    ({key_of([1]): "x"}, [[1]], "x"),
]


@pytest.mark.parametrize(("left", "keys", "expected"), ACCESS)
def test_access(left: Value, keys: list[Value], expected: Value) -> None:
    assert o.access(left, keys, OFF) == expected


def test_access_of_what_has_no_parts_blames_the_left_side() -> None:
    with pytest.raises(BadOperand) as caught:
        o.access(None, [1], OFF)
    assert caught.value.message == "Operator '[]' is not applicable to an Undef Value."
    assert caught.value.operand == -1


def test_unfold() -> None:
    assert o.unfold([1]) == [1]
    assert o.unfold({"a": 1}) == [["a", 1]]
    assert o.unfold(None) == []
    assert o.unfold("a") == ["a"]
