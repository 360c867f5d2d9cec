"""Values of the language as JSON for Ruby, and back; a value that JSON does not have is an object with the key `$`."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any, Protocol

from language.callables.signatures import Closure
from language.erb.runtime.values import RubySymbol
from language.functions.old_api import OldApiReference
from language.host import LookupMethods
from language.types.attribute_references import as_attribute
from language.types.kinds.references import ClassType, ResourceEntryType
from language.types.kinds.scalars import EnumType
from language.types.named.aliases import AliasType
from language.values.core import DEFAULT, Binary, ForeignObject, Instance, Iterator, PuppetType, Sensitive, Value, entries, key_of
from language.values.text import inspect, to_s
from shared.errors import EvaluationError
from shared.regexps import Regexp
from shared.ruby.texts import dump_text

_PLAIN_TYPES = frozenset((type(None), bool, int))
_COLLECTIONS = (list, dict)
_FLAGS = ((4, "m"), (1, "i"), (2, "x"))  # Ruby's numbers, and letters in Ruby's order


class Objects(Protocol):
    """Objects of one side that the other refers to by a number."""

    def register(self, value: Any) -> int:
        """Return a number for a value that stays in this process."""

    def registered(self, number: int) -> Any:
        """Return the value of a number."""

    def block(self, number: int, parameters: int, rest: bool) -> Closure:
        """Return a lambda that calls a block of Ruby's; `rest`: it takes any number of arguments beyond its `parameters`."""

    def keep_own(self, value: Value, number: int) -> Value:
        """Return a placeholder for an object of Ruby's; when it is passed back, Ruby uses its own object of that number."""

    def cache_number(self, cache: object) -> int:
        """Return the number by which Ruby knows the cache of a back end."""

    def own_number(self, value: Value) -> int | None:
        """Return Ruby's number for a collection; None when Ruby has none of its own for it."""


def dump_value(value: Value | OldApiReference, objects: Objects) -> Any:
    """Return a value as JSON data for Ruby."""
    if value.__class__ is str:
        return value if value.isascii() else dump_text(value)
    if value.__class__ in _PLAIN_TYPES:
        return value
    if value.__class__ in _COLLECTIONS and (number := objects.own_number(value)) is not None:
        return {"$": "held", "id": number}
    if value.__class__ is list:
        return [dump_value(item, objects) for item in value]
    if value.__class__ is dict:
        if all(key.__class__ is str and key.isascii() for key in value) and "$" not in value:
            return {key: dump_value(item, objects) for key, item in value.items()}
        return {"$": "hash", "v": [[dump_value(key, objects), dump_value(item, objects)] for key, item in entries(value)]}
    if value.__class__ is float:
        return value if math.isfinite(value) else {"$": "float", "v": str(value)}
    return _dump_special(value, objects)


def _dump_special(value: Value | OldApiReference, objects: Objects) -> Any:
    if value is DEFAULT:
        return {"$": "default"}
    if isinstance(value, RubySymbol):  # in a value that a translated template has set
        return {"$": "symbol", "v": value.name}
    if isinstance(value, ForeignObject):
        return {"$": "symbol", "v": value.text} if value.number is None else {"$": "held", "id": value.number}
    if isinstance(value, Sensitive):
        return {"$": "sensitive", "v": dump_value(value.unwrap(), objects)}
    if isinstance(value, Regexp):
        return {"$": "regexp", "v": value.source}
    if isinstance(value, Binary):
        return {"$": "binary", "v": str(value)}
    if isinstance(value, Iterator):
        return [dump_value(item, objects) for item in value]
    if isinstance(value, OldApiReference):
        return _reference(value.value, as_attribute(value.value), value.text, (value.type, value.title), objects)
    if isinstance(value, Closure):
        return {"$": "block", "id": objects.register(value)}
    text = to_s(value)
    if isinstance(value, ResourceEntryType) and value.title is not None:
        return _reference(value, value, text, (str(value.type_name), value.title), objects)
    if isinstance(value, ClassType) and value.class_name is not None:
        return _reference(value, value, text, ("Class", value.class_name), objects)
    resolved = value.definition if isinstance(value, AliasType) else value
    if isinstance(resolved, EnumType) and resolved.values:
        return {"$": "enum", "id": objects.register(value), "text": text, "values": list(resolved.values)}
    behind = value.behind if isinstance(value, Instance) else None
    if isinstance(behind, LookupMethods) and behind.ruby_cache is not None:
        cache, names = objects.cache_number(behind.ruby_cache), (behind.environment_name, behind.module_name)
        return {"$": "lookup", "id": objects.register(value), "text": text, "cache": cache, "names": names}
    return {
        "$": "Object" if behind is not None else "Type" if isinstance(value, PuppetType) else value.__class__.__name__,
        "id": objects.register(value),
        "text": text,
    }


def _reference(value: Value, shown: Value, text: str, ref: tuple[str, str], objects: Objects) -> dict[str, Any]:
    """
    Return the data of a reference; `shown` is the text of `inspect`, which for a reference in an attribute also has the attribute of its
    title.
    """
    number = objects.register(value)
    return {"$": "reference", "id": number, "text": text, "inspected": inspect(shown), "type": ref[0], "title": ref[1]}


def load_value(data: Any, objects: Objects) -> Value:
    """
    Return the value for JSON data from Ruby.

    Raises:
        EvaluationError: the data is not that of a value.
    """
    kind = data.__class__
    if kind is list:
        return [load_value(item, objects) for item in data]
    if kind is not dict:
        plain: Value = data
        return plain
    tag = data.get("$")
    if tag is None:
        return {key: load_value(item, objects) for key, item in data.items()}
    try:
        loader = _loaders[tag]
        return loader(data, objects)
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationError("Ruby answered an invalid value") from error


def _load_regexp(data: Any, objects: Objects) -> Regexp:
    on = "".join(letter for flag, letter in _FLAGS if data["flags"] & flag)
    off = "".join(letter for flag, letter in _FLAGS if not data["flags"] & flag)
    return Regexp(f"(?{on}{'-' if off else ''}{off}:{data['v']})" if on else data["v"])


_loaders: dict[str, Callable[[Any, Objects], Value]] = {
    "hash": lambda data, objects: {key_of(load_value(key, objects)): load_value(item, objects) for key, item in data["v"]},
    "bytes": lambda data, objects: base64.b64decode(data["v"]).decode("utf-8", "surrogateescape"),
    "default": lambda data, objects: DEFAULT,
    "float": lambda data, objects: float(data["v"]),
    "sensitive": lambda data, objects: Sensitive(load_value(data["v"], objects)),
    "regexp": _load_regexp,
    "binary": lambda data, objects: Binary(base64.b64decode(data["v"])),
    "kept": lambda data, objects: objects.registered(data["id"]),
    "proc": lambda data, objects: objects.block(data["id"], data["parameters"], data["rest"]),
    "symbol": lambda data, objects: ForeignObject("Symbol", data["v"]),
    "object": lambda data, objects: objects.keep_own(ForeignObject(data["class"], data["text"], data["id"]), data["id"]),
    "own": lambda data, objects: objects.keep_own(load_value(data["v"], objects), data["id"]),
}
