"""
Values in a catalog's JSON: what JSON has not becomes a map with `__ptype`, or text where the reader knows no rich data.

Source: language reference 14; protocol reference 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.errors import Unsupported

from .definitions import capital
from .resources import capitalized_type
from .text import to_s
from .types import lattice
from .types.references import ClassType, ResourceType
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
    if kind is str or kind is int or kind is bool or value is None or kind is float:
        return value
    if kind is list:
        return [encode(item, warn, place, rich=rich) for item in value]
    if kind is dict:
        return _hash(value, warn, place, rich)
    if isinstance(value, ResourceType | ClassType):
        text = reference_text(value)
        if text is not None:
            return text
    return _rich(value, warn, place) if rich else _poor(value, warn, place)


def reference_text(value: ResourceType | ClassType) -> str | None:
    """`Type[title]`, as references stand in catalogs; None for the bare types `Resource` and `Class`."""
    if isinstance(value, ClassType):
        return "Class[]" if value.class_name is None else f"Class[{capital(value.class_name)}]"
    if value.type_name is None:
        return None
    return f"{capitalized_type(value.type_name)}[{value.title or ''}]"


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
        return {"__ptype": "Deferred", "name": value.name, "arguments": encode(value.arguments, warn, place)}
    if isinstance(value, Instance):
        return {"__ptype": value.type.name} | {name: encode(item, warn, place) for name, item in value.attributes.items()}
    if isinstance(value, lattice.IntegerType | lattice.FloatType) and hasattr(value, "range"):
        return _number_type(value)
    if isinstance(value, lattice.Type):
        return _type(value, warn, place)
    raise Unsupported(f"{place}: a value of {_name(value)} cannot stand in a catalog")


def _number_type(value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"__ptype": f"Pcore::{type(value).__name__}"}
    low, high = value.range
    if low != -lattice.INF:
        data["from"] = low
    if high != lattice.INF:
        data["to"] = high
    return data


def _type(value: lattice.Type, warn: Warn, place: str) -> Any:
    """A type: by its attributes where it has any, else its class alone."""
    name = type(value).__name__
    data: dict[str, Any] = {"__ptype": f"Pcore::{name}"}
    if str(value) == value.name:
        return data
    raise Unsupported(f"{place}: the type {value} cannot stand in a catalog yet", hint="Turn it into a String.")


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
        return f"Puppet::Pops::Types::P{type(value).__name__}"
    if isinstance(value, Iterator):
        return "Iterator"
    return "Undef" if value is None else type(value).__name__


def _article(value: Value) -> str:
    return "an" if _name(value)[:1] in "AEIOU" else "a"
