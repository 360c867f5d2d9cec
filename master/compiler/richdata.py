"""
Values in a catalog's JSON: what JSON has not becomes a map with `__ptype`, or text where the reader knows no rich data.

Source: language reference 14; protocol reference 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.errors import Unsupported
from shared.richdata import of_bytes

from .labels import label, with_article
from .text import to_s
from .types import lattice
from .types.references import ClassType, ResourceType, reference_text
from .values import (
    DEFAULT,
    URI,
    Binary,
    Deferred,
    Instance,
    Iterator,
    Regexp,
    SemVer,
    SemVerRange,
    Sensitive,
    Timespan,
    Timestamp,
    Value,
    entries,
)

__all__ = ["encode"]

Warn = Callable[[str], None]
_TEXTUAL = {Timestamp: "Timestamp", Timespan: "Timespan", SemVer: "SemVer", SemVerRange: "SemVerRange", URI: "URI", Binary: "Binary"}


def encode(value: Value, warn: Warn, place: str, *, rich: bool = True) -> Any:
    """`value` as plain data; `place` names it in warnings (`Notify[a]['message']`)."""
    kind = value.__class__
    if kind is str and rich and not value.isascii():
        return _text(value)
    if kind is str or kind is int or kind is bool or value is None or kind is float:
        return value
    if kind is list:
        return [encode(item, warn, f"{place}[{index}]", rich=rich) for index, item in enumerate(value)]
    if kind is dict:
        return _hash(value, warn, place, rich)
    if isinstance(value, ResourceType | ClassType):
        text = reference_text(value)
        if text is not None:
            return text
    return _rich(value, warn, place) if rich else _poor(value, warn, place)


def _text(value: str) -> Any:
    """Text as it is; bytes that are none (see `file`, `base64('decode', …)`) in a form that every reader gives back as they were."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return of_bytes(value.encode("utf-8", "surrogateescape"))
    return value


def _hash(value: dict[Any, Value], warn: Warn, place: str, rich: bool) -> Any:
    if all(key.__class__ is str and key != "__ptype" for key in value):
        return {key: encode(item, warn, f"{place}['{key}']", rich=rich) for key, item in value.items()}
    if rich:
        flat = [encode(part, warn, place) for pair in entries(value) for part in pair]
        return {"__ptype": "Hash", "__pvalue": flat}
    found: dict[str, Any] = {}
    for key, item in entries(value):
        if not isinstance(key, str):
            shown = to_s(key)
            warn(f"{place} contains a hash with {_article(key)} {_name(key)} key. It will be converted to the String '{shown}'")
            key = shown
        found[key] = encode(item, warn, place, rich=False)
    return found


def _rich(value: Value, warn: Warn, place: str) -> Any:
    if value is DEFAULT:
        return {"__ptype": "Default"}
    if isinstance(value, Regexp):
        return {"__ptype": "Regexp", "__pvalue": value.source}
    name = _TEXTUAL.get(value.__class__)
    if name is not None:
        return {"__ptype": name, "__pvalue": to_s(value)}
    if isinstance(value, Sensitive):
        return {"__ptype": "Sensitive", "__pvalue": encode(value.unwrap(), warn, place)}
    if isinstance(value, Deferred):
        arguments = {"arguments": encode(value.arguments, warn, place)} if value.arguments is not None else {}
        return {"__ptype": "Deferred", "name": value.name, **arguments}
    if isinstance(value, Instance):
        return {"__ptype": value.type.name} | {name: encode(item, warn, place) for name, item in value.attributes.items()}
    if isinstance(value, lattice.Type):
        return _type(value, warn, place)
    raise Unsupported(f"{place}: a value of {_name(value)} cannot stand in a catalog")


def _number(low: float, high: float) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if low != -lattice.INF:
        data["from"] = low
    if high != lattice.INF:
        data["to"] = high
    return data


def _size(size: Any) -> dict[str, Any]:
    return {"__ptype": "Pcore::IntegerType", **_number(size[0], lattice.INF if size[1] is None else size[1])}


