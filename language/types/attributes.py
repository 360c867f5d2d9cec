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

Attributes = Sequence[tuple[Value, Value]]

_STRUCT_ELEMENT: Final = ObjectType("Pcore::StructElement", {})


def attributes_of(type_: PuppetType) -> Attributes:
    """Return name and value of each attribute; an empty sequence for types whose attributes the reference does not show, like numbers."""
    describe = entry_for(type_, _ATTRIBUTES)
    return () if describe is None else describe(type_)


def _size(size: tuple[float, float] | None) -> Value:
    return None if size is None else IntegerType(*size)


def _numeric(type_: NumericType) -> Attributes:
    return [("from", None), ("to", None)]  # Integer and Float have none


def _string(type_: StringType) -> Attributes:
    return [("size_type_or_value", _size(type_.size) if type_.value is None else type_.value)]


def _enum(type_: EnumType) -> Attributes:
    return [("values", list(type_.values)), ("case_insensitive", type_.any_case)]


def _pattern(type_: PatternType) -> Attributes:
    return [("patterns", [RegexpType(pattern) for pattern in type_.patterns])]


def _regexp(type_: RegexpType) -> Attributes:
    return [("pattern", None if type_.regexp is None else type_.regexp.source)]


def _time(type_: TimeType) -> Attributes:
    return [("from", type_.low), ("to", type_.high)]


def _semver(type_: SemVerType) -> Attributes:
    return [("ranges", list(type_.ranges))]


def _uri(type_: URIType) -> Attributes:
    return [("parameters", type_.matchers)]


def _runtime(type_: RuntimeType) -> Attributes:
    return [("runtime", type_.runtime), ("name_or_pattern", type_.pattern)]


def _collection(type_: CollectionType) -> Attributes:
    return [("size_type", _size(type_.size))]


def _array(type_: ArrayType) -> Attributes:
    return [("element_type", type_.element)]


def _hash(type_: HashType) -> Attributes:
    return [("key_type", type_.key_type), ("value_type", type_.value_type)]


def _struct(type_: StructType) -> Attributes:
    elements: list[Value] = [
        Instance(_STRUCT_ELEMENT, {"key_type": element.key_type, "value_type": element.value_type}) for element in type_.elements
    ]
    return [("elements", elements)]


def _tuple(type_: TupleType) -> Attributes:
    return [("types", list(type_.types)), ("size_type", _size(type_.size))]


def _variant(type_: VariantType) -> Attributes:
    return [("types", list(type_.types))]


def _callable(type_: CallableType) -> Attributes:
    return [("param_types", type_.params), ("block_type", type_.block), ("return_type", type_.returns)]


def _wrapper(type_: Wrapper) -> Attributes:
    return [("type", type_.type)]


def _init(type_: InitType) -> Attributes:
    return [("type", type_.type), ("init_args", list(type_.arguments))]


def _resource(type_: ResourceEntryType) -> Attributes:
    return [("type_name", type_.type_name), ("title", type_.title)]


def _class(type_: ClassType) -> Attributes:
    return [("class_name", type_.class_name)]


def _object(type_: ObjectType) -> Attributes:
    return [("_pcore_init_hash", {})] if type_.notation() == "Object" else []


def _alias(type_: AliasType) -> Attributes:
    names: Attributes = [("name", type_.alias), ("type_expr", None)]
    # One that leads back to itself has no end.
    return names if type_.recursive else [*names, ("resolved_type", type_.definition)]


def _nothing(type_: PuppetType) -> Attributes:
    return ()


_ATTRIBUTES: Final[dict[type, Callable[[Any], Attributes]]] = {
    NumericType: _numeric,
    StringType: _string,
    EnumType: _enum,
    PatternType: _pattern,
    RegexpType: _regexp,
    TimeType: _time,
    SemVerType: _semver,
    URIType: _uri,
    RuntimeType: _runtime,
    ArrayType: _array,
    HashType: _hash,
    CollectionType: _collection,
    StructType: _struct,
    TupleType: _tuple,
    VariantType: _variant,
    CallableType: _callable,
    InitType: _init,
    SensitiveType: _nothing,
    Wrapper: _wrapper,
    ResourceEntryType: _resource,
    ClassType: _class,
    ObjectType: _object,
    AliasType: _alias,
}
