"""
Rich data in catalogs: values that JSON has no form for, as maps with `__ptype` and `__pvalue`.

Only a fixed list of kinds is made into values; everything else stays text or is refused by name. Nothing a peer sends chooses a
Python class. Source: protocol reference 3.4.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import BadData, Unsupported
from ..names import quoted_for_log
from .typenotation import PREFIX as TYPE_PREFIX
from .typenotation import type_notation

PTYPE = "__ptype"
PVALUE = "__pvalue"
_TEXTUAL = frozenset(("Symbol", "Timestamp", "Timespan", "SemVer", "SemVerRange", "URI"))
MAX_DEPTH = 100  # levels of nesting


@dataclass(frozen=True, slots=True)
class WireSensitive:
    """A Sensitive value; its text is a redaction mark."""

    value: Any

    def __str__(self) -> str:
        return "Sensitive [value redacted]"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class WireDeferred:
    """A function call that the agent makes just before it applies the catalog."""

    name: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class WireRegexp:
    """A regular expression, without its slashes."""

    pattern: str

    def __str__(self) -> str:
        return f"/{self.pattern}/"


class WireType(str):
    """
    A type of the language, with the text that represents it.

    Attributes:
        expanded: the same type without names of aliases.
    """

    __slots__ = ("expanded",)
    expanded: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> WireType:
        """Return the type that a catalog has as data; raise BadData or Unsupported like `type_notation`."""
        wire_type = cls(type_notation(data))
        wire_type.expanded = type_notation(data, aliases=False)
        return wire_type


def read(value: Any, depth: int = 0) -> Any:
    """
    Return `value` from a catalog with every rich value in it made: Sensitive, Deferred, Regexp, types, bytes for Binary, text for others.

    Raises:
        BadData: a rich value that is not formed as its kind demands, or nesting beyond MAX_DEPTH.
        Unsupported: a kind that is not read here.
    """
    if depth > MAX_DEPTH:
        raise BadData(f"Data nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list):
        return [read(item, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    if PTYPE not in value:
        return {key: read(item, depth + 1) for key, item in value.items()}
    return _rich(str(value[PTYPE]), value, depth)


def _rich(kind: str, value: Mapping[str, Any], depth: int) -> Any:
    inner = value.get(PVALUE)
    if kind == "Sensitive":
        return WireSensitive(read(inner, depth + 1))
    if kind == "Deferred":
        arguments = value.get("arguments") or []
        if not isinstance(value.get("name"), str) or not isinstance(arguments, list):
            raise BadData("A Deferred value without a function's name")
        return WireDeferred(value["name"], tuple(read(item, depth + 1) for item in arguments))
    if kind == "Default":
        return "default"
    if kind in _TEXTUAL and isinstance(inner, str):
        return inner
    if kind == "Regexp" and isinstance(inner, str):
        return WireRegexp(inner)
    if kind == "Binary" and isinstance(inner, str):
        return _octets(inner)
    if kind == "Hash" and isinstance(inner, list) and len(inner) % 2 == 0:
        items = [read(item, depth + 1) for item in inner]
        return {_key(key): item for key, item in zip(items[::2], items[1::2], strict=True)}
    if kind.startswith(TYPE_PREFIX):
        return WireType.of(value)
    raise Unsupported(f"Rich data of the kind {quoted_for_log(kind)} cannot be applied", hint="Pass it as a string in the manifest.")


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def has_deferred(value: Any) -> bool:
    """Return whether some Deferred is in `value`."""
    if isinstance(value, WireDeferred):
        return True
    if isinstance(value, WireSensitive):
        return has_deferred(value.value)
    if isinstance(value, Mapping):
        return any(has_deferred(item) for item in value.values())
    return isinstance(value, list | tuple) and any(has_deferred(item) for item in value)


def without_sensitive(value: Any) -> tuple[Any, bool]:
    """Return `value` without any Sensitive around or in it, types as text, and whether there was something Sensitive."""
    if isinstance(value, WireType):
        return str(value), False
    if isinstance(value, WireSensitive):
        return without_sensitive(value.value)[0], True
    if isinstance(value, list | tuple):
        parts = [without_sensitive(item) for item in value]
        return [part for part, _ in parts], any(secret for _, secret in parts)
    if isinstance(value, Mapping):
        pairs = {key: without_sensitive(item) for key, item in value.items()}
        return {key: part for key, (part, _) in pairs.items()}, any(secret for _, secret in pairs.values())
    return value, False


def sensitive_in(value: Any) -> list[Any]:
    """Return the values inside the Sensitive values in `value`, including those in arguments of Deferred values."""
    if isinstance(value, WireSensitive):
        return [without_sensitive(value.value)[0], *sensitive_in(value.value)]
    if isinstance(value, WireDeferred):
        return sensitive_in(value.arguments)
    if isinstance(value, Mapping):
        return sensitive_in([*value, *value.values()])
    return [secret for item in value for secret in sensitive_in(item)] if isinstance(value, list | tuple) else []


def of_bytes(data: bytes) -> dict[str, str]:
    """Return bytes as a Binary: those of the manifest's own, and a text that is not UTF-8, such as a file that a manifest read."""
    return {PTYPE: "Binary", PVALUE: base64.b64encode(data).decode("ascii")}


def with_octets(value: Any) -> tuple[Any, bool]:
    """
    Return `value` for a reader without rich data that can read any octets, and whether it contains such as are not UTF-8.

    A Binary of octets that are not UTF-8 becomes text with surrogate escapes: what a manifest reads from such a file is not
    distinguished from a Binary of its own, which Puppet sends as base64. Other values stay.

    Raises:
        BadData: a Binary that is not base64.
    """
    if isinstance(value, list):
        parts = [with_octets(item) for item in value]
        return [part for part, _ in parts], any(is_changed for _, is_changed in parts)
    if not isinstance(value, dict):
        return value, False
    if value.get(PTYPE) == "Binary" and isinstance(value.get(PVALUE), str):
        octets = _octets(value[PVALUE])
        try:
            octets.decode()
        except UnicodeDecodeError:
            return octets.decode("utf-8", "surrogateescape"), True
        return value, False
    pairs = {key: with_octets(item) for key, item in value.items()}
    return {key: part for key, (part, _) in pairs.items()}, any(is_changed for _, is_changed in pairs.values())


def _octets(text: str) -> bytes:
    """Return what a Binary stands for; BadData."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as err:
        raise BadData(f"A Binary value that is not base64: {err}") from err


def is_rich(value: Any) -> bool:
    """Return whether anything in `value` needs rich data."""
    if isinstance(value, dict):
        return PTYPE in value or any(is_rich(item) for item in value.values())
    return isinstance(value, list) and any(is_rich(item) for item in value)


def as_plain_json(value: Any) -> Any:
    """Return `value` with text for everything that JSON lacks: `/re/`, `default`, base64; a Sensitive becomes its content."""
    if isinstance(value, list):
        return [as_plain_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(PTYPE)
    if kind is None:
        return {key: as_plain_json(item) for key, item in value.items()}
    inner = value.get(PVALUE)
    if kind == "Default":
        return "default"
    if kind == "Regexp":
        return f"/{inner}/"
    if kind == "Sensitive":
        return as_plain_json(inner)
    if kind in _TEXTUAL or kind == "Binary":
        return str(inner)
    if kind == "Hash" and isinstance(inner, list):
        return {_as_key(as_plain_json(key)): as_plain_json(item) for key, item in zip(inner[::2], inner[1::2], strict=False)}
    return str(kind)


def _as_key(value: Any) -> str:
    return value if isinstance(value, str) else ("true" if value is True else "false" if value is False else str(value))
