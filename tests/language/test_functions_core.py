"""The builtin functions. Origin of what is expected: Puppet 7.23, Ruby 3.1 for the random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from language.callables.signatures import Closure, Parameter, Signature
from language.errors.control import Break, Next, Return
from language.errors.issues import BadOperand
from language.functions import Context, builtin_functions
from language.functions.digests import seeded_number
from language.functions.scan import scan_values
from language.functions.strings import compare_versions
from language.types.kinds.scalars import INTEGER, IntegerType
from language.types.notation.parse import parse_type
from language.values.core import Binary, Iterator, Reporter, Sensitive, Value, key_of
from language.values.times import Timespan, Timestamp
from language.values.versions import SemVer
from shared.errors import EvaluationError, Location
from shared.regexps import Regexp

FUNCTIONS = builtin_functions()


class Place:
    """A Context that keeps what is logged."""

    def __init__(self, **variables: Value) -> None:
        self.reporter = Reporter()
        self.types = self
        self.logs: list[tuple[str, str]] = []
        self.variables = variables

    def find_type(self, name: str) -> None:
        return None

    def log(self, level: str, message: str) -> None:
        self.logs.append((level, message))

    def warn_once(self, kind: str, key: str, message: str, *, place: bool = False) -> None:
        self.logs.append(("warning", message))

    def call_function(self, name: str, args: Sequence[Value], block: Closure | None = None) -> Value:
        return FUNCTIONS[name].call(self, args, block)

    def has_function(self, name: str) -> bool:
        return name in FUNCTIONS

    def variable(self, name: str) -> Value:
        return self.variables[name]

    def fact(self, name: str) -> Value:
        facts = self.variables.get("facts")
        return facts.get(name) if isinstance(facts, dict) else None

    def setting(self, name: str) -> Value:
        return {"digest_algorithm": "sha256"}.get(name)

    def now(self) -> int:
        return 0

    def mark_uncacheable(self, reason: str, where: Location | None = None) -> None:
        pass


def call(name: str, *args: Value, block: Closure | None = None, context: Context | None = None) -> Value:
    return FUNCTIONS[name].call(context or Place(), list(args), block)


def lambda_(code: object, count: int) -> Closure:
    return Closure(code, Signature([Parameter(f"p{i}") for i in range(count)]))  # type: ignore[arg-type]


RESULTS: list[tuple[str, list[Value], Value]] = [
    ("upcase", ["straße"], "STRASSE"),
    ("upcase", [["a", {"b": "c"}]], ["A", {"B": "C"}]),
    ("capitalize", ["hELLO wORLD"], "Hello world"),
    ("camelcase", ["::foo_bar"], "::fooBar"),
    ("camelcase", [["a_b", "c"]], ["AB", "C"]),
    ("chomp", ["a\n\n"], "a\n"),
    ("chop", ["a\r\n"], "a"),
    ("strip", ["\t\u00a0a \0"], "\u00a0a"),
    ("length", ["é"], 1),
    ("size", [{"a": 1}], 1),
    ("empty", [None], True),
    ("empty", [Sensitive("")], True),
    ("join", [[1, [2, [None, "a"]], {"b": 1}], ","], '1,2,,a,{"b"=>1}'),
    ("split", ["a.b", "."], []),
    ("split", [",a,,b,,", ","], ["", "a", "", "b"]),
    ("split", ["a1b2", r"(\d)"], ["a", "1", "b", "2"]),
    ("split", ["abc", ""], ["a", "b", "c"]),
    ("split", ["abc", "b*"], ["a", "c"]),
    ("regsubst", ["a.b.c", r"\.", "-", "G"], "a-b-c"),
    ("regsubst", ["aaa", "a*?", "x", "G"], "xaxaxax"),
    ("regsubst", ["a\nb\n", "^", "> ", "G"], "> a\n> b\n"),
    ("regsubst", ["a b", r"(\w) (\w)", r"\2 \1 \0 \\"], r"b a a b \\"[:-1]),
    ("regsubst", [["a1", "b"], r"\d", ""], ["a", "b"]),
    ("regsubst", ["cat cow", Regexp(r"c\w+"), {"cat": "x"}, "G"], "x "),
    ("match", ["abc", Regexp("(b)(z)?")], ["b", "b", None]),
    ("match", [["ab", "c"], "b"], [["b"], None]),
    ("shellquote", ["a b", ["x", "d'e"], "$x", "it's $5", ""], '"a b" x "d\'e" \'$x\' "it\'s \\$5" ""'),
    ("abs", [-1.5], 1.5),
    ("round", [2.5], 3),
    ("round", [-2.5], -3),
    ("ceiling", [1.2], 2),
    ("floor", [-1.2], -2),
    ("compare", ["a", "B"], -1),
    ("compare", ["a", "A", False], 1),
    ("compare", [SemVer(1, 0, 0), SemVer(1, 0, 1)], -1),
    ("max", [1, 2.5], 2.5),
    ("min", [["b", "A"]], "A"),
    ("flatten", [[1, [2]], 3, {"a": [1]}], [1, 2, 3, {"a": [1]}]),
    ("unique", [[1, 1.0, "a", "A", "a", [1], [1]]], [1, 1.0, "a", "A", [1]]),
    ("unique", ["abca"], "abc"),
    ("sort", [["b", "A", "a"]], ["A", "a", "b"]),
    ("sort", ["hello"], "ehllo"),
    ("keys", [{"a": 1, 2: 3}], ["a", 2]),
    ("values", [{"a": 1}], [1]),
    ("dig", [{"a": [1, {"b": 2}]}, "a", 1, "b"], 2),
    ("dig", [None, "a"], None),
    ("get", [{"a": [1, {"b.c": 2}]}, 'a.1."b.c"'], 2),
    ("get", [{"a": 1}, "z", "d"], "d"),
    ("type", [[1], "generalized"], parse_type("Array[Integer]")),
    ("assert_type", ["String[1]", "x"], "x"),
    ("convert_to", ["0x1f", INTEGER, 16], 31),
    ("unwrap", [Sensitive(1)], 1),
    ("unwrap", [5], 5),
    ("strftime", [Timestamp(0), "%F", "+02:00"], "1970-01-01"),
    ("strftime", [Timespan.seconds(3661), "%H:%M:%S"], "01:01:01"),
    ("md5", ["a"], "0cc175b9c0f1b6a831c399e269772661"),
    ("digest", ["a"], "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ("index", ["abc", "c"], 2),
    ("index", [[1, 2], 2], 1),
    ("call", ["upcase", "a"], "A"),
]


@pytest.mark.parametrize(("name", "args", "expected"), RESULTS)
def test_results(name: str, args: list[Value], expected: Value) -> None:
    result = call(name, *args)
    assert result == expected
    assert result.__class__ is expected.__class__


NEW: list[tuple[str, list[Value], Value]] = [
    ("Integer", ["0x1F"], 31),
    ("Integer", ["101", 2], 5),
    ("Integer", [-3.9], -3),
    ("Integer", [{"from": "-5", "abs": True}], 5),
    ("Integer", ["-  5"], -5),
    ("Float", ["1e3"], 1000.0),
    ("Numeric", ["1.5"], 1.5),
    ("Boolean", ["Yes"], True),
    ("Boolean", [0.0], False),
    ("String", [1.0], "1.000000"),
    ("Array", [{"a": 1}], [["a", 1]]),
    ("Array", [3], [0, 1, 2]),
    ("Array", ["x", True], ["x"]),
    ("Hash", [[[1, 2]]], {1: 2}),
    ("Hash", [["a", 1]], {"a": 1}),
    ("Hash", [[[["a", "b"], 1], [["a", "c"], 2]], "tree"], {"a": {"b": 1, "c": 2}}),
    ("Regexp", ["a.b", True], Regexp(r"a\.b")),
    ("Type", ["Integer[1]"], IntegerType(1)),
    ("Timespan", [1, 2, 3, 4], Timespan.of(1, 2, 3, 4)),
    ("Timestamp", [], Timestamp(0)),
    ("Binary", [[97]], Binary(b"a")),
    ("SemVer", [1, 2, 3, "a"], SemVer.parse("1.2.3-a")),
    ("Optional[Integer]", ["5"], 5),
    ("Init[Integer, 8]", ["17"], 15),
]


@pytest.mark.parametrize(("type_", "args", "expected"), NEW)
def test_new(type_: str, args: list[Value], expected: Value) -> None:
    result = call("new", parse_type(type_), *args)
    assert result == expected
    assert result.__class__ is expected.__class__


REFUSED: list[tuple[str, list[Value], str]] = [
    ("new", [INTEGER, "abc"], "'new' The string 'abc' cannot be converted to Integer"),
    ("new", [INTEGER, None], "'new' Value of type Undef cannot be converted to Integer"),
    ("new", [parse_type("Enum[a]"), "b"], "Creation of new instance of type 'Enum['a']' is not supported"),
    (
        "new",
        [parse_type("Integer[1, 5]"), "7"],
        "Converted value from Integer[1, 5].new() has wrong type, expects an Integer[1, 5] value, got Integer[7, 7]",
    ),
    ("sort", [["a", 1]], "comparison of String with 1 failed"),
    ("max", [], "max(): Wrong number of arguments need at least one"),
    ("dig", [{"a": 1}, "a", "b"], "The given data does not contain a Collection at [\"a\"], got 'Integer[1, 1]'"),
    ("dig", [[1], "0"], "The given data requires an Integer index at [\"0\"], got 'String'"),
    ("getvar", ["Foo"], "'getvar' The given string does not start with a valid variable name"),
    ("call", ["nope"], "Unknown function 'nope'"),
    ("assert_type", [INTEGER, "a"], "assert_type(): expects an Integer value, got String"),
    ("match", ["a", 1], "match() expects pattern of T, where T is String, Regexp, Regexp[r], Pattern[p], or Array[T]. Got Integer"),
    ("md5", [1], "no implicit conversion of Integer into String"),
    ("abs", ["x"], "abs(): Requires float or integer to work with - was given non decimal string"),
    (
        "compare",
        [1, "a"],
        "'compare' compare(): Can only compare values of the same type (or for Timestamp/Timespan also against Numeric). "
        "Got Integer and String",
    ),
]


@pytest.mark.parametrize(("name", "args", "message"), REFUSED)
def test_refusals(name: str, args: list[Value], message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        call(name, *args)
    assert caught.value.message == message


def test_loops_give_elements_or_index_and_element() -> None:
    calls: list[Value] = []
    assert call("each", {"a": 1}, block=lambda_(calls.append, 1)) == {"a": 1}
    assert calls == [["a", 1]]
    assert call("map", {"a": 1, key_of(1.0): 2}, block=lambda_(lambda k, v: (k, v), 2)) == [("a", 1), (1.0, 2)]
    assert call("map", "ab", block=lambda_(lambda i, c: f"{i}{c}", 2)) == ["0a", "1b"]
    assert call("map", 3, block=lambda_(lambda i: i, 1)) == [0, 1, 2]
    assert call("filter", {"a": 1, "b": 2}, block=lambda_(lambda k, v: v > 1, 2)) == {"b": 2}
    assert call("filter", [0, "", None, False], block=lambda_(lambda x: x, 1)) == [0, ""]
    assert call("reduce", [1, 2, 3], block=lambda_(lambda memo, x: memo + x, 2)) == 6
    assert call("reduce", [], block=lambda_(lambda memo, x: 1, 2)) is None
    assert call("slice", [1, 2, 3], 2) == [[1, 2], [3]]
    assert call("all", [], block=lambda_(lambda x: False, 1)) is True
    assert call("any", {"a": 1}, block=lambda_(lambda k, v: v == 1, 2)) is True
    assert call("index", {"a": 1}, block=lambda_(lambda v: v == 1, 1)) == "a"
    assert call("partition", [1, 2, 3], block=lambda_(lambda x: x > 1, 1)) == [[2, 3], [1]]
    assert call("group_by", [1, 2, 3], block=lambda_(lambda x: x % 2, 1)) == {1: [1, 3], 0: [2]}
    assert call("sort", [1, 3, 2], block=lambda_(lambda a, b: b - a, 2)) == [3, 2, 1]


def test_a_break_ends_a_loop_and_keeps_what_there_is() -> None:
    def until_two(x: int) -> int:
        if x == 2:
            raise Break
        return x * 10

    assert call("map", [1, 2, 3], block=lambda_(until_two, 1)) == [10]
    assert call("each", [1, 2, 3], block=lambda_(until_two, 1)) == [1, 2, 3]
    with pytest.raises(Break):
        call("any", [2], block=lambda_(until_two, 1))


def test_jumps_are_raised_by_their_functions() -> None:
    with pytest.raises(Break):
        call("break")
    with pytest.raises(Next) as jumped:
        call("next", 5)
    assert jumped.value.value == 5
    with pytest.raises(Return):
        call("return")
    assert str(Break().stray()) == "break() from context where this is illegal"
    with pytest.raises(BadOperand, match="discontinued"):
        call("import", "x.pp")


def test_iterators_are_lazy_and_start_anew() -> None:
    stepped = call("step", [1, 2, 3, 4, 5], 2)
    assert isinstance(stepped, Iterator)
    assert list(stepped) == list(stepped) == [1, 3, 5]
    assert list(call("reverse_each", stepped)) == [5, 3, 1]
    assert list(call("step", call("reverse_each", [1, 2, 3, 4]), 2)) == [4, 2]
    assert list(call("reverse_each", {"a": 1, "b": 2})) == [["b", 2], ["a", 1]]


def test_trees_are_walked_depth_or_breadth_first() -> None:
    tree = [1, [2, {"a": 3}]]
    assert list(call("tree_each", tree, {"include_root": False})) == [
        [[0], 1],
        [[1], [2, {"a": 3}]],
        [[1, 0], 2],
        [[1, 1], {"a": 3}],
        [[1, 1, "a"], 3],
    ]
    assert [value for _, value in call("tree_each", [[1], 2], {"include_containers": False, "order": "breadth_first"})] == [2, 1]


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        ("1.0", "1.0.0", -1),
        ("1.10", "1.9", 1),
        ("1.0rc1", "1.0", 1),
        ("2.4-1", "2.4.1", -1),
        ("01", "1", -1),
        ("a", "B", -1),
        ("1.0", "1.0", 0),
        ("", "1", -1),
    ],
)
def test_versions_are_compared(a: str, b: str, order: int) -> None:
    assert compare_versions(a, b) == order


def test_trailing_zeroes_can_be_ignored() -> None:
    assert compare_versions("1.0", "1.0.0", ignore_trailing_zeroes=True) == 0


@pytest.mark.parametrize(
    ("seed", "limit", "number"),
    [(1, 10, 5), (42, 100, 51), (0, 7, 4), (5, 1, 0), (2**64 + 3, 1000, 254), (2**40, 10**12, 555567862544), (2**32 + 5, 9, 3)],
)
def test_random_numbers_are_rubys(seed: int, limit: int, number: int) -> None:
    assert seeded_number(seed, limit) == number


def test_a_node_gets_the_same_number_each_time() -> None:
    place = Place(facts={"networking": {"fqdn": "a.example.com"}})
    first = call("fqdn_rand", 100, "x", context=place)
    assert first == call("fqdn_rand", "100", "x", context=place)
    assert first != call("fqdn_rand", 100, "y", context=place) or first != call("fqdn_rand", 100, "z", context=place)


def test_logging_joins_with_blanks() -> None:
    place = Place()
    call("notice", 1, [2, None], {"a": 1}, context=place)
    call("err", "x", context=place)
    assert place.logs == [("notice", "1 [2, ] {a => 1}"), ("err", "x")]


def test_deprecated_conversions_are_told() -> None:
    place = Place()
    assert call("abs", "-1.5", context=place) == 1.5
    assert call("empty", 0, context=place) is False
    assert [level for level, _ in place.logs] == ["warning", "warning"]


def test_getvar_follows_a_path_and_knows_a_default() -> None:
    place = Place(x={"a": [1]})
    assert call("getvar", "x.a.0", context=place) == 1
    assert call("getvar", "nope", "d", context=place) == "d"
    assert call("getvar", "x.z", "d", context=place) == "d"


@pytest.mark.parametrize(
    ("data", "format_", "values"),
    [
        ("10 abc 3.5", "%d %s %f", [10, "abc", 3.5]),
        ("x", "%d", []),
        ("0x1f,z", "%i,%c", [31, "z"]),
        ("abc1", "%[a-c]%d", ["abc", 1]),
        ("12345", "%2d%*d", [12]),
    ],
)
def test_scanf(data: str, format_: str, values: list[Value]) -> None:
    assert scan_values(data, format_) == values
