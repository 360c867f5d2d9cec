"""The builtin aliases, and all builtin types by their lower-case names."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from . import containers, references, scalars
from .aliases import AliasType
from .base import ANY, UNDEF, NotUndefType, OptionalType, PuppetType, VariantType
from .references import TypeType
from .scalars import STRING, DefaultType, NumericType, ScalarDataType, ScalarType

if TYPE_CHECKING:
    from .objects import ObjectType


class _DataType(AliasType):
    """`Data` and `RichData`: aliases whose instance test is asked so often that it stands here as a loop."""

    __slots__ = ("_leaves", "_rich")

    def __init__(self, name: str, leaves: frozenset[type], rich: bool) -> None:
        super().__init__(name, builtin=True)
        self._leaves = leaves
        self._rich = rich

    def instance(self, value: object) -> bool:
        kind = value.__class__
        if kind in self._leaves:
            return True
        if kind is list:
            return all(map(self.instance, value))  # type: ignore[call-overload]
        if kind is dict:
            if self._rich:
                fits = RICH_DATA_KEY.instance
                if not all(fits(containers.value_of(k)) for k in value):  # type: ignore[attr-defined]
                    return False
            elif not all(k.__class__ is str for k in value):  # type: ignore[attr-defined]
                return False
            return all(map(self.instance, value.values()))  # type: ignore[attr-defined]
        return self._rich and super().instance(value)


def _data() -> AliasType:
    alias = _DataType("Data", frozenset((str, int, float, bool, type(None))), rich=False)
    alias.define(VariantType([ScalarDataType(), UNDEF, containers.HashType(STRING, alias), containers.ArrayType(alias)]))
    return alias


def _rich_data() -> AliasType:
    from .objects import ObjectType
    from .type_sets import TypeSetType

    alias = _DataType("RichData", frozenset((str, int, float, bool, type(None))), rich=True)
    alias.define(
        VariantType(
            [
                ScalarType(),
                scalars.BinaryType(),
                scalars.SemVerRangeType(),
                DefaultType(),
                ObjectType("Object"),
                TypeType(),
                TypeSetType("TypeSet"),
                scalars.URIType(),
                UNDEF,
                containers.HashType(RICH_DATA_KEY, alias),
                containers.ArrayType(alias),
                scalars.SensitiveType(),
            ]
        )
    )
    return alias


def _alias(name: str, definition: PuppetType) -> AliasType:
    alias = AliasType(name, builtin=True)
    alias.define(definition)
    return alias


RICH_DATA_KEY: Final = _alias("RichDataKey", VariantType([STRING, NumericType()]))
DATA: Final = _data()
RICH_DATA: Final = _rich_data()


def _error() -> ObjectType:
    from .objects import ObjectType

    code = OptionalType(scalars.StringType((1, float("inf"))))
    selected = VariantType(
        [STRING, scalars.RegexpType(), *[TypeType(t) for t in (scalars.EnumType(), scalars.PatternType(), NotUndefType(), UNDEF)]]
    )
    return ObjectType(
        "Error",
        {
            "type_parameters": {"kind": OptionalType(selected), "issue_code": OptionalType(selected)},
            "attributes": {
                "msg": scalars.StringType((1, float("inf"))),
                "kind": {"type": code, "value": None},
                "details": {"type": OptionalType(containers.HashType(scalars.StringType((1, float("inf"))), DATA)), "value": None},
                "issue_code": {"type": code, "value": None},
            },
        },
    )


ERROR: Final = _error()


def _named() -> dict[str, PuppetType]:
    from .objects import BUILTIN_OBJECTS, ObjectType
    from .type_sets import TypeSetType

    types: list[PuppetType] = [
        ANY, UNDEF, OptionalType(), NotUndefType(), VariantType(), DATA, RICH_DATA, RICH_DATA_KEY,
        scalars.DefaultType(), scalars.ScalarType(), scalars.ScalarDataType(), scalars.NumericType(), scalars.IntegerType(),
        scalars.FloatType(), scalars.BooleanType(), scalars.STRING, scalars.EnumType(), scalars.PatternType(), scalars.RegexpType(),
        scalars.TimespanType(), scalars.TimestampType(), scalars.SemVerType(), scalars.SemVerRangeType(), scalars.BinaryType(),
        scalars.URIType(), scalars.SensitiveType(), scalars.RuntimeType(),
        containers.CollectionType(), containers.ARRAY, containers.HASH, containers.TupleType(), containers.StructType(),
        containers.IterableType(), containers.IteratorType(),
        references.TypeType(), references.CallableType(), references.CatalogEntryType(), references.ClassType(), references.ResourceType(),
        references.InitType(), ObjectType("Object"), TypeSetType("TypeSet"), *BUILTIN_OBJECTS, ERROR,
        _alias("Puppet::LookupKey", VariantType([STRING, containers.ArrayType(STRING, (1, float("inf")))])),
        _alias("Puppet::LookupValue", RICH_DATA),
    ]  # fmt: skip
    return {t.name.lower(): t for t in types}


BUILTIN_TYPES: Final = MappingProxyType(_named())
