"""PostgreSQL's operations on jsonb, for JSON texts in SQLite: order, containment, and places inside a value."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ..jsontext import Json, dump_json, load_stored

_BIAS = 1 << 31


def register_json_functions(create_function: Callable[..., Any]) -> None:
    """Make the functions known to a connection whose `create_function` this is."""
    create_function("json_lookup", 2, _json_lookup, deterministic=True)
    create_function("json_lookup", 3, _json_lookup, deterministic=True)
    create_function("json_lookup", 4, _json_lookup, deterministic=True)
    create_function("json_plain_text", 1, _json_plain_text, deterministic=True)
    create_function("json_sort_key", 1, _json_sort_key, deterministic=True)
    create_function("json_contains", 2, _json_contains, deterministic=True)
    create_function("path_sort_key", 1, _path_sort_key, deterministic=True)


def sort_key_of(value: Any) -> bytes:
    """
    Return bytes whose order is jsonb's: null, strings, numbers, booleans, arrays, objects, each kind by its values.

    Arrays and objects with fewer members come first; an empty array that is not a member of anything comes before everything.
    """
    return b"\x00" if value == [] and isinstance(value, list) else _encoded(value)


def _encoded(value: Any) -> bytes:
    if value is None:
        return b"\x01"
    if isinstance(value, str):
        return b"\x02" + _encoded_text(value)
    if isinstance(value, bool):
        return b"\x04\x01" if value else b"\x04\x00"
    if isinstance(value, int | float):
        return b"\x03" + _encoded_number(Decimal(repr(value)))
    if isinstance(value, list):
        return b"\x05" + len(value).to_bytes(4, "big") + b"".join(map(_encoded, value))
    members = sorted((len(key.encode()), key.encode(), key) for key in value)
    return b"\x06" + len(value).to_bytes(4, "big") + b"".join(_encoded_text(key) + _encoded(value[key]) for _, _, key in members)


def _encoded_text(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\0", b"\0\xff") + b"\0\0"


def _encoded_number(number: Decimal) -> bytes:
    if not number.is_finite():
        return b"\x02" if number > 0 else b"\x00"
    if not number:
        return b"\x01\x80"
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    assert isinstance(exponent, int)
    magnitude = (len(text) + exponent + _BIAS).to_bytes(4, "big") + text.rstrip("0").encode() + b"\0"
    return b"\x01\x40" + bytes(255 - byte for byte in magnitude) if sign else b"\x01\xc0" + magnitude


def _parse(text: str | float) -> Json:
    """Return the value of a JSON text. SQLite passes a number as one where an expression has made it of JSON."""
    if not isinstance(text, str):
        return text
    return text[1:-1] if text[:1] == '"' and "\\" not in text else load_stored(text.encode())


def _json_sort_key(text: str | None) -> bytes | None:
    return None if text is None else sort_key_of(_parse(text))


def _json_plain_text(text: str | float | None) -> str | None:
    """Return a value as PostgreSQL's `#>> '{}'` does: a string without quotes, everything else as jsonb writes it; None for null."""
    if not isinstance(text, str):
        return None if text is None else str(text)
    if text[:1] not in ('"', "[", "{"):
        return None if text == "null" else text
    value = _parse(text)
    return value if isinstance(value, str) else _jsonb_text(value)


def _jsonb_text(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_jsonb_text, value))}]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return f"{{{', '.join(f'{_jsonb_text(key)}: {_jsonb_text(value[key])}' for key in keys)}}}"
    return dump_json(value).decode()


def _json_contains(outer: str | None, inner: str) -> bool | None:
    """Return whether one JSON value contains another, as PostgreSQL's `@>` says."""
    return None if outer is None else _contains(_parse(outer), _parse(inner))


def _contains(outer: Json, inner: Json) -> bool:
    if isinstance(inner, dict):
        return isinstance(outer, dict) and all(key in outer and _contains(outer[key], member) for key, member in inner.items())
    if isinstance(inner, list):
        return isinstance(outer, list) and all(any(_contains(member, wanted) for member in outer) for wanted in inner)
    return isinstance(outer, bool) == isinstance(inner, bool) and outer == inner


def _json_lookup(text: str | None, path: str, start: int = 0, stop: int | None = None) -> str | None:
    """Return the JSON below the keys of a path (a JSON array), as PostgreSQL's `#>` does: digits are the index of a list, too."""
    if text is None:
        return None
    value: Any = load_stored(text.encode())
    keys: Any = load_stored(path.encode())
    for key in keys[start:stop]:
        if isinstance(value, dict):
            value = value.get(str(key), _MISSING)
        elif isinstance(value, list) and str(key).isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
        if value is _MISSING:
            return None
    return dump_json(value).decode()


_MISSING = object()


def _path_sort_key(path: str) -> bytes:
    """Return bytes whose order is that of a path's elements as texts."""
    elements = load_stored(path.encode())
    assert isinstance(elements, list)
    return b"\x01".join(str(element).encode() for element in elements)