def _type(value: Any, warn: Warn, place: str) -> Any:
    """A type by its attributes, those left out that are as in the bare type. Source: observed at 7.23."""

    def inner(part: Any) -> Any:
        return _type(part, warn, place)

    data: dict[str, Any] = {"__ptype": f"Pcore::{type(value).__name__}"}
    if isinstance(value, lattice.AliasType):
        return inner(value.definition)
    if isinstance(value, lattice.RangeType):
        data |= _number(value.low, value.high)
    elif isinstance(value, lattice.StringType):
        if value.value is not None:
            data["size_type_or_value"] = value.value
        elif value.size is not None:
            data["size_type_or_value"] = _size(value.size)
    elif isinstance(value, lattice.EnumType):
        data["values"] = list(value.values)
        if value.any_case:
            data["case_insensitive"] = True
    elif isinstance(value, lattice.PatternType):
        data["patterns"] = [{"__ptype": "Pcore::RegexpType", "pattern": each.source} for each in value.patterns]
    elif isinstance(value, lattice.RegexpType):
        if value.regexp is not None:
            data["pattern"] = value.regexp.source
    elif isinstance(value, lattice.ArrayType):
        data |= {"element_type": inner(value.element)} if value.element not in (None, lattice.ANY) else {}
        data |= {"size_type": _size(value.size)} if value.size is not None else {}
    elif isinstance(value, lattice.HashType):
        if not (value.key_type in (None, lattice.ANY) and value.value_type in (None, lattice.ANY)):
            data |= {"key_type": inner(value.key_type or lattice.ANY), "value_type": inner(value.value_type or lattice.ANY)}
        data |= {"size_type": _size(value.size)} if value.size is not None else {}
    elif isinstance(value, lattice.CollectionType):
        data |= {"size_type": _size(value.size)} if value.size is not None else {}
    elif isinstance(value, lattice.StructType):
        data["elements"] = [
            {"__ptype": "Pcore::StructElement", "key_type": inner(each.key_type), "value_type": inner(each.value_type)}
            for each in value.elements
        ]
    elif isinstance(value, lattice.TupleType):
        data["types"] = [inner(each) for each in value.types]
        exact = (len(value.types), len(value.types))
        data |= {"size_type": _size(value.size)} if value.size is not None and tuple(value.size) != exact else {}
    elif isinstance(value, lattice.VariantType):
        data["types"] = [inner(each) for each in value.types]
    elif isinstance(value, lattice.CallableType):
        if value.params is not None:
            data["param_types"] = inner(value.params)
            data["block_type"] = None if value.block is None else inner(value.block)
            data["return_type"] = None if value.returns is None else inner(value.returns)
    elif isinstance(value, lattice.TimeType):
        data |= {"from": encode(value.low, warn, place)} if value.low is not None else {}
        data |= {"to": encode(value.high, warn, place)} if value.high is not None else {}
    elif isinstance(value, lattice.SemVerType):
        data |= {"ranges": [encode(each, warn, place) for each in value.ranges]} if value.ranges else {}
    elif isinstance(value, lattice.SensitiveType | lattice.BooleanType):
        pass
    elif isinstance(value, lattice.InitType):
        data |= {"type": inner(value.type)} if value.type is not None else {}
        data |= {"init_args": [encode(each, warn, place) for each in value.arguments]} if value.arguments else {}
    elif isinstance(value, lattice.Wrapper):
        data |= {"type": inner(value.type)} if value.type is not None else {}
    elif str(value) != value.name:
        raise Unsupported(f"{place}: the type {value} cannot stand in a catalog", hint="Turn it into a String.")
    return data


def _poor(value: Value, warn: Warn, place: str) -> Any:
    if isinstance(value, Sensitive):
        return encode(value.unwrap(), warn, place, rich=False)
    shown = to_s(value)
    if value is DEFAULT:
        warn(f"{place} contains the special value default. It will be converted to the String 'default'")
        return shown
    warn(f"{place} contains {_article(value)} {_name(value)} value. It will be converted to the String '{shown}'")
    return shown


def _name(value: Value) -> str:
    if isinstance(value, lattice.Type):
        return f"{value.name}-Type"
    return "Iterator" if isinstance(value, Iterator) else label(value)


def _article(value: Value) -> str:
    return with_article(_name(value)).split(" ", 1)[0]
