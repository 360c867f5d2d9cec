"""All builtin types by their lower-case names."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ..values.core import PuppetType
from ..values.text import inspect_object
from .declare import define_object
from .descriptions.inspection import inspect_type
from .inference.iterables import IterableType
from .init import InitType
from .kinds import containers, references, scalars
from .kinds.base import ANY, UNDEF, NotUndefType, OptionalType, VariantType
from .kinds.objects import BUILTIN_OBJECTS, ObjectType
from .kinds.references import TypeType
from .kinds.scalars import STRING
from .named.aliases import builtin_alias
from .named.data import DATA, RICH_DATA, RICH_DATA_KEY
from .named.type_sets import TypeSetType


def _error() -> ObjectType:
    code = OptionalType(scalars.StringType((1, float("inf"))))
    selected = VariantType(
        [STRING, scalars.RegexpType(), *[TypeType(t) for t in (scalars.EnumType(), scalars.PatternType(), NotUndefType(), UNDEF)]]
    )
    return define_object(
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
    types: list[PuppetType] = [
        ANY, UNDEF, OptionalType(), NotUndefType(), VariantType(), DATA, RICH_DATA, RICH_DATA_KEY,
        scalars.DefaultType(), scalars.ScalarType(), scalars.ScalarDataType(), scalars.NumericType(), scalars.IntegerType(),
        scalars.FloatType(), scalars.BooleanType(), scalars.STRING, scalars.EnumType(), scalars.PatternType(), scalars.RegexpType(),
        scalars.TimespanType(), scalars.TimestampType(), scalars.SemVerType(), scalars.SemVerRangeType(), scalars.BinaryType(),
        scalars.URIType(), scalars.SensitiveType(), scalars.RuntimeType(),
        containers.CollectionType(), containers.ARRAY, containers.HASH, containers.TupleType(), containers.StructType(),
        IterableType(), containers.IteratorType(),
        TypeType(), references.CallableType(), references.CatalogEntryType(), references.ClassType(), references.ResourceEntryType(),
        InitType(), ObjectType("Object"), TypeSetType("TypeSet"), *BUILTIN_OBJECTS, ERROR,
        builtin_alias("Puppet::LookupKey", VariantType([STRING, containers.ArrayType(STRING, (1, float("inf")))])),
        builtin_alias("Puppet::LookupValue", RICH_DATA),
    ]  # fmt: skip
    return {t.name.lower(): t for t in types}


BUILTIN_TYPES: Final = MappingProxyType(_named())

inspect_object.register(PuppetType, inspect_type)
