"""Data, RichData and RichDataKey: the aliases of the values that data files and catalogs may hold."""

from __future__ import annotations

from typing import Final

from ...values.core import Value, value_of
from ..kinds.base import UNDEF, VariantType
from ..kinds.containers import ArrayType, HashType
from ..kinds.objects import ObjectType
from ..kinds.references import TypeType
from ..kinds.scalars import (
    STRING,
    BinaryType,
    DefaultType,
    NumericType,
    ScalarDataType,
    ScalarType,
    SemVerRangeType,
    SensitiveType,
    URIType,
)
from .aliases import AliasType, builtin_alias
from .type_sets import TypeSetType


class _DataType(AliasType):
    """`Data` and `RichData`, whose instance test is called so often that it is written as a loop."""

    __slots__ = ("_leaves", "_rich")

    def __init__(self, name: str, leaves: frozenset[type], rich: bool) -> None:
        super().__init__(name, builtin=True)
        self._leaves = leaves
        self._rich = rich

    def instance(self, value: Value) -> bool:
        if value.__class__ in self._leaves:
            return True
        if value.__class__ is list:
            return all(map(self.instance, value))
        if value.__class__ is dict:
            if self._rich:
                fits = RICH_DATA_KEY.instance
                if not all(fits(value_of(k)) for k in value):
                    return False
            elif not all(k.__class__ is str for k in value):
                return False
            return all(map(self.instance, value.values()))
        return self._rich and super().instance(value)


def _data() -> AliasType:
    alias = _DataType("Data", frozenset((str, int, float, bool, type(None))), rich=False)
    alias.define(VariantType([ScalarDataType(), UNDEF, HashType(STRING, alias), ArrayType(alias)]))
    return alias


def _rich_data() -> AliasType:
    alias = _DataType("RichData", frozenset((str, int, float, bool, type(None))), rich=True)
    alias.define(
        VariantType(
            [
                ScalarType(),
                BinaryType(),
                SemVerRangeType(),
                DefaultType(),
                ObjectType("Object"),
                TypeType(),
                TypeSetType("TypeSet"),
                URIType(),
                UNDEF,
                HashType(RICH_DATA_KEY, alias),
                ArrayType(alias),
                SensitiveType(),
            ]
        )
    )
    return alias


RICH_DATA_KEY: Final = builtin_alias("RichDataKey", VariantType([STRING, NumericType()]))
DATA: Final = _data()
RICH_DATA: Final = _rich_data()
