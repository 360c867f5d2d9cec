"""
Types as trees: the attributes by which `tree_each` walks through a type, as through any other object.

Source: puppet 7.23, asked; the cases tree-each-of-types-… of generated.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..values.core import Instance, PuppetType, Value
from .init import InitType
from .kinds.base import VariantType, Wrapper, entry_for
from .kinds.containers import ArrayType, CollectionType, HashType, StructType, TupleType
from .kinds.objects import ObjectType
from .kinds.references import CallableType, ClassType, ResourceEntryType
from .kinds.scalars import (
    EnumType,
    IntegerType,
    NumericType,
    PatternType,
    RegexpType,
    RuntimeType,
    SemVerType,
    SensitiveType,
    StringType,
    TimeType,
    URIType,
)
from .named.aliases import AliasType

Attributes = Sequence[tuple[str, Value]]

_STRUCT_ELEMENT: Final = ObjectType("Pcore::StructElement", {})


def attributes_of(type_: PuppetType) -> Attributes:
    """Return name and value of each attribute; an empty sequence for types whose attributes the reference does not show, like numbers."""
    describe = entry_for(type_, _ATTRIBUTES)
    return () if describe is None else describe(type_)


def _size(size: tuple[float, float] | None) -> Value:
    return None if size is None else IntegerType(*size)


def _struct(type_: StructType) -> Attributes:
    elements: list[Value] = [
        Instance(_STRUCT_ELEMENT, {"key_type": element.key_type, "value_type": element.value_type}) for element in type_.elements
    ]
    return [("elements", elements)]


def _alias(type_: AliasType) -> Attributes:
    names: Attributes = [("name", type_.alias), ("type_expr", None)]
    # One that leads back to itself has no end.
    return names if type_.recursive else [*names, ("resolved_type", type_.definition)]


_ATTRIBUTES: Final[dict[type, Callable[[Any], Attributes]]] = {
    NumericType: lambda of: [("from", None), ("to", None)],  # Integer and Float have none
    StringType: lambda of: [("size_type_or_value", _size(of.size) if of.value is None else of.value)],
    EnumType: lambda of: [("values", list(of.values)), ("case_insensitive", of.any_case)],
    PatternType: lambda of: [("patterns", [RegexpType(pattern) for pattern in of.patterns])],
    RegexpType: lambda of: [("pattern", None if of.regexp is None else of.regexp.source)],
    TimeType: lambda of: [("from", of.low), ("to", of.high)],
    SemVerType: lambda of: [("ranges", list(of.ranges))],
    URIType: lambda of: [("parameters", of.matchers)],
    RuntimeType: lambda of: [("runtime", of.runtime), ("name_or_pattern", of.pattern)],
    ArrayType: lambda of: [("element_type", of.element)],
    HashType: lambda of: [("key_type", of.key_type), ("value_type", of.value_type)],
    CollectionType: lambda of: [("size_type", _size(of.size))],
    StructType: _struct,
    TupleType: lambda of: [("types", list(of.types)), ("size_type", _size(of.size))],
    VariantType: lambda of: [("types", list(of.types))],
    CallableType: lambda of: [("param_types", of.params), ("block_type", of.block), ("return_type", of.returns)],
    InitType: lambda of: [("type", of.type), ("init_args", list(of.arguments))],
    SensitiveType: lambda of: (),
    Wrapper: lambda of: [("type", of.type)],
    ResourceEntryType: lambda of: [("type_name", of.type_name), ("title", of.title)],
    ClassType: lambda of: [("class_name", of.class_name)],
    ObjectType: lambda of: [("_pcore_init_hash", {})] if of.notation() == "Object" else [],
    AliasType: _alias,
}
