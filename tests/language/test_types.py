"""Types: instances, assignability, printing, inference, aliases. Origin of what is expected: Puppet 7.23."""

from __future__ import annotations

import pytest

from language.callables import conversions as conversions  # Init[T] asks these
from language.errors.issues import BadOperand
from language.types.inference.common import common_type
from language.types.inference.infer import infer, infer_set
from language.types.kinds.base import ANY, VariantType
from language.types.kinds.containers import ArrayType
from language.types.kinds.references import ClassType, ResourceEntryType
from language.types.kinds.scalars import INTEGER, STRING, EnumType, IntegerType
from language.types.named.aliases import AliasType
from language.types.notation.access import declared_type, type_from_access
from language.types.notation.parse import parse_type
from language.values.core import DEFAULT, Deferred, Iterator, Sensitive, Value, key_of
from language.values.times import Timespan
from language.values.versions import SemVer
from shared.errors import EvaluationError
from shared.regexps import Regexp

INSTANCES: list[tuple[str, list[Value], list[Value]]] = [
    ("Integer[1, 10]", [1, 10], [0, 11, 5.0, "5", True, None]),
    ("Float[1.0]", [1.0, 2.5], [0.5, 1, True]),
    ("Numeric", [1, 1.5], ["1", True]),
    ("Boolean[true]", [True], [False, 1]),
    ("String[1, 3]", ["a", "héé"], ["", "abcd", 1]),
    ("Enum['a', 'b']", ["a"], ["A", "c", 1]),
    ("Enum['a', true]", ["a", "A"], ["b"]),
    ("Pattern[/^a/, 'z$']", ["ab", "xz"], ["b", 1]),
    ("Regexp[/a/]", [Regexp("a")], [Regexp("b"), "a"]),
    ("Optional[Integer]", [1, None], ["a"]),
    ("NotUndef", [1, False], [None]),
    ("Variant[Integer, Undef]", [1, None], ["a"]),
    ("Array[Integer, 1]", [[1], [1, 2]], [[], ["a"], [1, "a"], {}]),
    ("Tuple[Integer, String]", [[1, "a"]], [[1], [1, "a", "b"], ["a", 1]]),
    ("Tuple[Integer, 0, 2]", [[], [1], [1, 2]], [[1, 2, 3]]),
    ("Hash[String, Integer]", [{}, {"a": 1}], [{"a": "b"}, {1: 1}, []]),
    ("Hash[Boolean, Any]", [{key_of(True): 1}], [{1: 1}]),
    (
        "Struct[{a => Integer, Optional[b] => String}]",
        [{"a": 1}, {"a": 1, "b": "x"}],
        [{}, {"b": "x"}, {"a": 1, "c": 1}, {"a": 1, "b": None}],
    ),
    ("Struct[{a => Optional[Integer]}]", [{}, {"a": None}, {"a": 1}], [{"a": "x"}]),
    ("Struct[{NotUndef['a'] => Optional[Integer]}]", [{"a": None}], [{}]),
    ("Collection[1, 2]", [[1], {"a": 1}], [[], "a"]),
    ("Data", [1, "a", None, [1, {"a": [None]}]], [Regexp("a"), {1: 2}, [DEFAULT]]),
    ("RichData", [Regexp("a"), {1: DEFAULT}, Sensitive(1), INTEGER], [{key_of([1]): 1}]),
    ("ScalarData", [1, "a", 1.5, False], [Regexp("a"), None]),
    ("Scalar", [1, Regexp("a"), SemVer(1, 0, 0), Timespan(1)], [None, [], DEFAULT]),
    ("Iterable", ["a", 3, [], {}, EnumType(["a"]), IntegerType(1, 2)], [-1, None, INTEGER, 1.5]),
    ("Iterable[String]", ["abc", ["a"]], [[1], 5]),
    ("Iterator", [Iterator(lambda: iter([]), element_type=ANY)], [[]]),
    ("Type[Integer]", [INTEGER, IntegerType(1, 2)], [STRING, 1]),
    ("Sensitive[String]", [Sensitive("a")], [Sensitive(1), "a"]),
    ("SemVer['>=1.0.0']", [SemVer(1, 2, 3)], [SemVer(0, 9, 0), "1.2.3"]),
    ("Default", [DEFAULT], ["default", None]),
    ("Deferred", [Deferred("x")], ["x"]),
    ("Init[Integer]", ["5", 5, True, ["5"], {"from": "12"}], ["x", None]),
]


