"""The simplest equal type: variants flat and merged, without wrappers that have no effect."""

from __future__ import annotations

from functools import singledispatch
from typing import TypeVar

from ...values.core import PuppetType
from ...values.text import ascii_fold
from .base import ANY, UNDEF, NotUndefType, OptionalType, VariantType, Wrapper
from .containers import ARRAY, ArrayType, CollectionType, HashType, StructType, TupleType
from .references import CallableType
from .scalars import EnumType, FloatType, IntegerType, PatternType, SemVerType, StringType, TimespanType, TimestampType

Ranged = TypeVar("Ranged", IntegerType, FloatType, TimespanType, TimestampType)


@singledispatch
def normalized(type_: PuppetType) -> PuppetType:
    """Return the simplest type that is equal to `type_`; most types are it themselves."""
    return type_


@normalized.register(Wrapper)
def _normalized_wrapper(type_: Wrapper) -> PuppetType:
    return type_ if type_.type is None else type_.around(normalized(type_.type))


@normalized.register(OptionalType)
def _normalized_optional(type_: OptionalType) -> PuppetType:
    if type_.type is None:
        return type_
    inner = normalized(type_.type)
    if isinstance(inner, NotUndefType):
        return normalized(OptionalType(inner.type))
    return inner if inner.assignable(UNDEF) else OptionalType(inner)


@normalized.register(NotUndefType)
def _normalized_not_undef(type_: NotUndefType) -> PuppetType:
    if type_.type is None:
        return type_
    inner = normalized(type_.type)
    if isinstance(inner, OptionalType):
        return normalized(NotUndefType(inner.type))
    return NotUndefType(inner) if inner.assignable(UNDEF) else inner


@normalized.register(CollectionType)
def _normalized_collection(type_: CollectionType) -> PuppetType:
    return CollectionType()


@normalized.register(ArrayType)
def _normalized_array(type_: ArrayType) -> PuppetType:
    # The reference forgets the size of an array of Any here, so that it does not notice a wrong size; nor do we.
    return ARRAY if type_.element == ANY else ArrayType(normalized(type_.element), type_.size)


@normalized.register(HashType)
def _normalized_hash(type_: HashType) -> PuppetType:
    return type_ if type_.size == (0, 0) else HashType(normalized(type_.key_type), normalized(type_.value_type), type_.size)


@normalized.register(TupleType)
def _normalized_tuple(type_: TupleType) -> TupleType:
    return TupleType([normalized(member) for member in type_.types], type_.size)


@normalized.register(StructType)
def _normalized_struct(type_: StructType) -> PuppetType:
    return StructType([element.with_value(normalized(element.value_type)) for element in type_.elements])


@normalized.register(CallableType)
def _normalized_callable(type_: CallableType) -> PuppetType:
    params = _normalized_tuple(type_.params) if type_.params is not None else None
    return CallableType(params, type_.block and normalized(type_.block), type_.returns and normalized(type_.returns))


@normalized.register(VariantType)
def _normalized_variant(variant: VariantType) -> PuppetType:
    """Return a flat variant without undef (an Optional is around it instead), with enums, patterns and ranges merged."""
    if not variant.types:
        return variant
    types = [normalized(t) for t in variant.types]
    if len(types) == 1:
        return types[0]
    if any(t == UNDEF or isinstance(t, OptionalType) for t in types):
        rest = [t.type or ANY if isinstance(t, OptionalType) else t for t in types if t != UNDEF]
        return normalized(OptionalType(VariantType.of(rest)))
    types = [t for v in types for t in (v.types if isinstance(v, VariantType) else (v,))]
    types = _merged_enums(_merged_not_undefs(types))
    patterns = [t for t in types if isinstance(t, PatternType)]
    if len(patterns) > 1:
        united = list(dict.fromkeys(p for t in patterns for p in t.patterns))
        types = [t for t in types if not isinstance(t, PatternType)] + [PatternType(united)]
    versions = [t for t in types if isinstance(t, SemVerType)]
    if len(versions) > 1:
        types = [SemVerType([r for t in versions for r in t.ranges]), *(t for t in types if not isinstance(t, SemVerType))]
    types = _merged_ranges(IntegerType, types)
    types = _merged_ranges(FloatType, types)
    types = _merged_ranges(TimespanType, types)
    types = _merged_ranges(TimestampType, types)
    return VariantType.of(types)


def _merged_not_undefs(types: list[PuppetType]) -> list[PuppetType]:
    wrapped = [t for t in types if isinstance(t, NotUndefType)]
    if len(wrapped) < 2:
        return types
    united = NotUndefType(normalized(VariantType.of([t.type or ANY for t in wrapped])))
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
    ranges = [t for t in types if isinstance(t, kind) and type(t) is kind]
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
    """Return one range for both, when they overlap (or, of integers, touch)."""
    (low, high), (other_low, other_high) = one.range, two.range
    gap = 1 if isinstance(one, IntegerType) else 0
    if high + gap < other_low or other_high + gap < low:
        return None
    first = one if low <= other_low else two
    last = one if high >= other_high else two
    return one.__class__(first.low, last.high)
