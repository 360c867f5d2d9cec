"""The type of a value: `infer` (arrays and hashes reduced to one element type), `infer_set` (in full detail)."""

from __future__ import annotations

from collections.abc import Sequence

from shared.regexps import Regexp

from ...values.core import DEFAULT, Binary, Deferred, ForeignObject, Instance, Iterator, LambdaValue, PuppetType, Sensitive, Value, value_of
from ...values.times import Timespan, Timestamp
from ...values.uris import URI
from ...values.versions import SemVer, SemVerRange
from ..kinds import containers, scalars
from ..kinds.base import UNDEF, VariantType
from ..kinds.objects import DEFERRED, ObjectExtension, ObjectType
from ..kinds.references import TypeType
from .common import common_of


def _instance_type(value: Instance) -> PuppetType:
    """Return the type of an object; attributes that have the names of type parameters become its type parameters."""
    base = value.type
    assert isinstance(base, ObjectType)
    arguments = {name: value.attributes[name] for name in base.type_parameters if value.attributes.get(name) is not None}
    return ObjectExtension(base, arguments) if arguments else base


def infer(value: Value) -> PuppetType:
    """Return the type of `value`; the elements of a collection get their common type."""
    if value.__class__ is list:
        if not value:
            return containers.EMPTY_ARRAY
        return containers.ArrayType(common_of(map(infer, value)), (len(value), len(value)))
    if value.__class__ is dict:
        if not value:
            return containers.EMPTY_HASH
        keys = common_of(infer(value_of(k)) for k in value)
        return containers.HashType(keys, common_of(map(infer, value.values())), (len(value), len(value)))
    return _infer_single(value)


def infer_set(value: Value) -> PuppetType:
    """Return the type of `value` with the type of every element: arrays as tuples, hashes with string keys as structs."""
    if value.__class__ is list:
        return containers.TupleType([infer_set(item) for item in value]) if value else containers.EMPTY_ARRAY
    if value.__class__ is dict:
        if not value:
            return containers.EMPTY_HASH
        if all(k.__class__ is str and k for k in value):
            literal = scalars.StringType
            return containers.StructType([containers.StructElement(literal(None, k), infer_set(v)) for k, v in value.items()])
        keys = VariantType.of([infer_set(value_of(k)) for k in value])
        return containers.HashType(keys, VariantType.of([infer_set(v) for v in value.values()]), (len(value), len(value)))
    if value.__class__ is SemVer:
        return scalars.SemVerType([SemVerRange.between(value, value)])
    return _infer_single(value)


def _infer_single(value: Value) -> PuppetType:
    if value.__class__ is str:
        return scalars.StringType(None, value)
    if value.__class__ is int:
        return scalars.IntegerType(value, value)
    if value.__class__ is float:
        return scalars.FloatType(value, value)
    if value is None:
        return UNDEF
    if value.__class__ is bool:
        return scalars.BooleanType(value)
    if isinstance(value, PuppetType):
        return TypeType(value)
    if value is DEFAULT:
        return scalars.DefaultType()
    if value.__class__ is Sensitive:
        return scalars.SensitiveType(infer(value.unwrap()))
    if value.__class__ is Instance:
        return _instance_type(value)
    if value.__class__ is Timespan:
        return scalars.TimespanType(value, value)
    if value.__class__ is Timestamp:
        return scalars.TimestampType(value, value)
    if value.__class__ is Iterator:
        if value.element_type is None:
            return scalars.RuntimeType("ruby", "Puppet::Pops::Types::Iterable::TreeIterator")
        return containers.IteratorType(value.element_type)
    if value.__class__ is URI:
        return scalars.URIType.of_uri(value)
    if value.__class__ is Regexp:
        return scalars.RegexpType(value)
    if value.__class__ is Deferred:
        return DEFERRED
    if value.__class__ is Binary:
        return scalars.BinaryType()
    if value.__class__ is SemVer:
        return scalars.SemVerType()
    if value.__class__ is SemVerRange:
        return scalars.SemVerRangeType()
    if isinstance(value, LambdaValue):
        return value.type
    if value.__class__ is ForeignObject:
        return scalars.RuntimeType("ruby", value.ruby_class)
    return scalars.RuntimeType("python", f"{value.__class__.__module__}.{value.__class__.__qualname__}")


def arguments_type(args: Sequence[Value], block: LambdaValue | None = None) -> PuppetType:
    """Return the type of a call's arguments in full detail, the lambda `block` last unless it is None."""
    return infer_set([*args, block] if block is not None else list(args))
