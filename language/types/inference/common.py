"""The common type of several types, on which inference is built."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from ...values.core import PuppetType
from ..kinds.base import ANY, UNDEF, UnitType, VariantType
from ..kinds.containers import ArrayType, HashType
from ..kinds.references import CallableType, ClassType, ResourceEntryType, TypeType
from ..kinds.scalars import EnumType, FloatType, IntegerType, NumericType, PatternType, RegexpType, ScalarDataType, ScalarType, StringType
from ..named.data import DATA, RICH_DATA


def common_type(one: PuppetType | None, two: PuppetType | None) -> PuppetType:
    """Return the narrowest type that inference knows for both; undef adds nothing."""
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
    common = _common_of_kind(one, two)
    if common is not None:
        return common
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
    if isinstance(one, ResourceEntryType) and isinstance(two, ResourceEntryType):
        return ResourceEntryType(one.type_name) if one.lower == two.lower else ResourceEntryType()
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
    nothing: PuppetType = UNDEF
    return reduce(common_type, types, nothing)
