"""
`Type[keys]`: the parameterized type for a bare one and the values between its brackets.

Source: language reference 2.5, 7.1; texts as of the reference implementation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from shared.errors import EvaluationError

from ..labels import label, ruby_class, uppercase_article, with_article
from ..regexps import Regexp
from ..times import Timespan, Timestamp
from ..values import DEFAULT, Value, value_of
from ..versions import SemVerRange
from .base import INF, UNDEF, UNIT, NotUndefType, OptionalType, Range, Type, TypeReference, VariantType
from .containers import (
    ArrayType,
    CollectionType,
    HashType,
    IterableType,
    IteratorType,
    StructElement,
    StructType,
    TupleType,
)
from .infer import infer
from .objects import ObjectExtension, ObjectType, TypeSetType
from .references import CallableType, ClassType, InitType, ResourceType, TypeType, capitalized
from .scalars import (
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

__all__ = ["BadOperand", "declared_type", "flattened", "type_from_access"]


class BadOperand(EvaluationError):
    """
    An operand that cannot be used. `operand` says which one the error is about, so that its place can be shown:
    of binary operators 0 is left and 1 is right; of `x[a, b]` -1 is x, 0 is a, 1 is b; None is the whole expression.
    """

    def __init__(self, message: str, operand: int | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.operand = operand


Keys = list[Value]


def flattened(keys: Sequence[Value]) -> Keys:
    """Nested arrays opened."""
    if not any(k.__class__ is list for k in keys):
        return list(keys)
    out: Keys = []
    for key in keys:
        out.extend(flattened(key) if key.__class__ is list else (key,))
    return out


def type_from_access(base: Type, keys: Sequence[Value]) -> Value:
    """
    `base[keys]`. For `Class` and resource types: a reference, or an array of them.

    Raises:
        BadOperand: keys that `base` does not take.
    """
    make = _MAKERS.get(base.__class__)
    if make is None:
        raise BadOperand(f"Operator '[]' is not applicable to {with_article(label(base))}.", -1)
    return make(base, keys)


def _arity(base: str, low: int, high: float, count: int) -> BadOperand:
    if high == INF:
        text = f"{low} or more arguments"
    elif high != low:
        text = f"{low} to {int(high)} arguments"
    else:
        text = f"{low} argument{'' if low == 1 else 's'}"
    return BadOperand(f"{base}[] accepts {text}. Got {count}")


def _checked(base: Type, keys: Keys, low: int, high: float, wanted: Sequence[tuple[type, str]]) -> None:
    if not low <= len(keys) <= high:
        raise _arity(uppercase_article(label(base)), 1, high, len(keys))
    for index, key in enumerate(keys):
        if not isinstance(key, tuple(kind for kind, _ in wanted)) or (key.__class__ is bool and bool not in [k for k, _ in wanted]):
            expected = " or ".join(name for _, name in wanted)
            raise BadOperand(
                f"Error creating type specialization of {with_article(label(base))}, "
                f"Cannot use {_kind_name(key)} where {expected} is expected",
                index,
            )


def _kind_name(value: Value) -> str:
    if value is None:
        return "Undef"
    return "Default" if value is DEFAULT else str(infer(value).generalized())


def _size(keys: Keys, start: int) -> Range:
    """A size given as an Integer type, or one or two integers."""
    if len(keys) == 1 and isinstance(keys[0], IntegerType):
        return keys[0].range
    for index, key in enumerate(keys):
        if key is not DEFAULT and key.__class__ is not int:
            raise BadOperand(
                "A Type's size constraint arguments must be a single Integer type, or 1-2 integers (or default). "
                f"Got {with_article(ruby_class(key))}",
                start + index,
            )
    return IntegerType(*_limits(keys)).range


def _limits(keys: Keys) -> tuple[float, float]:
    low = -INF if keys[0] is DEFAULT else keys[0]
    return low, INF if len(keys) < 2 or keys[1] is DEFAULT else keys[1]


def _one_type(base: str, make: Callable[[Type], Type], literal: bool = False) -> Callable[[Type, Sequence[Value]], Type]:
    """For types around one other type; `literal`: a string stands for itself."""

    def made(_: Type, keys: Sequence[Value]) -> Type:
        keys = flattened(keys)
        if len(keys) != 1:
            raise _arity(base, 1, 1, len(keys))
        if isinstance(keys[0], Type):
            return make(keys[0])
        if literal and isinstance(keys[0], str):
            return make(StringType(None, keys[0]))
        raise BadOperand(f"{base}[] arguments must be types. Got {ruby_class(keys[0])}", 0)

    return made


def _not_undef(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if not keys:
        return NotUndefType()
    if len(keys) > 1:
        raise _arity("NotUndef-Type", 0, 1, len(keys))
    if isinstance(keys[0], str):
        return NotUndefType(StringType(None, keys[0]))
    if isinstance(keys[0], Type):
        return NotUndefType(keys[0])
    raise BadOperand(f"NotUndef-Type[] argument must be a Type or a String. Got {ruby_class(keys[0])}", 0)


def _integer(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"Integer-Type supports [] with one or two arguments (from, to). Got {len(keys)}")
    for index, key in enumerate(keys):
        if key is not DEFAULT and key.__class__ is not int:
            raise BadOperand(f"Integer-Type [] requires all arguments to be integers (or default). Got {ruby_class(key)}", index)
    return IntegerType(*_limits(keys))


def _float(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"Float-Type supports [] with one or two arguments (from, to). Got {len(keys)}")
    for index, key in enumerate(keys):
        if key is not DEFAULT and key.__class__ not in (int, float):
            raise BadOperand(f"Float-Type [] requires all arguments to be floats, or integers (or default). Got {ruby_class(key)}", index)
    return FloatType(*_limits(keys))


def _string(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if not 1 <= len(keys) <= 2:
        raise BadOperand(f"String supports [] with one or two arguments. Got {len(keys)}")
    return StringType(_size(keys, 0))


def _boolean(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    _checked(base, keys, 1, 1, [(bool, "TrueClass or FalseClass")])
    return BooleanType(keys[0])


def _enum(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    any_case = False
    if keys and keys[-1].__class__ is bool:
        any_case = keys.pop()
    _checked(base, keys, 1, INF, [(str, "String")])
    return EnumType(keys, any_case)


def _variant(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    _checked(base, keys, 1, INF, [(Type, "Any-Type")])
    return VariantType.of(keys)


def _pattern(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    names = [(str, "String"), (Regexp, "Regexp"), (PatternType, "Pattern-Type"), (RegexpType, "Regexp-Type")]
    _checked(base, keys, 1, INF, names)
    found: list[Regexp] = []
    for key in keys:
        if isinstance(key, PatternType):
            found += key.patterns
        elif isinstance(key, RegexpType):
            found += [key.regexp] if key.regexp is not None else [Regexp("")]
        else:
            found.append(_compiled(Regexp(key) if isinstance(key, str) else key))
    return PatternType(found)


def _compiled(regexp: Regexp) -> Regexp:
    _ = regexp.pattern  # wrong ones fail here, where they are written
    return regexp


def _regexp(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if len(keys) != 1:
        raise _arity(uppercase_article(label(base)), 1, 1, len(keys))
    _checked(base, keys, 1, 1, [(str, "String"), (Regexp, "Regexp")])
    return RegexpType(_compiled(Regexp(keys[0]) if isinstance(keys[0], str) else keys[0]))


def _sem_ver(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    _checked(base, keys, 1, INF, [(str, "String"), (SemVerRange, "SemverRange")])
    return SemVerType([SemVerRange.parse(k) if isinstance(k, str) else k for k in keys])


def _time(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    assert isinstance(base, TimeType)
    if len(keys) > 2:
        raise _arity(uppercase_article(label(base)), 0, 2, len(keys))
    limits = [None if key is DEFAULT else _moment(base, key) for key in keys]
    return base.__class__(*limits)


def _moment(base: TimeType, key: Value) -> Timespan | Timestamp:
    from ..conversions import new

    if isinstance(key, base.of):
        return key
    found: Timespan | Timestamp = new(base, [key])
    return found


def _array(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if not 1 <= len(keys) <= 3:
        raise _arity("Array-Type", 1, 3, len(keys))
    if isinstance(keys[0], Type):
        return ArrayType(keys[0], _size(keys[1:], 1) if len(keys) > 1 else None)
    if len(keys) == 2:
        return ArrayType(None, _size(keys, 0))
    raise BadOperand(f"Array-Type[] arguments must be types. Got {ruby_class(keys[0])}", 0)


def _hash(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if len(keys) == 2 and all(k.__class__ is int for k in keys):
        return HashType(None, None, IntegerType(*_limits(keys)).range)
    for index, key in enumerate(keys[:2]):
        if not isinstance(key, Type):
            raise BadOperand(f"Hash-Type[] arguments must be types. Got {ruby_class(key)}", index)
    if not 2 <= len(keys) <= 4:
        raise _arity("Hash-Type", 2, 4, len(keys))
    return HashType(keys[0], keys[1], _size(keys[2:], 2) if len(keys) > 2 else None)


def _collection(_: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    if not 1 <= len(keys) <= 2:
        raise _arity("Collection-Type", 1, 2, len(keys))
    return CollectionType(_size(keys, 0))


def _split_size(keys: Keys) -> tuple[Keys, Range | None]:
    """Trailing one or two integers (or default) are a size."""
    count = 0
    while count < 2 and count < len(keys) and (keys[-1 - count] is DEFAULT or keys[-1 - count].__class__ is int):
        count += 1
    if not count:
        return keys, None
    return keys[: len(keys) - count], IntegerType(*_limits(keys[len(keys) - count :])).range


def _tuple(base: Type, keys: Sequence[Value]) -> Type:
    types, size = _split_size(flattened(keys))
    _checked(base, types, 1, INF, [(Type, "Any-Type")])
    return TupleType(types, size)


def _struct(base: Type, keys: Sequence[Value]) -> Type:
    keys = list(keys)
    _checked(base, keys, 1, 1, [(dict, "Hash")])
    return StructType([struct_element(value_of(k), v) for k, v in keys[0].items()])


def struct_element(key: Value, value: Value) -> StructElement:
    """One entry of a Struct; a plain key is optional when its value may be undef."""
    if not isinstance(value, Type):
        raise EvaluationError(f"Struct element value_type must be a Type. Got {ruby_class(value)}")
    inner = key.type if isinstance(key, OptionalType | NotUndefType) else key
    literal = inner.value if isinstance(inner, StringType) else inner
    if isinstance(inner, EnumType) and len(inner.values) == 1:
        literal = inner.values[0]
    if not isinstance(literal, str) or not literal:
        shown = key if isinstance(key, Type) else label(key)
        raise EvaluationError(f"Illegal Struct member key type. Expected NotUndef, Optional, String, or Enum. Got: {shown}")
    optional = isinstance(key, OptionalType) or (not isinstance(key, NotUndefType) and value.assignable(UNDEF))
    plain = StringType(None, literal)
    return StructElement(OptionalType(plain) if optional else plain, value)


def _callable(_: Type, keys: Sequence[Value]) -> Type:
    returns: Type | None = None
    if keys and keys[0].__class__ is list:
        if len(keys) != 2:
            raise _arity("A Callable-Type", 2, 2, len(keys))
        if not isinstance(keys[1], Type):
            raise BadOperand(
                f"Error creating type specialization of a Callable-Type, Cannot use {_kind_name(keys[1])} where Any-Type is expected", 1
            )
        keys, returns = keys[0], keys[1]
    rest = list(keys)
    block: Type | None = None
    if rest and isinstance(rest[-1], Type) and rest[-1].is_callable:
        block = rest.pop()
    elif rest and rest[-1] is None:
        rest.pop()
    types, size = _split_size(rest)
    for index, type_ in enumerate(types):
        if not isinstance(type_, Type):
            raise BadOperand(f"Callable-Type[] arguments must be types. Got {ruby_class(type_)}", index)
    if not types:
        if size is None and block is None and returns is not None and not rest:
            return CallableType(TupleType((), (0, 0)), None, returns)
        params = TupleType((), (0, 0)) if size in (None, (0, 0)) else TupleType((UNIT,), size)
        return CallableType(params, block, returns)
    return CallableType(TupleType(types, size), block, returns)


def _init(_: Type, keys: Sequence[Value]) -> Type:
    if not keys or not isinstance(keys[0], Type):
        raise BadOperand(f"Init-Type[] arguments must be types. Got {ruby_class(keys[0] if keys else None)}", 0)
    return InitType(keys[0], keys[1:])


def _runtime(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    _checked(base, keys, 2, 2, [(str, "String"), (str, "String")])
    return RuntimeType(keys[0], keys[1])


def _uri(_: Type, keys: Sequence[Value]) -> Type:
    from ..uris import URI

    keys = flattened(keys)
    if len(keys) != 1:
        raise _arity("URI-Type", 1, 1, len(keys))
    if isinstance(keys[0], str) and keys[0]:
        return URIType.of_uri(URI.parse(keys[0]))
    if isinstance(keys[0], dict):
        return URIType({value_of(k): v for k, v in keys[0].items()})
    raise BadOperand(f"URI-Type[] arguments must be types. Got {ruby_class(keys[0])}", 0)


def _object(base: Type, keys: Sequence[Value]) -> Type:
    keys = flattened(keys)
    assert isinstance(base, ObjectType)
    if base.name != "Object":
        return ObjectExtension.of(base, keys)
    if len(keys) != 1:
        raise _arity("Object-Type", 1, 1, len(keys))
    if not isinstance(keys[0], dict):
        raise BadOperand(f"Object-Type[] arguments must be types. Got {ruby_class(keys[0])}", 0)
    return ObjectType.unnamed(keys[0])


def declared_type(name: str, value: Value) -> Type:
    """What `type Name = value` declares, when it is an Object type; any other type is what an alias stands for."""
    if isinstance(value, dict):
        value = ObjectType.unnamed({value_of(k): v for k, v in value.items()})
    if isinstance(value, ObjectType):
        return value.named(name)
    if not isinstance(value, Type):
        raise EvaluationError(f"The alias {name} stands for {with_article(label(value))}, which is no type")
    return value


_NAME = re.compile(r"(?:(?:::)?[a-z_]\w*)(?:::[a-z]\w*)*", re.ASCII)
_CLASSREF = re.compile(r"(?:::)?[A-Z][\w-]*(?:::[A-Z][\w-]*)*", re.ASCII)


def _titles(keys: Sequence[Value]) -> tuple[Keys, bool] | None:
    """The titles, and whether an array of references is wanted; None when all of them are undef."""
    many = len(keys) > 1 or (bool(keys) and keys[0].__class__ is list)
    titles = [k for k in flattened(keys) if k is not None]
    return (titles, many) if titles or not keys else None


def _class(base: Type, keys: Sequence[Value]) -> Value:
    assert isinstance(base, ClassType)
    if not keys:
        raise _arity(str(base), 1, INF, 0)
    found = _titles(keys)
    if found is None:
        return [] if len(keys) > 1 or keys[0].__class__ is list else None
    titles, many = found
    references = []
    for index, title in enumerate(titles):
        if not isinstance(title, str):
            text = f"Illegal Class name in class reference. {uppercase_article(label(title))} cannot be used where a String is expected"
            raise BadOperand(text, index)
        name = title.lower().removeprefix("::")
        if not _NAME.fullmatch(name):
            raise BadOperand(
                f"Illegal name. The given name '{title}' does not conform to the naming rule /^((::)?[a-z_]\\w*)(::[a-z]\\w*)*$/", index
            )
        references.append(ClassType(name))
    return references if many else references[0]


def _resource(base: Type, keys: Sequence[Value]) -> Value:
    assert isinstance(base, ResourceType)
    if not keys:
        raise _arity(str(base), 1, INF, 0)
    rest = list(keys)
    type_name = base.type_name
    if type_name is None:
        first = rest.pop(0)
        if isinstance(first, ResourceType) and first.type_name is not None:
            type_name = first.type_name
        elif isinstance(first, str):
            type_name = capitalized(first)
        else:
            raise BadOperand(f"First argument to Resource[] must be a resource type or a String. Got {_kind_name(first)}.", 0)
        if not _CLASSREF.fullmatch(type_name):
            raise BadOperand(f"Illegal type reference. The given name '{type_name}' does not conform to the naming rule", 0)
        if not rest:
            return ResourceType(type_name)
    return _references(base, type_name, rest, 1 if base.type_name is None else 0)


@lru_cache(maxsize=8192)
def reference(type_name: str, title: str) -> ResourceType:
    """`Type['title']`; the same object for the same one, as catalogs name the same resources over and over."""
    return ResourceType(type_name, title)


def _references(base: ResourceType, type_name: str, keys: Keys, shift: int) -> Value:
    if len(keys) == 1 and keys[0].__class__ is str:
        return reference(type_name, keys[0])
    found = _titles(keys)
    if found is None:
        return [] if len(keys) > 1 or keys[0].__class__ is list else None
    titles, many = found
    for index, title in enumerate(titles):
        if not isinstance(title, str):
            raise BadOperand(
                f"Error creating type specialization of {with_article(label(base))}, "
                f"Cannot use {_kind_name(title)} where a resource title String is expected",
                index + shift,
            )
    references = [reference(type_name, title) for title in titles]
    return references if many else references[0]


def _unknown(base: Type, keys: Sequence[Value]) -> Value:
    assert isinstance(base, TypeReference)
    raise BadOperand(f"Resource type not found: {base.text}")


def _type_set(_: Type, keys: Sequence[Value]) -> Value:
    raise BadOperand("TypeSet types are not supported", hint="Declare the types of the set as aliases or Object types of their own.")


_MAKERS: dict[type[Type], Callable[..., Value]] = {
    IntegerType: _integer, FloatType: _float, StringType: _string, BooleanType: _boolean, EnumType: _enum, VariantType: _variant,
    PatternType: _pattern, RegexpType: _regexp, SemVerType: _sem_ver, TimespanType: _time, TimestampType: _time, ArrayType: _array,
    HashType: _hash, CollectionType: _collection, TupleType: _tuple, StructType: _struct, CallableType: _callable, InitType: _init,
    RuntimeType: _runtime, URIType: _uri, ObjectType: _object, ClassType: _class, ResourceType: _resource, TypeReference: _unknown,
    TypeSetType: _type_set, NotUndefType: _not_undef, OptionalType: _one_type("Optional-Type", OptionalType, literal=True),
    SensitiveType: _one_type("Sensitive-Type", SensitiveType), TypeType: _one_type("Type-Type", TypeType),
    IterableType: _one_type("Iterable-Type", IterableType), IteratorType: _one_type("Iterator-Type", IteratorType),
}  # fmt: skip
