"""
`Type[keys]`: the parameterized type for a bare one and the values between its brackets.

Source: language reference 2.5, 7.1; texts as of the reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...errors.issues import BadOperand
from ...values.core import DEFAULT, PuppetType, Value, entries
from ...values.labels import label, ruby_class, uppercase_article, with_article
from ...values.times import Timespan, Timestamp
from ...values.uris import URI
from ...values.versions import SemVerRange
from ..declare import define_type_set, object_extension, unnamed_object
from ..inference.infer import infer
from ..inference.iterables import IterableType
from ..init import InitType
from ..kinds.base import INF, UNDEF, UNIT, NotUndefType, OptionalType, Range, TypeReference, VariantType
from ..kinds.containers import ArrayType, CollectionType, HashType, IteratorType, StructElement, StructType, TupleType
from ..kinds.objects import ObjectType
from ..kinds.references import CallableType, ClassType, ResourceEntryType, TypeType
from ..kinds.scalars import (
    BooleanType,
    EnumType,
    FloatType,
    IntegerType,
    PatternType,
    RegexpType,
    RuntimeType,
    SemVerType,
    SensitiveType,
    StringType,
    TimespanType,
    TimestampType,
    TimeType,
    URIType,
)
from ..named.aliases import has_undefined
from ..named.type_sets import TypeSetType
from .named_references import class_reference, resource_reference
from .operands import Keys, arity_error, check_keys, flatten_arrays, limits, size_of, type_text


def type_from_access(base: PuppetType, keys: Sequence[Value]) -> Value:
    """
    Return `base[keys]`; for `Class` and resource types, a reference or an array of references.

    Raises:
        BadOperand: `base` does not accept the keys.
    """
    make = _MAKERS.get(base.__class__)
    if make is None:
        raise no_access_error(base)
    return make(base, keys)


def is_parameterized(base: PuppetType) -> bool:
    """Return whether there are keys that a type accepts."""
    return base.__class__ in _MAKERS


def no_access_error(value: Value) -> BadOperand:
    """Return the error for `value[…]` when nothing can be between the brackets."""
    return BadOperand(f"Operator '[]' is not applicable to {with_article(label(value))}.", -1)


def _one_type(
    base: str, make: Callable[[PuppetType], PuppetType], literal: bool = False
) -> Callable[[PuppetType, Sequence[Value]], PuppetType]:
    """Return the function for a type that wraps one other type; with `literal`, a string key is a literal string type."""

    def made(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
        keys = flatten_arrays(keys)
        if len(keys) != 1:
            raise arity_error(base, 1, 1, len(keys))
        if isinstance(keys[0], PuppetType):
            return make(keys[0])
        if literal and isinstance(keys[0], str):
            return make(StringType(None, keys[0]))
        raise BadOperand(f"{base}[] arguments must be types. Got {ruby_class(keys[0])}", 0)

    return made


def _not_undef(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if not keys:
        return NotUndefType()
    if len(keys) > 1:
        raise arity_error("NotUndef-Type", 0, 1, len(keys))
    if isinstance(keys[0], str):
        return NotUndefType(StringType(None, keys[0]))
    if isinstance(keys[0], PuppetType):
        return NotUndefType(keys[0])
    raise BadOperand(f"NotUndef-Type[] argument must be a Type or a String. Got {ruby_class(keys[0])}", 0)


def _integer(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    return IntegerType(*_number_limits("Integer", (int,), "integers", keys))


def _float(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    return FloatType(*_number_limits("Float", (int, float), "floats, or integers", keys))


def _number_limits(name: str, classes: tuple[type, ...], noun: str, keys: Sequence[Value]) -> tuple[float, float]:
    keys = flatten_arrays(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"{name}-Type supports [] with one or two arguments (from, to). Got {len(keys)}")
    for index, key in enumerate(keys):
        if key is not DEFAULT and key.__class__ not in classes:
            raise BadOperand(f"{name}-Type [] requires all arguments to be {noun} (or default). Got {ruby_class(key)}", index)
    return limits(keys)


def _string(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"String supports [] with one or two arguments. Got {len(keys)}")
    return StringType(size_of(keys, 0))


def _boolean(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    return BooleanType(check_keys(base, keys, 1, 1, {bool: "TrueClass or FalseClass"})[0])


def _enum(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    any_case = False
    if keys and keys[-1].__class__ is bool:
        any_case = keys.pop() is True
    return EnumType(check_keys(base, keys, 1, INF, {str: "String"}), any_case)


def _variant(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    return VariantType.of(check_keys(base, keys, 1, INF, {PuppetType: "Any-Type"}))


def _pattern(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    accepted: Mapping[type[str | Regexp | PatternType | RegexpType], str] = {
        str: "String", Regexp: "Regexp", PatternType: "Pattern-Type", RegexpType: "Regexp-Type",
    }  # fmt: skip
    patterns: list[Regexp] = []
    for key in check_keys(base, keys, 1, INF, accepted):
        if isinstance(key, PatternType):
            patterns += key.patterns
        elif isinstance(key, RegexpType):
            patterns += [key.regexp] if key.regexp is not None else [Regexp("")]
        else:
            patterns.append(_compiled(Regexp(key) if isinstance(key, str) else key))
    return PatternType(patterns)


def _compiled(regexp: Regexp) -> Regexp:
    _ = regexp.pattern  # a wrong pattern is an error here, where it is written
    return regexp


def _regexp(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if len(keys) != 1:
        error = arity_error(uppercase_article(label(base)), 1, 1, len(keys))
        error.operand = 1 if keys else error.operand
        raise error
    accepted: Mapping[type[str | Regexp], str] = {str: "String", Regexp: "Regexp"}
    key = check_keys(base, keys, 1, 1, accepted)[0]
    return RegexpType(_compiled(Regexp(key) if isinstance(key, str) else key))


def _sem_ver(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    accepted: Mapping[type[str | SemVerRange], str] = {str: "String", SemVerRange: "SemverRange"}
    return SemVerType([SemVerRange.parse(k) if isinstance(k, str) else k for k in check_keys(base, keys, 1, INF, accepted)])


def _time(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    assert isinstance(base, TimeType)
    if len(keys) > 2:
        raise arity_error(uppercase_article(label(base)), 0, 2, len(keys))
    limits = [None if key is DEFAULT else _moment(base, key) for key in keys]
    return base.__class__(*limits)


def _moment(base: TimeType, key: Value) -> Timespan | Timestamp:
    if isinstance(key, base.of):
        return key
    moment = InitType.constructors.new(base, [key])
    assert isinstance(moment, base.of)
    return moment


def _array(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if not 1 <= len(keys) <= 3:
        raise arity_error("Array-Type", 1, 3, len(keys))
    if isinstance(keys[0], PuppetType):
        return ArrayType(keys[0], size_of(keys[1:], 1) if len(keys) > 1 else None)
    if len(keys) == 2:
        return ArrayType(None, size_of(keys, 0))
    raise BadOperand(f"Array-Type[] arguments must be types. Got {ruby_class(keys[0])}", 0)


def _hash(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if len(keys) == 2 and all(k.__class__ is int for k in keys):
        return HashType(None, None, IntegerType(*limits(keys)).range)
    types: list[PuppetType] = []
    for index, key in enumerate(keys[:2]):
        if not isinstance(key, PuppetType):
            raise BadOperand(f"Hash-Type[] arguments must be types. Got {ruby_class(key)}", index)
        types.append(key)
    if not 2 <= len(keys) <= 4:
        raise arity_error("Hash-Type", 2, 4, len(keys))
    key_type, value_type = types
    return HashType(key_type, value_type, size_of(keys[2:], 2) if len(keys) > 2 else None)


def _collection(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if not 1 <= len(keys) <= 2:
        raise arity_error("Collection-Type", 1, 2, len(keys))
    return CollectionType(size_of(keys, 0))


def _split_size(keys: Keys) -> tuple[Keys, Range | None]:
    """Split off the size that one or two integers (or default) at the end of the keys describe."""
    count = 0
    while count < 2 and count < len(keys) and (keys[-1 - count] is DEFAULT or keys[-1 - count].__class__ is int):
        count += 1
    if not count:
        return keys, None
    return keys[: len(keys) - count], IntegerType(*limits(keys[len(keys) - count :])).range


def _tuple(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    types, size = _split_size(flatten_arrays(keys))
    return TupleType(check_keys(base, types, 1, INF, {PuppetType: "Any-Type"}), size)


def _struct(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    (elements,) = check_keys(base, list(keys), 1, 1, {dict: "Hash"})
    return StructType([struct_element(key, value) for key, value in entries(elements)])


def struct_element(key: Value, value: Value) -> StructElement:
    """Return one entry of a Struct; a plain key is optional when its value may be undef. An array is read as its type."""
    if isinstance(value, list):
        value = infer(value).generalized()
    if not isinstance(value, PuppetType):
        raise EvaluationError(f"Struct element value_type must be a Type. Got {ruby_class(value)}")
    inner = key.type if isinstance(key, OptionalType | NotUndefType) else key
    literal = inner.value if isinstance(inner, StringType) else inner
    if isinstance(inner, EnumType) and len(inner.values) == 1:
        literal = inner.values[0]
    if not isinstance(literal, str) or not literal:
        shown = key if isinstance(key, PuppetType) else label(key)
        raise EvaluationError(f"Illegal Struct member key type. Expected NotUndef, Optional, String, or Enum. Got: {shown}")
    optional = isinstance(key, OptionalType) or (not isinstance(key, NotUndefType) and not has_undefined(value) and value.assignable(UNDEF))
    plain = StringType(None, literal)
    return StructElement(OptionalType(plain) if optional else plain, value)


def _callable(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    returns: PuppetType | None = None
    if keys and keys[0].__class__ is list:
        if len(keys) != 2:
            raise arity_error("A Callable-Type", 2, 2, len(keys))
        if not isinstance(keys[1], PuppetType):
            raise BadOperand(
                f"Error creating type specialization of a Callable-Type, Cannot use {type_text(keys[1])} where Any-Type is expected",
                1,
            )
        keys, returns = keys[0], keys[1]
    rest = list(keys)
    block: PuppetType | None = None
    last = rest[-1] if rest else None
    if isinstance(last, PuppetType) and last.is_callable:
        block = last
        rest.pop()
    parameters, size = _split_size(rest)
    types = [type_ if isinstance(type_, PuppetType) else _type_of_parameter(type_) for type_ in parameters]
    if not types:
        if size is None and (block is not None or returns is not None) and not rest:
            # It is shown as [0, 0], but compared as a Tuple without limits.
            return CallableType(TupleType(()), block, returns)
        params = TupleType((), (0, 0)) if size in (None, (0, 0)) else TupleType((UNIT,), size)
        return CallableType(params, block, returns)
    return CallableType(TupleType(types, size), block, returns)


def _type_of_parameter(value: Value) -> PuppetType:
    """Return the type that the reference uses for a value in the place of a parameter's type in a Callable."""
    if value.__class__ is str:
        return RuntimeType("ruby", value)
    return infer(value).generalized()


