"""Why a value does not fit a type, in the reference's words. Origin of what is expected: Puppet 7.23."""

from __future__ import annotations

import pytest

from language.types.descriptions.describe import check_parameters, describe_mismatch
from language.types.inference.infer import infer_set
from language.types.kinds.scalars import STRING, IntegerType
from language.types.named.aliases import AliasType
from language.types.notation.parse import parse_type
from language.values.core import Value

MESSAGES: list[tuple[str, Value, str]] = [
    ("Integer", "a", "x expects an Integer value, got String"),
    ("Integer[1, 3]", 5, "x expects an Integer[1, 3] value, got Integer[5, 5]"),
    ("String[1]", 5, "x expects a String value, got Integer"),
    ("Variant[Integer, String]", 1.5, "x expects a value of type Integer or String, got Float"),
    ("Variant[Integer, String, Boolean]", 1.5, "x expects a value of type Integer, String, or Boolean, got Float"),
    ("Optional[Integer]", "a", "x expects a value of type Undef or Integer, got String"),
    ("Enum['a', 'b']", "c", "x expects a match for Enum['a', 'b'], got 'c'"),
    ("Optional[Enum['a']]", "b", "x expects an undef value or a match for Enum['a'], got 'b'"),
    ("Pattern[/a/]", 1, "x expects a match for Pattern[/a/], got Integer"),
    ("Array[String, 2]", ["a"], "x expects size to be at least 2, got 1"),
    ("Array[String, 1, 2]", ["a", "b", "c"], "x expects size to be between 1 and 2, got 3"),
    ("Array[Integer]", [1, "a"], "x index 1 expects an Integer value, got String"),
    ("Tuple[Integer, String]", [1], "x expects size to be 2, got 1"),
    ("Hash[String, Integer]", {"a": "x"}, "x entry 'a' expects an Integer value, got String"),
    ("Struct[{a => Integer}]", {}, "x expects size to be 1, got 0"),
    ("Struct[{a => Integer}]", {"a": "q"}, "x entry 'a' expects an Integer value, got String"),
    ("Struct[{a => Integer}]", {"a": 1, "z": 1}, "x unrecognized key 'z'"),
    ("Struct[{a => Integer}]", {"b": 1}, " x expects a value for key 'a'\n  x unrecognized key 'b'"),
    ("Type[Integer]", STRING, "x expects a Type[Integer] value, got Type[String]"),
    ("Callable", 1, "x expects a Callable value, got Integer"),
]


@pytest.mark.parametrize(("type_", "value", "message"), MESSAGES)
def test_one_mismatch(type_: str, value: Value, message: str) -> None:
    assert describe_mismatch("x", parse_type(type_), infer_set(value)) == message


def test_an_alias_is_shown_with_its_definition() -> None:
    port = AliasType("Port", IntegerType(1, 65535))
    assert describe_mismatch("x", port, infer_set("a")) == "x expects a Port = Integer[1, 65535] value, got String"


def test_a_name_no_type_has_is_told() -> None:
    assert describe_mismatch("x", parse_type("Array[Nope]"), infer_set([1])) == "x references an unresolved type 'Nope'"


def test_parameters_are_checked_all_at_once() -> None:
    wanted = [("a", parse_type("Integer"), False), ("b", parse_type("String"), False), ("c", parse_type("Any"), True)]
    assert check_parameters("Class[X]", wanted, {"a": 1, "b": "x"}) is None
    assert check_parameters("Class[X]", wanted, {"a": 1}) == "Class[X]: expects a value for parameter 'b'"
    assert check_parameters("Class[X]", wanted, {"a": "q", "z": 1}) == (
        "Class[X]:\n  has no parameter named 'z'\n  parameter 'a' expects an Integer value, got String\n  expects a value for parameter 'b'"
    )
