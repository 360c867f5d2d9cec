"""Types as values of a catalog: `{"__ptype": "Pcore::IntegerType", "from": 1}`. Source: observed at 7.23."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shared.errors import Unsupported

from ..types.init import InitType
from ..types.kinds.base import ANY, INF, VariantType, Wrapper, entry_for
from ..types.kinds.containers import ArrayType, CollectionType, HashType, StructType, TupleType
from ..types.kinds.objects import ObjectAttribute, ObjectType
from ..types.kinds.references import CallableType, ClassType, ResourceEntryType
from ..types.kinds.scalars import (
    BooleanType,
    EnumType,
    PatternType,
    RangeType,
    RegexpType,
    RuntimeType,
    SemVerType,
    SensitiveType,
    StringType,
    TimeType,
    URIType,
)
from ..types.named.aliases import AliasType
from ..values.core import PuppetType, Value

EncodeValue = Callable[[Value], Any]
"""Encodes the values that stand in a type: bounds, defaults, arguments."""


def encode_type(type_: PuppetType, encode_value: EncodeValue) -> dict[str, Any]:
    """
    Return a type by its attributes, but for those that are as in the bare type.

    Raises:
        Unsupported: a type that catalogs have no form for.
    """

    def inner(part: PuppetType) -> dict[str, Any]:
        return encode_type(part, encode_value)

    attributes = entry_for(type_, _ATTRIBUTES)
    if attributes is not None:
        name = "TypeAliasType" if isinstance(type_, AliasType) else type_.pcore_name
        return {"__ptype": f"Pcore::{name}", **attributes(type_, inner, encode_value)}
    if str(type_) != type_.name:
        raise Unsupported(f"the type {type_} cannot stand in a catalog", hint="Turn it into a String.")
    return {"__ptype": f"Pcore::{type_.pcore_name}"}


Inner = Callable[[PuppetType], dict[str, Any]]
Attributes = dict[str, Any]


def _bounds(low: object, high: object) -> Attributes:
    """Return `from` and `to`; None means unbounded, and a lower bound is always written if there is an upper one."""
    if high is None:
        return {} if low is None else {"from": low}
    return {"from": low, "to": high}


def _size(size: tuple[float, float]) -> Attributes:
    high = None if size[1] == INF else size[1]
    return {"__ptype": "Pcore::IntegerType", **_bounds(size[0], high)}


def _sized(size: tuple[float, float] | None) -> Attributes:
    return {} if size is None else {"size_type": _size(size)}


def _string(type_: StringType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    if type_.value is not None:
        return {"size_type_or_value": type_.value}
    return {} if type_.size is None else {"size_type_or_value": _size(type_.size)}


def _pattern(type_: PatternType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"patterns": [{"__ptype": "Pcore::RegexpType", "pattern": pattern.flagged_source} for pattern in type_.patterns]}


def _array(type_: ArrayType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    is_bare = type_.size is None and type_.element == ANY
    return ({} if is_bare else {"element_type": inner(type_.element)}) | _sized(type_.size)


def _hash(type_: HashType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    key, value = type_.key_type or ANY, type_.value_type or ANY
    is_bare = type_.size is None and key == ANY and value == ANY
    return ({} if is_bare else {"key_type": inner(key), "value_type": inner(value)}) | _sized(type_.size)


def _struct(type_: StructType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    elements = [
        {"__ptype": "Pcore::StructElement", "key_type": inner(element.key_type), "value_type": inner(element.value_type)}
        for element in type_.elements
    ]
    return {"elements": elements}


def _callable(type_: CallableType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    parts = {"param_types": type_.params, "block_type": type_.block, "return_type": type_.returns}
    return {name: None if part is None else inner(part) for name, part in parts.items()}


def _init(type_: InitType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    arguments = {"init_args": [encode_value(argument) for argument in type_.arguments]} if type_.arguments else {}
    return _wrapper(type_, inner, encode_value) | arguments


def _wrapper(type_: Wrapper, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {} if type_.type is None else {"type": inner(type_.type)}


def _resource(type_: ResourceEntryType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {name: part for name, part in (("type_name", type_.type_name), ("title", type_.title)) if part is not None}


def _runtime(type_: RuntimeType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    parts = {"runtime": type_.runtime, "name_or_pattern": type_.pattern}
    return {name: encode_value(part) for name, part in parts.items() if part is not None}


def _object(type_: ObjectType, inner: Inner, encode_value: EncodeValue) -> Attributes:
    type_.read_definition()
    data: Attributes = {} if type_.name == "Object" else {"name": type_.name}
    if type_.parent is not None:
        data["parent"] = inner(type_.parent)
    if type_.type_parameters:
        data["type_parameters"] = {name: inner(part) for name, part in type_.type_parameters.items()}
    if type_.own:
        data["attributes"] = {attribute.name: _attribute(attribute, inner, encode_value) for attribute in type_.own.values()}
    if type_.constants:
        data["constants"] = {name: encode_value(constant.default) for name, constant in type_.constants.items()}
    if type_.functions:
        data["functions"] = {name: inner(function.type) for name, function in type_.functions.items()}
    if type_.equality is not None:
        data["equality"] = list(type_.equality)
    if not type_.include_type:
        data["equality_include_type"] = False
    return {"_pcore_init_hash": data}


def _attribute(attribute: ObjectAttribute, inner: Inner, encode_value: EncodeValue) -> Attributes:
    if not attribute.optional and not attribute.kind:
        return inner(attribute.type)
    data: Attributes = {"type": inner(attribute.type)}
    if attribute.kind:
        data["kind"] = attribute.kind
    if attribute.optional:
        data["value"] = encode_value(attribute.default)
    return data


_ATTRIBUTES: Final[dict[type, Callable[[Any, Inner, EncodeValue], Attributes]]] = {
    RangeType: lambda of, inner, encode: _bounds(None if of.low == -INF else of.low, None if of.high == INF else of.high),
    TimeType: lambda of, inner, encode: _bounds(*[None if bound is None else encode(bound) for bound in (of.low, of.high)]),
    StringType: _string,
    EnumType: lambda of, inner, encode: {"values": list(of.values)} | ({"case_insensitive": True} if of.any_case else {}),
    PatternType: _pattern,
    RegexpType: lambda of, inner, encode: {} if of.regexp is None else {"pattern": of.regexp.flagged_source},
    ArrayType: _array,
    HashType: _hash,
    CollectionType: lambda of, inner, encode: _sized(of.size),
    StructType: _struct,
    TupleType: lambda of, inner, encode: {"types": [inner(part) for part in of.types]} | _sized(of.size),
    VariantType: lambda of, inner, encode: {"types": [inner(part) for part in of.types]},
    CallableType: _callable,
    SemVerType: lambda of, inner, encode: {"ranges": [encode(item) for item in of.ranges]} if of.ranges else {},
    SensitiveType: lambda of, inner, encode: {},
    BooleanType: lambda of, inner, encode: {},
    InitType: _init,
    Wrapper: _wrapper,
    ResourceEntryType: _resource,
    ClassType: lambda of, inner, encode: {} if of.class_name is None else {"class_name": of.class_name},
    RuntimeType: _runtime,
    URIType: lambda of, inner, encode: {"parameters": encode(of.matchers)} if of.matchers else {},
    AliasType: lambda of, inner, encode: {"name": of.alias, "type_expr": None, "resolved_type": inner(of.definition)},
    ObjectType: _object,
}
