"""Laws that hold for all values and types, tried on made-up ones."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as some

from language.types.descriptions.describe import mismatches
from language.types.inference.common import common_type
from language.types.inference.infer import infer, infer_set
from language.types.notation.parse import parse_type
from language.values import comparison
from language.values.core import DEFAULT, Value, key_of, value_of
from language.values.text import program, to_s
from tests.support.examples import examples

SCALARS = some.none() | some.booleans() | some.integers(-(2**63), 2**63 - 1) | some.floats(allow_nan=False) | some.text(max_size=8)
VALUES = some.recursive(
    SCALARS | some.just(DEFAULT),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.lists(some.tuples(inner, inner), max_size=3).map(lambda pairs: {key_of(k): v for k, v in pairs})
    ),
    max_leaves=6,
)
TYPES = some.sampled_from(
    [
        "Any", "Undef", "Integer", "Integer[1, 5]", "Float", "String", "String[1]", "Enum['a', 'b']", "Pattern[/a/]", "Boolean", "Numeric",
        "Scalar", "ScalarData", "Data", "RichData", "Array", "Array[Integer]", "Array[Data, 1]", "Hash", "Hash[String, Integer]",
        "Tuple[Integer, String]", "Struct[{'a' => Integer, Optional['b'] => String}]", "Collection[1]", "Iterable",
        "Iterable[String]",
        "Optional[Integer]", "NotUndef", "NotUndef[Optional[String]]", "Variant[Integer, Array[String]]",
        "Type[Integer]", "Callable[String]",
        "Sensitive[String]", "Default", "Array[0, 0]", "Optional[Variant[String, Array[Optional[Integer]]]]",
    ]
).map(parse_type)  # fmt: skip
few = settings(max_examples=examples(60), deadline=None)


def has_undef(value: Value) -> bool:
    if isinstance(value, dict):
        return any(has_undef(value_of(key)) or has_undef(item) for key, item in value.items())
    return value is None or (isinstance(value, list) and any(map(has_undef, value)))


@few
@given(VALUES)
def test_a_value_is_of_its_own_types(value: Value) -> None:
    assert infer_set(value).instance(value)
    assert infer(value).instance(value) or has_undef(value)  # undef adds nothing to the common type of elements
    assert infer(value).generalized().assignable(infer(value))


@few
@given(VALUES, VALUES)
def test_the_common_type_takes_both(one: Value, two: Value) -> None:
    common = common_type(infer(one), infer(two))
    assert common.assignable(infer(one)) or has_undef(one) or has_undef(two)
    assert common.assignable(infer(two)) or has_undef(one) or has_undef(two)
    assert common_type(infer(one), infer(one)) == infer(one)


@few
@given(VALUES)
def test_keys_come_back(value: Value) -> None:
    assert key_of(value_of(key_of(value))) == key_of(value)
    assert hash(key_of(value)) == hash(key_of(value))


@few
@given(VALUES)
def test_a_value_equals_itself_and_matches_itself(value: Value) -> None:
    assert comparison.equals(value, value)
    assert comparison.matches(value, value)
    assert isinstance(to_s(value), str)
    assert isinstance(program(value), str)


@few
@given(TYPES)
def test_a_type_reads_back_from_its_text(type_: object) -> None:
    assert parse_type(str(type_)) == type_


@few
@given(TYPES, TYPES, VALUES)
def test_assignability_agrees_with_instances(wide: object, narrow: object, value: Value) -> None:
    if wide.assignable(narrow) and narrow.instance(value):  # type: ignore[attr-defined]
        assert wide.instance(value)  # type: ignore[attr-defined]


@few
@given(TYPES, VALUES)
def test_what_does_not_fit_is_described(type_: object, value: Value) -> None:
    if not type_.instance(value):  # type: ignore[attr-defined]
        found = mismatches(type_, infer_set(value))  # type: ignore[arg-type]
        assert all(m.text() for m in found)