def _init(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    if not keys or not isinstance(keys[0], PuppetType):
        raise BadOperand(f"Init-Type[] arguments must be types. Got {ruby_class(keys[0] if keys else None)}", 0)
    return InitType(keys[0], keys[1:])


def _runtime(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    runtime, pattern = check_keys(base, keys, 2, 2, {str: "String or String"})
    return RuntimeType(runtime, pattern)


def _uri(_: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    if len(keys) != 1:
        raise arity_error("URI-Type", 1, 1, len(keys))
    if isinstance(keys[0], str) and keys[0]:
        return URIType.of_uri(URI.parse(keys[0]))
    if isinstance(keys[0], dict):
        return URIType(_by_name(keys[0]))
    raise BadOperand(f"URI-Type[] arguments must be types. Got {ruby_class(keys[0])}", 0)


def _object(base: PuppetType, keys: Sequence[Value]) -> PuppetType:
    keys = flatten_arrays(keys)
    assert isinstance(base, ObjectType)
    if base.name != "Object":
        return object_extension(base, keys)
    if len(keys) != 1:
        raise arity_error("Object-Type", 1, 1, len(keys))
    if not isinstance(keys[0], dict):
        raise BadOperand(f"Object-Type[] arguments must be types. Got {ruby_class(keys[0])}", 0)
    return unnamed_object(keys[0])


class IllegalAlias(EvaluationError):
    """The definition of an alias is an expression that would have to be evaluated."""


def declared_type(name: str, value: Value) -> PuppetType:
    """
    Return the type that `type Name = value` declares: an Object type or a type set of that name; any other type becomes an alias.

    Raises:
        EvaluationError: `value` is not a type; a text is the expression in the definition that would have to be evaluated.
    """
    if isinstance(value, str):
        raise IllegalAlias(
            f"The expression <{value}> is not a valid type specification.", hint=f"The alias {name} may have names and literals only."
        )
    if isinstance(value, dict):
        value = unnamed_object(_by_name(value))
    if isinstance(value, ObjectType):
        return value.take_name(name)
    if isinstance(value, TypeSetType):
        return define_type_set(name, value.definition or {})
    if not isinstance(value, PuppetType):
        raise EvaluationError(f"The alias {name} stands for {with_article(label(value))}, which is no type")
    return value


def _unknown(base: PuppetType, keys: Sequence[Value]) -> Value:
    assert isinstance(base, TypeReference)
    raise BadOperand(f"Resource type not found: {base.text}")


def _type_set(base: PuppetType, keys: Sequence[Value]) -> Value:
    if len(keys) != 1:
        raise arity_error("TypeSet-Type", 1, 1, len(keys))
    if not isinstance(keys[0], dict):
        raise BadOperand(f"TypeSet-Type[] expects a Hash, got {ruby_class(keys[0])}", 0)
    return TypeSetType("TypeSet", _by_name(keys[0]) or None)


def _by_name(hash_: dict[Any, Any]) -> dict[str, Value]:
    """Return a hash that should have names as its keys; its reader refuses other keys."""
    names: dict[Any, Value] = dict(entries(hash_))
    return names


_MAKERS: dict[type[PuppetType], Callable[..., Value]] = {
    IntegerType: _integer, FloatType: _float, StringType: _string, BooleanType: _boolean, EnumType: _enum, VariantType: _variant,
    PatternType: _pattern, RegexpType: _regexp, SemVerType: _sem_ver, TimespanType: _time, TimestampType: _time, ArrayType: _array,
    HashType: _hash, CollectionType: _collection, TupleType: _tuple, StructType: _struct, CallableType: _callable, InitType: _init,
    RuntimeType: _runtime, URIType: _uri, ObjectType: _object, ClassType: class_reference, ResourceEntryType: resource_reference,
    TypeReference: _unknown, TypeSetType: _type_set, NotUndefType: _not_undef,
    OptionalType: _one_type("Optional-Type", OptionalType, literal=True),
    SensitiveType: _one_type("Sensitive-Type", SensitiveType), TypeType: _one_type("Type-Type", TypeType),
    IterableType: _one_type("Iterable-Type", IterableType), IteratorType: _one_type("Iterator-Type", IteratorType),
}  # fmt: skip
