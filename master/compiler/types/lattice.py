"""Every type class in one place, and what calls need of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .aliases import AliasType
from .base import (
    ANY,
    INF,
    UNDEF,
    UNIT,
    AnyType,
    NotUndefType,
    OptionalType,
    Range,
    Type,
    TypeReference,
    UndefType,
    UnitType,
    VariantType,
    Wrapper,
    within,
)
from .builtin import BUILTIN_TYPES, DATA, ERROR, RICH_DATA, RICH_DATA_KEY
from .containers import (
    ARRAY,
    EMPTY_ARRAY,
    EMPTY_HASH,
    HASH,
    ArrayType,
    CollectionType,
    HashType,
    IterableType,
    IteratorType,
    StructElement,
    StructType,
    TupleType,
)
from .objects import DEFERRED, Attribute, ObjectExtension, ObjectType
from .references import CallableType, CatalogEntryType, ClassType, InitType, ResourceType, TypeType, callable_of, capitalized
from .scalars import (
    INTEGER,
    STRING,
    BinaryType,
    BooleanType,
    DefaultType,
    EnumType,
    FloatType,
    IntegerType,
    NumericType,
    PatternType,
    RangeType,
    RegexpType,
    RuntimeType,
    ScalarDataType,
    ScalarType,
    SemVerRangeType,
    SemVerType,
    SensitiveType,
    StringType,
    TimespanType,
    TimestampType,
    TimeType,
    URIType,
    ascii_fold,
)
from .type_sets import TypeSetType

if TYPE_CHECKING:
    from ..callables.signatures import Closure

__all__ = [
    "ANY", "ARRAY", "BUILTIN_TYPES", "DATA", "DEFERRED", "EMPTY_ARRAY", "EMPTY_HASH", "ERROR", "HASH", "INF", "INTEGER", "RICH_DATA",
    "RICH_DATA_KEY", "STRING", "UNDEF", "UNIT", "AliasType", "AnyType", "ArrayType", "Attribute", "BinaryType", "BooleanType",
    "CallableType", "CatalogEntryType", "ClassType", "CollectionType", "DefaultType", "EnumType", "FloatType", "HashType", "InitType",
    "IntegerType", "IterableType", "IteratorType", "NotUndefType", "NumericType", "ObjectExtension", "ObjectType", "OptionalType",
    "PatternType", "Range", "RangeType", "RegexpType", "ResourceType", "RuntimeType", "ScalarDataType", "ScalarType", "SemVerRangeType",
    "SemVerType", "SensitiveType", "StringType", "StructElement", "StructType", "TimeType", "TimespanType", "TimestampType", "TupleType",
    "Type", "TypeReference", "TypeSetType", "TypeType", "URIType", "UndefType", "UnitType", "VariantType", "Wrapper", "args_tuple",
    "ascii_fold", "callable_of", "capitalized", "within",
]  # fmt: skip


def args_tuple(args: Sequence[Any], block: Closure | None = None) -> Type:
    """The type of a call's arguments, the block last, in full detail."""
    from .infer import infer_set

    return infer_set([*args, block] if block is not None else list(args))
