"""Values of the language as JSON for Ruby, and back; what JSON does not know are objects with the key `$`."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..compiler.callables.signatures import Closure
from ..compiler.catalog.resources import capitalized_type
from ..compiler.types.base import PuppetType
from ..compiler.types.references import ClassType, ResourceType
from ..compiler.values.core import DEFAULT, Binary, Instance, Iterator, Sensitive, Value, entries, key_of
from ..compiler.values.text import to_s

__all__ = ["dumped", "loaded", "of_first_kind"]

_SAME = frozenset((type(None), bool, int))
_FLAGS = ((4, "m"), (1, "i"), (2, "x"))  # Ruby's numbers, and letters in Ruby's order


def dumped(value: Value, keep: Callable[[Any], int]) -> Any:
    """
    A value for Ruby. `keep` gives the number of what stays here, and is only named there.

    Raises:
        EvaluationError: an integer that is none of the language's.
    """
    kind = value.__class__
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind in _SAME:
        return value
    if kind is list:
        return [dumped(item, keep) for item in value]
    if kind is dict:
        if all(key.__class__ is str and key.isascii() for key in value) and "$" not in value:
            return {key: dumped(item, keep) for key, item in value.items()}
        return {"$": "hash", "v": [[dumped(key, keep), dumped(item, keep)] for key, item in entries(value)]}
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "v": str(value)}
    return _special(value, keep)


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:  # octets that are no UTF-8
        return {"$": "bytes", "v": base64.b64encode(value.encode("utf-8", "surrogateescape")).decode()}
    return value


def _special(value: Value, keep: Callable[[Any], int]) -> Any:
    if value is DEFAULT:
        return {"$": "default"}
    if isinstance(value, Sensitive):
        return {"$": "sensitive", "v": dumped(value.unwrap(), keep)}
    if isinstance(value, Regexp):
        return {"$": "regexp", "v": value.source}
    if isinstance(value, Binary):
        return {"$": "binary", "v": str(value)}
    if isinstance(value, Iterator):
        return [dumped(item, keep) for item in value]
    if isinstance(value, Named):
        return {"$": "reference", "id": keep(value.value), "text": value.text, "type": value.type, "title": value.title}
    if isinstance(value, Closure):
        return {"$": "block", "id": keep(value)}
    text = to_s(value)
    if isinstance(value, ResourceType) and value.title is not None:
        return {"$": "reference", "id": keep(value), "text": text, "type": value.type_name, "title": value.title}
    if isinstance(value, ClassType) and value.class_name is not None:
        return {"$": "reference", "id": keep(value), "text": text, "type": "Class", "title": value.class_name}
    behind = isinstance(value, Instance) and value.behind is not None
    return {
        "$": "Object" if behind else "Type" if isinstance(value, PuppetType) else value.__class__.__name__,
        "id": keep(value),
        "text": text,
    }


def loaded(data: Any, kept: Callable[[int], Any]) -> Value:
    """
    The value that Ruby gave. `kept` knows what is only named: of ours, or a block of Ruby's.

    Raises:
        EvaluationError: it is none.
    """
    kind = data.__class__
    if kind is list:
        return [loaded(item, kept) for item in data]
    if kind is not dict:
        return data
    what = data.get("$")
    if what is None:
        return {key: loaded(item, kept) for key, item in data.items()}
    try:
        return _loaders[what](data, kept)
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationError("Ruby answered a value that is none") from error


def _regexp(data: Any, kept: Callable[[int], Any]) -> Regexp:
    on = "".join(letter for flag, letter in _FLAGS if data["flags"] & flag)
    off = "".join(letter for flag, letter in _FLAGS if not data["flags"] & flag)
    return Regexp(f"(?{on}{'-' if off else ''}{off}:{data['v']})" if on else data["v"])


_loaders: dict[str, Callable[[Any, Callable[[int], Any]], Value]] = {
    "hash": lambda data, kept: {key_of(loaded(key, kept)): loaded(item, kept) for key, item in data["v"]},
    "bytes": lambda data, kept: base64.b64decode(data["v"]).decode("utf-8", "surrogateescape"),
    "default": lambda data, kept: DEFAULT,
    "float": lambda data, kept: float(data["v"]),
    "sensitive": lambda data, kept: Sensitive(loaded(data["v"], kept)),
    "regexp": _regexp,
    "binary": lambda data, kept: Binary(base64.b64decode(data["v"])),
    "kept": lambda data, kept: kept(data["id"]),
    "proc": lambda data, kept: kept(-data["id"])(data["parameters"], data["rest"]),
}


class Named:
    """A reference as functions of the 3.x API get it."""

    __slots__ = ("text", "title", "type", "value")

    def __init__(self, value: ResourceType | ClassType) -> None:
        self.value = value
        if isinstance(value, ClassType):
            self.type, self.title = "Class", capitalized_type(value.class_name or "")
        else:
            self.type, self.title = str(value.type_name), value.title or ""
        self.text = f"{self.type}[{self.title}]"


def of_first_kind(value: Value, *, inner: bool = False) -> Value:
    """An argument as functions of the 3.x API get it: what 3.x had no class for is text, undef outside of collections is ''."""
    if isinstance(value, ResourceType | ClassType) and str(value).endswith("]"):
        return Named(value)
    if isinstance(value, list):
        return [of_first_kind(item, inner=True) for item in value]
    if isinstance(value, dict):
        return {key: of_first_kind(item, inner=True) for key, item in value.items()}
    if value is None:
        return None if inner else ""
    if isinstance(value, Iterator):
        raise EvaluationError("Use of an Iterator is not supported here")
    if value is DEFAULT or isinstance(value, str | int | float | PuppetType | Sensitive | Closure):
        return value
    return to_s(value)