@pytest.mark.parametrize(("type_", "inside", "outside"), INSTANCES, ids=[case[0] for case in INSTANCES])
def test_instances(type_: str, inside: list[Value], outside: list[Value]) -> None:
    parsed = parse_type(type_)
    assert [value for value in inside if not parsed.instance(value)] == []
    assert [value for value in outside if parsed.instance(value)] == []


WIDER = [
    ("Any", "Undef"),
    ("Numeric", "Integer"),
    ("Integer", "Integer[1, 2]"),
    ("Scalar", "Enum['a']"),
    ("String", "Enum['a']"),
    ("String", "Pattern[/a/]"),
    ("String[1]", "Enum['ab']"),
    ("Pattern[/a/]", "Enum['ab']"),
    ("Optional[String]", "Undef"),
    ("Optional[String]", "String[1]"),
    ("Variant[Integer, String]", "Integer[1]"),
    ("Array[Any]", "Array[Integer, 1]"),
    ("Array[Integer]", "Tuple[Integer, Integer]"),
    ("Array[String]", "Array[0, 0]"),
    ("Hash", "Struct[{a => Integer}]"),
    ("Hash[String, Integer]", "Struct[{a => Integer}]"),
    ("Collection", "Tuple"),
    ("Iterable", "String"),
    ("Iterable[Integer]", "Array[Integer]"),
    ("Type[Numeric]", "Type[Integer]"),
    ("Data", "Array[String]"),
    ("Data", "Hash[String, Array[Integer]]"),
    ("RichData", "Data"),
    ("CatalogEntry", "Resource"),
    ("Callable", "Callable[Integer]"),
    ("Callable[Integer]", "Callable[Numeric]"),
    ("NotUndef", "Integer"),
    ("Enum", "String"),
    ("Variant[String, Undef]", "Optional[String]"),
]


@pytest.mark.parametrize(("wide", "narrow"), WIDER)
def test_the_wider_type_takes_the_narrower_and_not_the_other_way_round(wide: str, narrow: str) -> None:
    assert parse_type(wide).assignable(parse_type(narrow))
    if wide not in ("Variant[String, Undef]", "Enum"):
        assert not parse_type(narrow).assignable(parse_type(wide))


PRINTED = [
    "Integer[1]",
    "Integer[1, 2]",
    "Integer[default, 5]",
    "Float[1.0, 2.0]",
    "String[0, 2]",
    "Enum['a', 'b']",
    "Enum['a', true]",
    "Pattern[/a/, /b/]",
    "Regexp[/a\\/b/]",
    "Boolean[true]",
    "Array[Integer, 1, 2]",
    "Array[Any, 1, 2]",
    "Array[0, 0]",
    "Hash[Any, Any, 1, 2]",
    "Hash[0, 0]",
    "Tuple[Integer, String, 0]",
    "Struct[{'a' => Integer, Optional['b'] => String, 'c' => Optional[Integer], NotUndef['d'] => Any}]",
    "Callable[0, 0]",
    "Callable[[String], Integer]",
    "Callable[String, Callable[0, 0]]",
    "Optional['x']",
    "NotUndef",
    "SemVer['>=1.0.0 <2.0.0']",
    "Runtime[ruby, 'String']",
    "Init[Integer, 2]",
    "Sensitive[String]",
]


@pytest.mark.parametrize("text", PRINTED)
def test_types_print_as_they_are_written(text: str) -> None:
    assert str(parse_type(text)) == text


INFERRED: list[tuple[Value, str, str, str]] = [
    ("x", "String", "String", "String"),
    (1, "Integer[1, 1]", "Integer[1, 1]", "Integer"),
    ([1, "a"], "Tuple[Integer[1, 1], String]", "Array[ScalarData, 2, 2]", "Array[ScalarData]"),
    ([1, 2], "Tuple[Integer[1, 1], Integer[2, 2]]", "Array[Integer[1, 2], 2, 2]", "Array[Integer]"),
    (["a", None], "Tuple[String, Undef]", "Array[String, 2, 2]", "Array[String]"),
    ({"a": 1}, "Struct[{'a' => Integer[1, 1]}]", "Hash[String, Integer[1, 1], 1, 1]", "Hash[String, Integer]"),
    ({1: 2}, "Hash[Integer[1, 1], Integer[2, 2], 1, 1]", "Hash[Integer[1, 1], Integer[2, 2], 1, 1]", "Hash[Integer, Integer]"),
    ([], "Array[0, 0]", "Array[0, 0]", "Array[Unit]"),
    (None, "Undef", "Undef", "Undef"),
    (INTEGER, "Type[Integer]", "Type[Integer]", "Type[Integer]"),
    (Sensitive([1]), "Sensitive[Array[Integer]]", "Sensitive[Array[Integer]]", "Sensitive[Array[Integer]]"),
]


