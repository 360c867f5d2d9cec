"""Values of the language as JSON for Ruby, and back; a value that JSON does not have is an object with the key `$`."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp
from shared.ruby.texts import dump_text

from ..compiler.callables.signatures import Closure
from ..compiler.erb.runtime.values import RubySymbol
from ..compiler.functions.old_api import OldApiReference
from ..compiler.types.kinds.references import ClassType, ResourceEntryType
from ..compiler.values.core import DEFAULT, Binary, Instance, Iterator, Sensitive, Value, entries, key_of
from ..compiler.values.puppet_type import PuppetType
from ..compiler.values.text import to_s

_PLAIN_TYPES = frozenset((type(None), bool, int))
_FLAGS = ((4, "m"), (1, "i"), (2, "x"))  # Ruby's numbers, and letters in Ruby's order


def dump_value(value: Value | OldApiReference, register: Callable[[Any], int]) -> Any:
    """
    Return a value as JSON data for Ruby.

    Args:
        register: returns a number for a value that stays in this process; Ruby refers to it by that number.
    """
    if value.__class__ is str:
        return value if value.isascii() else dump_text(value)
    if value.__class__ in _PLAIN_TYPES:
        return value
    if value.__class__ is list:
        return [dump_value(item, register) for item in value]
    if value.__class__ is dict:
        if all(key.__class__ is str and key.isascii() for key in value) and "$" not in value:
            return {key: dump_value(item, register) for key, item in value.items()}
        return {"$": "hash", "v": [[dump_value(key, register), dump_value(item, register)] for key, item in entries(value)]}
    if value.__class__ is float:
        return value if math.isfinite(value) else {"$": "float", "v": str(value)}
    return _dump_special(value, register)


def _dump_special(value: Value | OldApiReference, register: Callable[[Any], int]) -> Any:
    if value is DEFAULT:
        return {"$": "default"}
    if isinstance(value, RubySymbol):  # in a value that a translated template has set
        return {"$": "symbol", "v": value.name}
    if isinstance(value, Sensitive):
        return {"$": "sensitive", "v": dump_value(value.unwrap(), register)}
    if isinstance(value, Regexp):
        return {"$": "regexp", "v": value.source}
    if isinstance(value, Binary):
        return {"$": "binary", "v": str(value)}
    if isinstance(value, Iterator):
        return [dump_value(item, register) for item in value]
    if isinstance(value, OldApiReference):
        return {"$": "reference", "id": register(value.value), "text": value.text, "type": value.type, "title": value.title}
    if isinstance(value, Closure):
        return {"$": "block", "id": register(value)}
    text = to_s(value)
    if isinstance(value, ResourceEntryType) and value.title is not None:
        return {"$": "reference", "id": register(value), "text": text, "type": value.type_name, "title": value.title}
    if isinstance(value, ClassType) and value.class_name is not None:
        return {"$": "reference", "id": register(value), "text": text, "type": "Class", "title": value.class_name}
    is_object = isinstance(value, Instance) and value.behind is not None
    return {
        "$": "Object" if is_object else "Type" if isinstance(value, PuppetType) else value.__class__.__name__,
        "id": register(value),
        "text": text,
    }


def load_value(data: Any, registered: Callable[[int], Any]) -> Value:
    """
    Return the value that JSON data from Ruby stands for.

    Args:
        registered: returns what a number refers to: a value of this process, or for a negative number what makes a block of Ruby's.
    Raises:
        EvaluationError: the data stands for no value.
    """
    kind = data.__class__
    if kind is list:
        return [load_value(item, registered) for item in data]
    if kind is not dict:
        plain: Value = data
        return plain
    tag = data.get("$")
    if tag is None:
        return {key: load_value(item, registered) for key, item in data.items()}
    try:
        return _loaders[tag](data, registered)
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationError("Ruby answered a value that is none") from error


def _load_regexp(data: Any, registered: Callable[[int], Any]) -> Regexp:
    on = "".join(letter for flag, letter in _FLAGS if data["flags"] & flag)
    off = "".join(letter for flag, letter in _FLAGS if not data["flags"] & flag)
    return Regexp(f"(?{on}{'-' if off else ''}{off}:{data['v']})" if on else data["v"])


_loaders: dict[str, Callable[[Any, Callable[[int], Any]], Value]] = {
    "hash": lambda data, registered: {key_of(load_value(key, registered)): load_value(item, registered) for key, item in data["v"]},
    "bytes": lambda data, registered: base64.b64decode(data["v"]).decode("utf-8", "surrogateescape"),
    "default": lambda data, registered: DEFAULT,
    "float": lambda data, registered: float(data["v"]),
    "sensitive": lambda data, registered: Sensitive(load_value(data["v"], registered)),
    "regexp": _load_regexp,
    "binary": lambda data, registered: Binary(base64.b64decode(data["v"])),
    "kept": lambda data, registered: registered(data["id"]),
    "proc": lambda data, registered: registered(-data["id"])(data["parameters"], data["rest"]),
}
