"""The members of values, which `value.name` reads without calling a function: attributes of objects, parts of URIs."""

from __future__ import annotations

from typing import Final

from .core import Deferred, Instance, Value
from .uris import URI

WITH_MEMBERS: Final = frozenset((Instance, Deferred, URI))
"""The classes of values that have members."""

_URI_PARTS: Final = frozenset(("scheme", "userinfo", "host", "port", "path", "query", "fragment", "opaque"))


def member(value: Value, name: str) -> Value:
    """Return the member `name` of a value whose class is in WITH_MEMBERS; raise KeyError when it has none of that name."""
    if value.__class__ is Instance:
        if name == "message" and value.type.name == "Error":
            return value.attributes["msg"]
        return value.type.member(value, name)
    if (value.__class__ is URI and name in _URI_PARTS) or (value.__class__ is Deferred and name in ("name", "arguments")):
        part: Value = getattr(value, name)
        return part
    raise KeyError(name)