@pytest.mark.parametrize(("value", "detailed", "reduced", "generalized"), INFERRED)
def test_inference(value: Value, detailed: str, reduced: str, generalized: str) -> None:
    assert str(infer_set(value)) == detailed
    assert str(infer(value)) == reduced
    assert str(infer(value).generalized()) == generalized


COMMON = [
    ("Integer[1, 2]", "Integer[5, 6]", "Integer[1, 6]"),
    ("Integer", "Float", "Numeric"),
    ("Integer", "String", "ScalarData"),
    ("Integer", "Regexp", "Scalar"),
    ("Integer", "Array[String]", "Data"),
    ("Array[Integer]", "Array[String]", "Array[ScalarData]"),
    ("Type[Integer]", "Type[Float]", "Type[Numeric]"),
    ("Integer", "Callable", "Any"),
]


@pytest.mark.parametrize(("one", "two", "expected"), COMMON)
def test_common_types(one: str, two: str, expected: str) -> None:
    assert str(common_type(parse_type(one), parse_type(two))) == expected


def test_a_recursive_alias_takes_what_it_describes() -> None:
    tree = AliasType("Tree")
    tree.define(VariantType([INTEGER, ArrayType(tree)]))
    assert tree.instance([1, [2, [3]]])
    assert not tree.instance([1, ["x"]])
    assert tree.assignable(ArrayType(ArrayType(INTEGER)))
    assert str(tree) == "Tree = Variant[Integer, Array[Tree]]"


def test_an_alias_of_nothing_but_itself_is_refused() -> None:
    alias = AliasType("Foo")
    with pytest.raises(EvaluationError, match="Type alias 'Foo' cannot be resolved to a real type"):
        alias.define(VariantType([alias]))


def test_an_object_type_builds_instances_by_position_and_by_hash() -> None:
    from language.callables.conversions import new

    point = declared_type("Point", {"attributes": {"x": INTEGER, "y": {"type": INTEGER, "value": 0}}})
    assert new(point, [1]) == new(point, [{"x": 1}])
    assert new(point, [1]) != new(point, [1, 2])
    with pytest.raises(EvaluationError, match="new_Point"):
        new(point, ["a"])


REFUSED = [
    ("Integer", ["a"], "Integer-Type [] requires all arguments to be integers (or default). Got String", 0),
    ("Integer", [3, 1], "'from' must be less or equal to 'to'. Got (3, 1", None),
    ("Array", ["a"], "Array-Type[] arguments must be types. Got String", 0),
    ("Array", [1, 2, 3, 4], "Array-Type[] accepts 1 to 3 arguments. Got 4", None),
    ("Enum", [1], "Error creating type specialization of an Enum-Type, Cannot use Integer where String is expected", 0),
    ("Any", [1], "Operator '[]' is not applicable to an Any-Type.", -1),
    ("Class", [1], "Illegal Class name in class reference. An Integer cannot be used where a String is expected", 0),
]


@pytest.mark.parametrize(("base", "keys", "message", "operand"), REFUSED)
def test_parameters_that_do_not_fit_are_named(base: str, keys: list[Value], message: str, operand: int | None) -> None:
    with pytest.raises(EvaluationError) as caught:
        type_from_access(parse_type(base), keys)
    assert caught.value.message == message
    if isinstance(caught.value, BadOperand):
        assert caught.value.operand == operand


def test_references_are_made_one_or_many() -> None:
    assert str(type_from_access(ResourceEntryType("file"), ["/a"])) == "File['/a']"
    assert [str(r) for r in type_from_access(ResourceEntryType(), ["foo::bar", "a", "b"])] == ["Foo::Bar['a']", "Foo::Bar['b']"]
    assert str(type_from_access(ClassType(), ["::Foo::Bar"])) == "Class[foo::bar]"
    assert type_from_access(ResourceEntryType("file"), [None]) is None
    assert type_from_access(ResourceEntryType("file"), [[None]]) == []


def test_what_is_no_type_is_not_parsed() -> None:
    for text in ("Integer[", "1", "Integer]", "lower", "Integer[1,,2]"):
        with pytest.raises(EvaluationError):
            parse_type(text)
