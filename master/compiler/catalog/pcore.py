"""Types as values of a catalog: `{"__ptype": "Pcore::IntegerType", "from": 1}`. Source: observed at 7.23."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shared.errors import Unsupported

from ..types.aliases import AliasType
from ..types.base import ANY, INF, PuppetType, VariantType, Wrapper, entry_for
from ..types.containers import ArrayType, CollectionType, HashType, StructType, TupleType
from ..types.init import InitType
from ..types.objects import ObjectAttribute, ObjectType
from ..types.references import CallableType, ClassType, ResourceEntryType
from ..types.scalars import (
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
from ..values.core import Value

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


def _bounds(low: Any, high: Any) -> Attributes:
    """Return `from` and `to`; None is no bound, and a lower bound is written whenever there is an upper one."""
    if high is None:
        return {} if low is None else {"from": low}
    return {"from": low, "to": high}


def _size(size: Any) -> Attributes:
    high = None if size[1] is None or size[1] == INF else size[1]
    return {"__ptype": "Pcore::IntegerType", **_bounds(size[0], high)}


def _sized(size: Any) -> Attributes:
    return {} if size is None else {"size_type": _size(size)}


def _range(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return _bounds(None if type_.low == -INF else type_.low, None if type_.high == INF else type_.high)


def _time(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return _bounds(*[None if bound is None else encode_value(bound) for bound in (type_.low, type_.high)])


def _string(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    if type_.value is not None:
        return {"size_type_or_value": type_.value}
    return {} if type_.size is None else {"size_type_or_value": _size(type_.size)}


def _enum(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"values": list(type_.values)} | ({"case_insensitive": True} if type_.any_case else {})


def _pattern(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"patterns": [{"__ptype": "Pcore::RegexpType", "pattern": pattern.source} for pattern in type_.patterns]}


def _regexp(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {} if type_.regexp is None else {"pattern": type_.regexp.source}


def _array(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    is_bare = type_.size is None and type_.element == ANY
    return ({} if is_bare else {"element_type": inner(type_.element)}) | _sized(type_.size)


def _hash(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    key, value = type_.key_type or ANY, type_.value_type or ANY
    is_bare = type_.size is None and key == ANY and value == ANY
    return ({} if is_bare else {"key_type": inner(key), "value_type": inner(value)}) | _sized(type_.size)


def _collection(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return _sized(type_.size)


def _struct(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    elements = [
        {"__ptype": "Pcore::StructElement", "key_type": inner(element.key_type), "value_type": inner(element.value_type)}
        for element in type_.elements
    ]
    return {"elements": elements}


def _tuple(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"types": [inner(part) for part in type_.types]} | _sized(type_.size)


def _variant(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"types": [inner(part) for part in type_.types]}


def _callable(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    parts = {"param_types": type_.params, "block_type": type_.block, "return_type": type_.returns}
    return {name: None if part is None else inner(part) for name, part in parts.items()}


def _semver(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"ranges": [encode_value(item) for item in type_.ranges]} if type_.ranges else {}


def _init(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    arguments = {"init_args": [encode_value(argument) for argument in type_.arguments]} if type_.arguments else {}
    return _wrapper(type_, inner, encode_value) | arguments


def _wrapper(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {} if type_.type is None else {"type": inner(type_.type)}


def _nothing(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {}


def _resource(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {name: part for name, part in (("type_name", type_.type_name), ("title", type_.title)) if part is not None}


def _class(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {} if type_.class_name is None else {"class_name": type_.class_name}


def _runtime(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    parts = {"runtime": type_.runtime, "name_or_pattern": type_.pattern}
    return {name: encode_value(part) for name, part in parts.items() if part is not None}


def _uri(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"parameters": encode_value(type_.matchers)} if type_.matchers else {}


def _alias(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
    return {"name": type_.alias, "type_expr": None, "resolved_type": inner(type_.definition)}


def _object(type_: Any, inner: Inner, encode_value: EncodeValue) -> Attributes:
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
    RangeType: _range,
    TimeType: _time,
    StringType: _string,
    EnumType: _enum,
    PatternType: _pattern,
    RegexpType: _regexp,
    ArrayType: _array,
    HashType: _hash,
    CollectionType: _collection,
    StructType: _struct,
    TupleType: _tuple,
    VariantType: _variant,
    CallableType: _callable,
    SemVerType: _semver,
    SensitiveType: _nothing,
    BooleanType: _nothing,
    InitType: _init,
    Wrapper: _wrapper,
    ResourceEntryType: _resource,
    ClassType: _class,
    RuntimeType: _runtime,
    URIType: _uri,
    AliasType: _alias,
    ObjectType: _object,
}
