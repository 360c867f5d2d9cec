"""Rich data (`__ptype`) turned into what peers understand that know JSON only. Source: protocol reference 3.4."""

from __future__ import annotations

from typing import Any

TYPE, VALUE = "__ptype", "__pvalue"
_TEXT = frozenset({"Timestamp", "Timespan", "SemVer", "SemVerRange", "URI", "Binary", "Symbol"})


def is_rich(value: Any) -> bool:
    """Whether anything in `value` needs rich data."""
    if isinstance(value, dict):
        return TYPE in value or any(is_rich(each) for each in value.values())
    return isinstance(value, list) and any(is_rich(each) for each in value)


def degraded(value: Any) -> Any:
    """`value` with everything that JSON cannot say as text: `/re/`, `default`, base64; Sensitive as what it hides."""
    if isinstance(value, list):
        return [degraded(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TYPE)
    if kind is None:
        return {key: degraded(each) for key, each in value.items()}
    inner = value.get(VALUE)
    if kind == "Default":
        return "default"
    if kind == "Regexp":
        return f"/{inner}/"
    if kind == "Sensitive":
        return degraded(inner)
    if kind in _TEXT:
        return str(inner)
    if kind == "Hash" and isinstance(inner, list):
        return {_key(degraded(key)): degraded(each) for key, each in zip(inner[::2], inner[1::2], strict=False)}
    return str(kind)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else ("true" if value is True else "false" if value is False else str(value))
