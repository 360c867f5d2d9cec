"""Variants made simple, and the common type of several: what inference and messages are built on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

from ..values.text import ascii_fold
from .base import ANY, UNDEF, NotUndefType, OptionalType, PuppetType, UnitType, VariantType
from .containers import ArrayType, HashType
from .references import CallableType, ClassType, ResourceType, TypeType
from .scalars import (
    EnumType,
    FloatType,
    IntegerType,
    NumericType,
    PatternType,
    RegexpType,
    ScalarDataType,
    ScalarType,
    SemVerType,
    StringType,
    TimespanType,
    TimestampType,
)

Ranged: TypeAlias = "IntegerType | FloatType | TimespanType | TimestampType"


def normalized_variant(variant: VariantType) -> PuppetType:
    """Flat, without undef in it (an Optional around it instead), with enums, patterns and ranges merged."""
    if not variant.types:
        return variant
    types = [t.normalized() for t in variant.types]
    if len(types) == 1:
        return types[0]
    if any(t == UNDEF or isinstance(t, OptionalType) for t in types):
        rest = [t.type or ANY if isinstance(t, OptionalType) else t for t in types if t != UNDEF]
        return OptionalType(VariantType.of(rest)).normalized()
    types = [t for v in types for t in (v.types if isinstance(v, VariantType) else (v,))]
    types = _merged_enums(_merged_not_undefs(types))
    patterns = [t for t in types if isinstance(t, PatternType)]
    if len(patterns) > 1:
        united = list(dict.fromkeys(p for t in patterns for p in t.patterns))
        types = [t for t in types if not isinstance(t, PatternType)] + [PatternType(united)]
    versions = [t for t in types if isinstance(t, SemVerType)]
    if len(versions) > 1:
        types = [SemVerType([r for t in versions for r in t.ranges]), *(t for t in types if not isinstance(t, SemVerType))]
    for kind in (IntegerType, FloatType, TimespanType, TimestampType):
        types = _merged_ranges(kind, types)
    return VariantType.of(types)


def _merged_not_undefs(types: list[PuppetType]) -> list[PuppetType]:
    wrapped = [t for t in types if isinstance(t, NotUndefType)]
    if len(wrapped) < 2:
        return types
    united = NotUndefType(VariantType.of([t.type or ANY for t in wrapped]).normalized())
    return [t for t in types if not isinstance(t, NotUndefType)] + [united]


def _merged_enums(types: list[PuppetType]) -> list[PuppetType]:
    plain = [
        t for t in types if (isinstance(t, EnumType) and t.values and not t.any_case) or (isinstance(t, StringType) and t.value is not None)
    ]
    if len(plain) > 1:
        values = [v for t in plain for v in _literals(t)]
        types = [t for t in types if not any(t is p for p in plain)] + [EnumType(values)]
    folded = [t for t in types if isinstance(t, EnumType) and t.values and t.any_case]
    if len(folded) > 1:
        values = [ascii_fold(v) for t in folded for v in t.values]
        types = [t for t in types if not any(t is p for p in folded)] + [EnumType(values, True)]
    return types


def _literals(type_: PuppetType) -> tuple[str, ...]:
    if isinstance(type_, EnumType):
        return type_.values
    assert isinstance(type_, StringType) and type_.value is not None
    return (type_.value,)


def _merged_ranges(kind: type[Ranged], types: list[PuppetType]) -> list[PuppetType]:
    ranges = [t for t in types if type(t) is kind]
    if len(ranges) < 2:
        return types
    merged: list[PuppetType] = []
    while ranges:
        current = ranges.pop()
        apart = []
        for other in ranges:
            joined = _joined(current, other)
            if joined is None:
                apart.append(other)
            else:
                current = joined
        merged.append(current)
        ranges = apart
    return merged + [t for t in types if type(t) is not kind]


def _joined(one: Ranged, two: Ranged) -> Ranged | None:
    """One range for both, when they overlap (or, of integers, touch)."""
    (low, high), (other_low, other_high) = one.range, two.range
    gap = 1 if isinstance(one, IntegerType) else 0
    if high + gap < other_low or other_high + gap < low:
        return None
    first = one if low <= other_low else two
    last = one if high >= other_high else two
    return one.__class__(first.low, last.high)  # type: ignore[arg-type]


def common_type(one: PuppetType | None, two: PuppetType | None) -> PuppetType:
    """The narrowest type that inference knows for both; undef adds nothing."""
    if one is None or one == UNDEF:
        return two if two is not None else UNDEF
    if two is None or two == UNDEF:
        return one
    if isinstance(one, UnitType):
        return two
    if isinstance(two, UnitType) or one.assignable(two):
        return one
    if two.assignable(one):
        return two
    from .builtin import DATA, RICH_DATA  # its aliases are made of variants, which this module simplifies

    found = _common_of_kind(one, two)
    if found is not None:
        return found
    for wide in (NumericType(), ScalarDataType(), ScalarType(), DATA):
        if wide.assignable(one) and wide.assignable(two):
            return wide
    if isinstance(one, TypeType) and isinstance(two, TypeType):
        return TypeType(common_type(one.type, two.type))
    return RICH_DATA if RICH_DATA.assignable(one) and RICH_DATA.assignable(two) else ANY


def _common_of_kind(one: PuppetType, two: PuppetType) -> PuppetType | None:
    if isinstance(one, ArrayType) and isinstance(two, ArrayType):
        return ArrayType(common_type(one.element, two.element))
    if isinstance(one, HashType) and isinstance(two, HashType):
        return HashType(common_type(one.key_type, two.key_type), common_type(one.value_type, two.value_type))
    if isinstance(one, ClassType) and isinstance(two, ClassType):
        return ClassType()
    if isinstance(one, ResourceType) and isinstance(two, ResourceType):
        return ResourceType(one.type_name) if one.lower == two.lower else ResourceType()
    if isinstance(one, IntegerType) and isinstance(two, IntegerType):
        return IntegerType(min(one.low, two.low), max(one.high, two.high))
    if isinstance(one, FloatType) and isinstance(two, FloatType):
        return FloatType(min(one.low, two.low), max(one.high, two.high))
    if isinstance(one, StringType | EnumType) and isinstance(two, StringType | EnumType):
        return _common_string(one, two)
    if isinstance(one, PatternType) and isinstance(two, PatternType):
        return PatternType(list(dict.fromkeys([*one.patterns, *two.patterns])))
    if isinstance(one, VariantType) and isinstance(two, VariantType):
        return VariantType.of([*one.types, *two.types])
    if isinstance(one, RegexpType) and isinstance(two, RegexpType):
        return RegexpType()
    if isinstance(one, CallableType) and isinstance(two, CallableType):
        return CallableType()
    return None


def _common_string(one: StringType | EnumType, two: StringType | EnumType) -> PuppetType:
    if isinstance(one, StringType) and isinstance(two, StringType):
        if one.size is not None and two.size is not None:
            return StringType((min(one.size[0], two.size[0]), max(one.size[1], two.size[1])))
        return StringType() if one.value is None or two.value is None else EnumType([one.value, two.value])
    values: list[str] = []
    for type_ in (one, two):
        if isinstance(type_, EnumType):
            values += type_.values
        elif type_.value is None:
            return EnumType()
        else:
            values.append(type_.value)
    return EnumType(values)


def common_of(types: Iterable[PuppetType]) -> PuppetType:
    return reduce(common_type, types, UNDEF)  # type: ignore[arg-type]
