"""The data types of attributes of the Resource API: what Ruby asks about them and about values."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from language.types.descriptions.describe import describe_mismatch
from language.types.inference.infer import infer_set
from language.types.kinds.base import OptionalType, VariantType, Wrapper
from language.types.kinds.containers import ArrayType, HashType, StructType, TupleType
from language.types.kinds.normalization import normalized
from language.types.kinds.scalars import BooleanType, EnumType, FloatType, IntegerType, NumericType, PatternType, SensitiveType, StringType
from language.types.named.aliases import AliasType
from language.types.notation.parse import parse_type
from language.values.core import DEFAULT, ForeignObject, PuppetType, Sensitive, Value, entries, key_of
from language.values.numbers import to_number
from language.values.text import inspect
from shared.errors import EvaluationError, ParseError
from shared.regexps import Regexp
from shared.ruby.texts import dump_text

ENSURE = EnumType(["absent", "present"])


def answer(question: str, items: Sequence[Any]) -> list[Any]:
    """Return the answer to one of the QUESTIONS for each of the items."""
    return [QUESTIONS[question](item) for item in items]


def _describe(text: str) -> dict[str, Any]:
    """Return what Ruby has to know of a type itself; for a text that is no type, why not."""
    try:
        type_ = parse_type(text)
    except EvaluationError as err:
        return {"fault": _fault(text, err)}
    except RecursionError:
        return {"fault": "is nested too deeply"}
    content = type_.type if isinstance(type_, OptionalType) else type_
    simple = normalized(type_)
    return {
        "optional": isinstance(type_, OptionalType),
        "boolean": isinstance(content, BooleanType),
        "enum": type_ == ENSURE,
        "ensure": ENSURE in (simple, simple.type if isinstance(simple, OptionalType) else None),
    }


def _fault(text: str, err: EvaluationError) -> str:
    from language.syntax.parser import parse
    from language.syntax.source import Source

    try:
        parse(Source(text))
    except ParseError as syntax:
        return f"could not be parsed: {syntax}"
    return f"is not recognised: {err.message}"


def _complaint(item: Any) -> str | None:
    """Return why a value is not of a type; None when it is."""
    text, data, subject = item
    return _mismatch(parse_type(text), _load(data), subject)


def _mismatch(type_: PuppetType, value: Value, subject: str) -> str | None:
    return None if type_.instance(value) else describe_mismatch(subject, type_, infer_set(value))


# --- texts of a command line


def _conversion(item: Any) -> dict[str, Any]:
    """Return what a value becomes where that is another one, or why it cannot be of the type."""
    text, data, subject = item
    value = _load(data)
    converted, error = _converted(parse_type(text), value, subject)
    if error is not None:
        return {"error": error}
    return {} if converted is value else {"value": _dump(converted)}


def _converted(type_: PuppetType, value: Value, subject: str) -> tuple[Value, str | None]:
    """Return a value as its type has it, and why it is none of the type."""
    if isinstance(type_, OptionalType):
        return (value, None) if value is None or type_.type is None else _converted(type_.type, value, subject)
    if isinstance(type_, VariantType):
        string = next((each for each in type_.types if isinstance(each, StringType)), None)  # it comes last: every text is one
        choices = [_converted(each, value, subject) for each in type_.types if each != string]
        fitting = [choice for choice in choices if choice[1] is None]
        if len(fitting) > 1:
            return value, f"{subject} {inspect(value)} is not unabiguously convertable to {type_}"
        if fitting:
            return fitting[0]
        if string is not None:
            return _converted(string, value, subject)
    elif isinstance(type_, ArrayType) and isinstance(value, list):
        items = [_converted(type_.element, item, subject) for item in value]
        if all(error is None for _, error in items):
            value = [item for item, _ in items]
    elif isinstance(type_, BooleanType):
        value = {"true": True, "false": False}.get(str(value), value)
    elif isinstance(type_, NumericType | IntegerType | FloatType) and isinstance(value, str):
        number = to_number(value)
        value = value if number is None else number
    elif isinstance(type_, StringType | EnumType | PatternType) and isinstance(value, ForeignObject) and value.ruby_class == "Symbol":
        value = value.text
    return value, _mismatch(type_, value, subject)


# --- secrets


def _seal(item: Any) -> Any:
    """Return the value of an attribute that is Sensitive with the secrets where the type has them, else as one secret."""
    text, data = item
    type_, value = parse_type(text), _load(data)
    return _dump(_sealed(type_, value) if _has_secret(type_) else Sensitive(value))


def _has_secret(type_: PuppetType) -> bool:
    return isinstance(type_, SensitiveType) or (not isinstance(type_, AliasType) and any(map(_has_secret, type_.parts())))


def _sealed(type_: PuppetType | None, value: Value) -> Value:
    if isinstance(value, Sensitive) or type_ is None or not _has_secret(type_):
        return value
    if isinstance(type_, SensitiveType):
        return Sensitive(value)
    if isinstance(type_, Wrapper):
        return _sealed(type_.type, value)
    if isinstance(type_, VariantType):
        choices = [_sealed(each, value) for each in type_.types if _has_secret(each)]
        return next((choice for choice in choices if type_.instance(choice)), choices[0])
    if isinstance(type_, ArrayType) and isinstance(value, list):
        return [_sealed(type_.element, item) for item in value]
    if isinstance(type_, TupleType) and isinstance(value, list):
        return [_sealed(type_.at(index), item) for index, item in enumerate(value)]
    if isinstance(type_, HashType) and isinstance(value, dict):
        return {key: _sealed(type_.value_type, item) for key, item in value.items()}
    if isinstance(type_, StructType) and isinstance(value, dict):
        types = {element.name: element.value_type for element in type_.elements}
        return {key: _sealed(types.get(key), item) for key, item in value.items()}
    return value


# --- values as JSON, and back


def _load(data: Any) -> Value:
    """Return the value that Ruby's `Exact.dump` wrote."""
    if isinstance(data, list):
        return [_load(item) for item in data]
    if isinstance(data, dict):
        return _LOADERS[data["$"]](data["v"]) if "$" in data else {key: _load(item) for key, item in data.items()}
    value: Value = data
    return value


_LOADERS: Mapping[str, Callable[[Any], Value]] = {
    "hash": lambda pairs: {key_of(_load(key)): _load(item) for key, item in pairs},
    "bytes": lambda octets: base64.b64decode(octets).decode("utf-8", "surrogateescape"),
    "float": float,
    "default": lambda _: DEFAULT,
    "regexp": Regexp,
    "sensitive": lambda inner: Sensitive(_load(inner)),
    "object": lambda names: ForeignObject(*names),
}


def _dump(value: Value) -> Any:
    """Return a value as Ruby's `Wire.load` reads it."""
    if isinstance(value, str):
        return dump_text(value)
    if isinstance(value, list):
        return [_dump(item) for item in value]
    if isinstance(value, dict):
        return {"$": "hash", "v": [[_dump(key), _dump(item)] for key, item in entries(value)]}
    if isinstance(value, Sensitive):
        return {"$": "sensitive", "v": _dump(value.unwrap())}
    if isinstance(value, ForeignObject):
        return {"$": "symbol", "v": value.text}
    return value


QUESTIONS: Mapping[str, Callable[[Any], Any]] = {
    "types": _describe,
    "complaints": _complaint,
    "conversions": _conversion,
    "sealed": _seal,
}
