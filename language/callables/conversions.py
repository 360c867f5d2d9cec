"""
`new`: conversion of values. There is one function for each type, and its errors have the reference's words.

Source: language reference 9.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from shared.errors import EvaluationError
from shared.regexps import Regexp, quoted

from ..types.descriptions.describe import describe_mismatch, describe_signatures
from ..types.inference.infer import arguments_type, infer, infer_set
from ..types.inference.iterables import IterableType, elements
from ..types.init import Constructors, InitType
from ..types.kinds.base import ANY, NotUndefType, OptionalType, UnitType
from ..types.kinds.containers import ArrayType, HashType, StructType, TupleType
from ..types.kinds.objects import ObjectExtension, ObjectType
from ..types.kinds.references import TypeType
from ..types.kinds.scalars import (
    BinaryType,
    BooleanType,
    FloatType,
    IntegerType,
    NumericType,
    RegexpType,
    SemVerRangeType,
    SemVerType,
    SensitiveType,
    StringType,
    TimespanType,
    TimestampType,
    URIType,
)
from ..types.named.aliases import AliasType
from ..types.notation.parse import parse_type
from ..values.core import DEFAULT, Binary, PuppetType, Sensitive, Types, Value, key_of
from ..values.numbers import Number, to_number
from ..values.text import to_s
from ..values.times import SECOND, Timespan, Timestamp
from ..values.uris import URI
from ..values.versions import SemVer, SemVerRange
from .constructors import CONSTRUCTORS, INTEGER_FROM, SEMVER, signatures
from .formats import to_string
from .hash_trees import hash_from_paths
from .signatures import Accepted, Parameter, Signature
from .sprintf import to_float, to_integer


class ConstructionContext(Protocol):
    """The services of the compilation that a conversion can use."""

    @property
    def types(self) -> Types: ...
    def now(self) -> int:
        """Return the time in nanoseconds since 1970."""


Maker = Callable[["PuppetType", Sequence[Value], "ConstructionContext | None"], Value]


def new(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None = None) -> Value:
    """
    Create a value of `type_` from `args`.

    Args:
        context: needed for values that depend on the compilation: the current time, names of types.
    Raises:
        EvaluationError: the type has no values of its own, or the arguments do not convert.
    """
    if len(args) == 1 and not isinstance(type_, InitType) and type_.instance(args[0]):
        return args[0]
    value = _maker(type_)(_constructed_type(type_), args, context)
    if type_.instance(value) or isinstance(type_, InitType):
        return value
    raise EvaluationError(describe_mismatch(f"Converted value from {type_}.new() has wrong type,", type_, infer_set(value)))


def _constructed_type(type_: PuppetType) -> PuppetType:
    """Return the type that is constructed: the one behind aliases, Optional and NotUndef."""
    while True:
        if isinstance(type_, AliasType):
            type_ = type_.resolved()
        elif isinstance(type_, OptionalType | NotUndefType) and type_.type is not None:
            type_ = type_.type
        else:
            return type_


def _maker(type_: PuppetType) -> Maker:
    constructed = _constructed_type(type_)
    maker = _MAKERS.get(constructed.__class__)
    if maker is None:
        raise EvaluationError(f"Creation of new instance of type '{constructed}' is not supported")
    return maker


def check_constructible(type_: PuppetType) -> None:
    """
    Raise EvaluationError when `Init[type_]` cannot be asked about any value: there is no `new` for the type as it is written.

    Unlike `new` itself, `Init` does not look behind Optional, NotUndef and Init.
    """
    behind = type_.resolved() if isinstance(type_, AliasType) else type_
    if behind.__class__ not in _MAKERS or isinstance(behind, InitType | NotUndefType):
        raise EvaluationError(f"Creation of new instance of type '{type_}' is not supported")


def accepts_arguments(type_: PuppetType, args: Sequence[Value], *, several: bool = False) -> bool:
    """
    Return whether `new` has a signature for these arguments, which `Init[T]` asks; the conversion itself is not tried.

    With `several`, only signatures that could take more than one argument count.
    """
    return any(s.accepts(args) and not (several and s.high == 1) for s in _signatures_of_new(_constructed_type(type_)))


def accepts_type(type_: PuppetType, other: PuppetType) -> bool:
    """
    Return whether `new` accepts a single argument of the type `other`.

    Raises:
        EvaluationError: the type has no `new`.
    """
    constructed = _constructed_type(type_)
    _maker(constructed)
    return any(s.accepts_count(1) and (s.types[0] or ANY).assignable(other) for s in _signatures_of_new(constructed) if s.types)


def _signatures_of_new(constructed: PuppetType) -> Sequence[Signature]:
    """Return the signatures of `new` for a type; an empty sequence when it has no `new`."""
    if isinstance(constructed, ObjectType):
        return _object_signatures(constructed)
    return signatures(constructed.__class__) if constructed.__class__ in CONSTRUCTORS else ()


def _no_signature_fits(name: str, alternatives: Sequence[Signature], args: Sequence[Value]) -> EvaluationError:
    return EvaluationError(describe_signatures(name, alternatives, arguments_type(args)))


def _accepted(kind: type[PuppetType], args: Sequence[Value]) -> tuple[int, Accepted]:
    """Return the number of the signature that accepts `args`, and `args`; raise the error that lists all signatures when none does."""
    for index, signature in enumerate(signatures(kind)):
        if signature.accepts(args):
            return index, args
    raise _no_signature_fits(CONSTRUCTORS[kind].name, signatures(kind), args)


def _cannot_convert(value: Value, target: str, name: str = "new") -> EvaluationError:
    if isinstance(value, str):
        return EvaluationError(f"'{name}' The string '{value}' cannot be converted to {target}")
    return EvaluationError(f"'{name}' Value of type {infer(value).generalized()} cannot be converted to {target}")


# --- numbers ------------------------------------------------------------------------------------------------------


def _integer(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    alternatives = signatures(IntegerType)
    if alternatives[0].accepts(args):
        radix, absolute = (*args[1:], *[DEFAULT, False][len(args) - 1 :])[:2]
        return _absolute(_to_integer(args[0], radix), absolute)
    if alternatives[1].accepts(args):
        options = args[0]
        return _absolute(_to_integer(options["from"], options.get("radix", DEFAULT)), options.get("abs", False))
    if len(args) == 1 and isinstance(args[0], dict):
        return _integer_problem(args[0], alternatives)
    if 1 <= len(args) <= 3 and (len(args) < 2 or args[1].__class__ is int) and (len(args) < 3 or args[2].__class__ is bool):
        if len(args) > 1 and args[1] not in (2, 8, 10, 16):
            raise EvaluationError(f"Illegal radix: {args[1]}, expected 2, 8, 10, 16, or default")
        raise _cannot_convert(args[0], "Integer")
    raise _no_signature_fits("new", alternatives, args)


def _integer_problem(arguments: dict[str, Value], alternatives: Sequence[Signature]) -> Value:
    if "from" in arguments and not parse_type(INTEGER_FROM).instance(arguments["from"]):
        raise _cannot_convert(arguments["from"], "Integer")
    radix = arguments.get("radix")
    if radix is not None and radix is not DEFAULT and radix not in (2, 8, 10, 16):
        raise EvaluationError(f"Illegal radix: {radix}, expected 2, 8, 10, 16, or default")
    expected = alternatives[1].parameters[0].type
    assert expected is not None
    raise EvaluationError(describe_mismatch("Integer.new has wrong type,", expected, infer_set(arguments)))


def _absolute(number: Number, absolute: bool) -> Number:
    return abs(number) if absolute else number


def _seconds(value: Timespan | Timestamp) -> float:
    return value.nanoseconds / SECOND


def _to_integer(value: Value, radix: Value) -> int:
    if value.__class__ is bool:
        return int(value)
    if value.__class__ is float:
        if not math.isfinite(value):
            raise EvaluationError("NaN" if value != value else "Infinity")
        return int(value)
    if value.__class__ is int:
        return value
    if value.__class__ is Timespan or value.__class__ is Timestamp:
        return math.trunc(_seconds(value))
    base = radix if isinstance(radix, int) else None
    try:
        return to_integer(value, base)
    except EvaluationError:
        packed = re.fullmatch(r"([+-])\s+(.*)", to_s(value))
        if packed:
            return to_integer(packed[1] + packed[2], base)
        raise


def _float(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    return _real(args, "Float", _to_float)


def _numeric(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    return _real(args, "Numeric", _to_numeric)


def _real(args: Sequence[Value], target: str, convert: Callable[[Value], Number]) -> Value:
    alternatives = signatures(FloatType)
    if alternatives[0].accepts(args):
        return _absolute(convert(args[0]), len(args) > 1 and args[1])
    if alternatives[1].accepts(args):
        return _absolute(convert(args[0]["from"]), args[0].get("abs", False))
    if len(args) == 1 or (len(args) == 2 and args[1].__class__ is bool):
        raise _cannot_convert(args[0], target, f"new_{target.lower()}")
    raise _no_signature_fits(f"new_{target.lower()}", alternatives, args)


def _to_float(value: Value) -> float:
    if value.__class__ is bool or value.__class__ is int or value.__class__ is float:
        return float(value)
    if value.__class__ is Timespan or value.__class__ is Timestamp:
        return _seconds(value)
    packed = re.sub(r"^([+-])\s+", r"\1", to_s(value))
    if packed[:2].lower() == "0b":
        return float(int(packed, 2))
    return to_float(packed)


def _to_numeric(value: Value) -> Number:
    if value.__class__ is bool:
        return int(value)
    if value.__class__ is int or value.__class__ is float:
        return value
    if value.__class__ is Timespan or value.__class__ is Timestamp:
        return _seconds(value)
    if to_s(value)[:2].lower() in ("0b", "0x"):
        return to_integer(value)
    number = to_number(value)
    if number is None:
        raise _cannot_convert(value, "Numeric", "new_numeric")
    return number


def _boolean(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    alternatives = signatures(BooleanType)
    if not alternatives[0].accepts(args):
        if len(args) == 1:
            raise _cannot_convert(args[0], "Boolean", "new_boolean")
        raise _no_signature_fits("new_boolean", alternatives, args)
    value = args[0]
    return value.lower() not in ("false", "no", "n") if isinstance(value, str) else bool(value)


# --- strings, collections -----------------------------------------------------------------------------------------


def _string(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    _, arguments = _accepted(StringType, args)
    return to_string(arguments[0], arguments[1] if len(arguments) > 1 else DEFAULT)


def _array(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    alternatives = signatures(ArrayType)
    if alternatives[0].accepts(args):
        value = args[0]
        return list(value.data) if isinstance(value, Binary) else list(elements(value))
    if alternatives[1].accepts(args):
        return args[0] if isinstance(args[0], list) else [args[0]]
    if len(args) == 1 or (len(args) == 2 and args[1].__class__ is bool):
        raise EvaluationError(f"'new_array' Value of type {infer(args[0]).generalized()} cannot be converted to Array")
    raise _no_signature_fits("new_array", alternatives, args)


def _hash(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    which, arguments = _accepted(HashType, args)
    value = arguments[0]
    if which == 0 and len(arguments) == 2:
        return hash_from_paths(value, arguments[1] == "hash_tree")
    if which in (0, 1):
        return {key_of(pair[0]): pair[1] for pair in value}
    if isinstance(value, list):
        return _flat_hash(value)
    if isinstance(value, dict):
        return value
    if IterableType().instance(value):
        return _flat_hash(list(elements(value)))
    raise EvaluationError(f"Value of type {infer(value).generalized()} cannot be converted to Hash")


def _flat_hash(items: list[Value]) -> Value:
    if len(items) % 2:
        raise EvaluationError("odd number of arguments for Hash")
    return {key_of(items[i]): items[i + 1] for i in range(0, len(items), 2)}


def _regexp(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    _, arguments = _accepted(RegexpType, args)
    regexp = Regexp(quoted(arguments[0]) if len(arguments) > 1 and arguments[1] else arguments[0])
    _ = regexp.pattern
    return regexp


def _type(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    _, arguments = _accepted(TypeType, args)
    return parse_type(arguments[0], context.types if context is not None else None)


def _sensitive(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    _, (value,) = _accepted(SensitiveType, args)
    return value if isinstance(value, Sensitive) else Sensitive(value)


# --- versions, times, binaries, URIs ------------------------------------------------------------------------------


def _semver(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    if len(args) == 1 and isinstance(args[0], str) and not re.fullmatch(SEMVER, args[0]):
        raise EvaluationError(f"'new_Version' The string '{args[0]}' cannot be converted to a SemVer")
    which, arguments = _accepted(SemVerType, args)
    if which == 0:
        return SemVer.parse(arguments[0])
    if which == 1:
        return SemVer.of(*arguments)
    parts = arguments[0]
    return SemVer.of(parts["major"], parts["minor"], parts["patch"], parts.get("prerelease"), parts.get("build"))


def _semver_range(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    which, arguments = _accepted(SemVerRangeType, args)
    if which == 0:
        return SemVerRange.parse(arguments[0])
    bounds = arguments[0] if which == 2 else dict(zip(("min", "max", "exclude_max"), arguments, strict=False))
    low, high = (None if bounds.get(n, DEFAULT) is DEFAULT else bounds[n] for n in ("min", "max"))
    return SemVerRange.between(low, high, bool(bounds.get("exclude_max", False)))


def _timespan(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    which, arguments = _accepted(TimespanType, args)
    if which == 0:
        return Timespan.seconds(arguments[0])
    if which == 1:
        return Timespan.parse(*arguments)
    if which == 2:
        return Timespan.of(*arguments)
    parts = arguments[0]
    if which == 3:
        return Timespan.parse(parts["string"], *([parts["format"]] if "format" in parts else []))
    return Timespan.of(**parts)


def _timestamp(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    which, arguments = _accepted(TimestampType, args)
    if which == 0:
        if context is None:
            raise EvaluationError("Timestamp.new without arguments needs a clock")
        return Timestamp(context.now())
    if which == 1:
        return Timestamp(int(arguments[0] * SECOND))
    if which == 2:
        return Timestamp.parse(*arguments)
    parts = arguments[0]
    return Timestamp.parse(parts["string"], parts.get("format"), parts.get("timezone"))


def _binary(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    which, arguments = _accepted(BinaryType, args)
    value, format_ = arguments[0], arguments[1] if len(arguments) > 1 else None
    if which == 2:
        value, format_ = value["value"], value.get("format")
    if isinstance(value, list):
        return Binary(bytes(value))
    return _binary_of(value, format_ or "%B")


def _binary_of(text: str, format_: str) -> Binary:
    if format_ == "%B":
        return Binary.from_base64(text)
    if format_ == "%b":
        return Binary.from_base64(text, strict=False)
    if format_ == "%u":
        return Binary.from_base64(text, urlsafe=True)
    return Binary(text.encode())


def _uri(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    which, arguments = _accepted(URIType, args)
    return URI.parse(arguments[0]) if which == 0 else URI(**arguments[0])


def _unit(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    _accepted(NotUndefType, args)
    return args[0]


# --- wrappers and objects -----------------------------------------------------------------------------------------


def _init(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    assert isinstance(type_, InitType)
    if type_.type is None:
        raise EvaluationError("Creation of new instance of type 'Init' is not supported")
    if len(args) == 1 and not type_.arguments:
        value = args[0]
        if value.__class__ is list and not type_.type.instance(value) and _is_spread(type_.type, value):
            args = value
        return new(type_.type, args, context)
    if len(args) != 1:
        raise EvaluationError(f"'new_Init' expects 1 argument, got {len(args) or 'none'}")
    constructed = _constructed_type(type_.type)
    if constructed.__class__ in CONSTRUCTORS and not any(
        s.accepts_count(1 + len(type_.arguments)) for s in signatures(constructed.__class__)
    ):
        raise EvaluationError(f"The type '{type_}' does not represent a valid set of parameters for {constructed}.new()")
    return new(type_.type, [*args, *type_.arguments], context)


def _is_spread(type_: PuppetType, array: list[Value]) -> bool:
    """Return whether an array as the only argument represents several arguments, which it does not where `new` accepts an array."""
    constructed = _constructed_type(type_)
    if isinstance(constructed, StringType):
        return accepts_arguments(type_, array)
    return not accepts_arguments(type_, [array])


def _object_signatures(type_: ObjectType) -> list[Signature]:
    by_hash = Signature([Parameter("hash", type_.init_struct)])
    by_position = Signature([Parameter(a.name, a.type, a.optional) for a in type_.settable])
    return [by_hash, by_position]


def _object(type_: PuppetType, args: Sequence[Value], context: ConstructionContext | None) -> Value:
    base = type_.base if isinstance(type_, ObjectExtension) else type_
    assert isinstance(base, ObjectType)
    if base.name == "Object":
        raise EvaluationError("Creation of new instance of type 'Object' is not supported")
    by_hash, by_position = _object_signatures(base)
    if by_hash.accepts(args):
        return base.new(args[0])
    if by_position.accepts(args):
        return base.new(dict(zip((a.name for a in base.settable), args, strict=False)))
    raise _no_signature_fits(f"new_{base.name}", [by_hash, by_position], args)


_MAKERS: Final[dict[type[PuppetType], Maker]] = {
    IntegerType: _integer, FloatType: _float, NumericType: _numeric, BooleanType: _boolean, StringType: _string,
    ArrayType: _array, TupleType: _array, HashType: _hash, StructType: _hash, RegexpType: _regexp, TypeType: _type,
    SensitiveType: _sensitive, SemVerType: _semver, SemVerRangeType: _semver_range, TimespanType: _timespan,
    TimestampType: _timestamp, BinaryType: _binary, URIType: _uri, InitType: _init, ObjectType: _object,
    ObjectExtension: _object, NotUndefType: _unit, UnitType: _unit,
}  # fmt: skip

InitType.constructors = Constructors(new, check_constructible, accepts_arguments, accepts_type)
