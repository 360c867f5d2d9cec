"""
Values in a catalog's JSON: values that JSON lacks become maps with `__ptype`, or text for a reader without rich data.

Source: language reference 14; protocol reference 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.data.richdata import PTYPE, PVALUE, of_bytes
from shared.errors import EvaluationError, Unsupported
from shared.regexps import Regexp

from ..types.attribute_references import AttributeClassReference, AttributeReference
from ..types.kinds.objects import ObjectType
from ..types.kinds.references import reference_text
from ..types.named.aliases import AliasType
from ..values.core import DEFAULT, Binary, Deferred, ForeignObject, Instance, Iterator, PuppetType, Sensitive, Value, entries, key_of
from ..values.labels import ruby_class, with_article
from ..values.text import inspect, to_s
from ..values.times import Timespan, Timestamp
from ..values.uris import URI
from ..values.versions import SemVer, SemVerRange
from .pcore import encode_type

Warn = Callable[[str], None]
_TEXTUAL = {Timestamp: "Timestamp", Timespan: "Timespan", SemVer: "SemVer", SemVerRange: "SemVerRange", URI: "URI", Binary: "Binary"}
_READERS: dict[str, Callable[[str], Value]] = {
    **{kind.__name__: kind.parse for kind in (Timestamp, Timespan, SemVer, SemVerRange, URI)},
    "Binary": Binary.from_base64,
    "Regexp": Regexp,
}


def encode(value: Value, warn: Warn, place: str, *, rich: bool = True, as_text: bool = True) -> Any:
    """
    Return `value` as plain data.

    Args:
        place: names it in warnings (`Notify[a]['message']`).
        as_text: references become text; they do not where they are hidden in something sensitive.
    """
    if value.__class__ is str:
        return value if value.isascii() or not rich else _text(value)
    kind = value.__class__
    if kind is int or kind is bool or value is None or kind is float:
        return value
    if value.__class__ is list:
        return [encode(item, warn, f"{place}[{index}]", rich=rich, as_text=as_text) for index, item in enumerate(value)]
    if value.__class__ is dict:
        return _hash(value, warn, place, rich, as_text)
    if as_text and isinstance(value, AttributeReference | AttributeClassReference):
        text = reference_text(value)
        if text is not None:
            return text
    if isinstance(value, ForeignObject):
        return _text_of_object(value, warn, place)
    return _rich(value, warn, place) if rich else _poor(value, warn, place)


def decode(data: Any) -> Value:
    """Return the value that `encode` has made plain data of, with rich data; references are text. Unsupported for types and objects."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        value: Value = data
        return value
    if PTYPE not in data:
        return {key: decode(item) for key, item in data.items()}
    kind: str = data[PTYPE]
    inner: Any = data.get(PVALUE)
    match kind:
        case "Sensitive":
            return Sensitive(decode(inner))
        case "Deferred":
            return Deferred(data["name"], [decode(item) for item in data["arguments"]] if "arguments" in data else None)
        case "Default":
            return DEFAULT
        case "Hash":
            parts = [decode(part) for part in inner]
            return {key_of(key): item for key, item in zip(parts[::2], parts[1::2], strict=True)}
    if kind not in _READERS:
        raise Unsupported(f"A value of the kind {kind} cannot be collected")
    return _READERS[kind](inner)


def _text_of_object(value: ForeignObject, warn: Warn, place: str) -> str:
    if value.ruby_class == "Integer":
        number = int(value.text)
        limit = "max" if number > 0 else "min"
        raise EvaluationError(f"Use of a Ruby Integer outside of Puppet Integer {limit} range, got '{number:#x}'")
    if value.ruby_class != "Symbol":
        warn(f"{place} contains {with_article(value.ruby_class)} value. It will be converted to the String '{value.text}'")
    return value.text


def _text(value: str) -> Any:
    """Return text unchanged, and bytes that are not valid text (see `file`, `base64('decode', …)`) as a Binary."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return of_bytes(value.encode("utf-8", "surrogateescape"))
    return value


def _hash(value: dict[Any, Value], warn: Warn, place: str, rich: bool, as_text: bool) -> Any:
    pairs = [(_key(key) if as_text else key, item) for key, item in entries(value)]
    if all(key.__class__ is str and key != "__ptype" for key, _ in pairs):
        return {key: encode(item, warn, f"{place}['{key}']", rich=rich, as_text=as_text) for key, item in pairs}
    if rich:
        flat = [encode(part, warn, place, as_text=as_text) for pair in pairs for part in pair]
        return {"__ptype": "Hash", "__pvalue": flat}
    data: dict[str, Any] = {}
    for key, item in pairs:
        if key is DEFAULT:
            key = "default"
        elif not isinstance(key, str):
            text = inspect(key) if isinstance(key, list | dict) else to_s(key)
            warn(f"{place} contains a hash with {_article(key)} {_name(key)} key. It will be converted to the String '{text}'")
            key = text
        data[key] = encode(item, warn, place, rich=False, as_text=as_text)
    return data


def _key(key: Value) -> Value:
    if isinstance(key, ForeignObject):
        return key.text
    text = reference_text(key) if isinstance(key, AttributeReference | AttributeClassReference) else None
    return key if text is None else text


def _rich(value: Value, warn: Warn, place: str) -> Any:
    if value is DEFAULT:
        return {"__ptype": "Default"}
    if isinstance(value, Regexp):
        return {"__ptype": "Regexp", "__pvalue": value.flagged_source}
    name = _TEXTUAL.get(value.__class__)
    if name is not None:
        return {"__ptype": name, "__pvalue": to_s(value)}
    if isinstance(value, Sensitive):
        return {"__ptype": "Sensitive", "__pvalue": encode(value.unwrap(), warn, place, as_text=False)}
    if isinstance(value, Deferred):
        arguments = {"arguments": encode(value.arguments, warn, place)} if value.arguments is not None else {}
        return {"__ptype": "Deferred", "name": value.name, **arguments}
    if isinstance(value, Instance):
        return {"__ptype": value.type.name} | {name: encode(item, warn, place) for name, item in value.type.init_hash(value).items()}
    if isinstance(value, PuppetType):
        try:
            return encode_type(value, lambda part: encode(part, warn, place))
        except Unsupported as error:
            raise Unsupported(f"{place}: {error.message}", hint=error.hint) from error
    raise Unsupported(f"{place}: a value of {_name(value)} cannot stand in a catalog")


def _poor(value: Value, warn: Warn, place: str) -> Any:
    if isinstance(value, Sensitive):
        # The agent has to know that it is sensitive, with or without rich data.
        return {"__ptype": "Sensitive", "__pvalue": encode(value.unwrap(), warn, place, rich=False, as_text=False)}
    text = to_s(value)
    if value is DEFAULT:
        warn(f"{place} contains the special value default. It will be converted to the String 'default'")
        return text
    warn(f"{place} contains {_article(value)} {_name(value)} value. It will be converted to the String '{text}'")
    return text


def _name(value: Value) -> str:
    if isinstance(value, PuppetType):
        kind = "Object" if isinstance(value, ObjectType) else "TypeAlias" if isinstance(value, AliasType) else value.name
        return f"{kind}-Type"
    return "Iterator" if isinstance(value, Iterator) else ruby_class(value)


def _article(value: Value) -> str:
    return with_article(_name(value)).split(" ", 1)[0]
