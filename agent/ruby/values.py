"""Values of a catalog as JSON for Ruby, and back; a value that JSON does not have is an object with the key `$`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from shared.errors import ResourceError
from shared.ruby.texts import dump_text


def dump_value(value: Any) -> Any:
    """Return a value as JSON data for Ruby."""
    if isinstance(value, str):
        return value if value.isascii() else dump_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [dump_value(item) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key.isascii() and key != "$" for key in value):
            return {key: dump_value(item) for key, item in value.items()}
        return {"$": "hash", "v": [[dump_value(key), dump_value(item)] for key, item in value.items()]}
    if isinstance(value, bytes):
        return {"$": "bytes", "v": base64.b64encode(value).decode()}
    return str(value)


def load_value(data: Any) -> Any:
    """
    Return the value of JSON data from Ruby.

    Raises:
        ResourceError: it is not that of a value.
    """
    if isinstance(data, list):
        return [load_value(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$" not in data:
        return {key: load_value(item) for key, item in data.items()}
    try:
        if data["$"] == "bytes":
            return base64.b64decode(data["v"]).decode("utf-8", "replace")
        if data["$"] == "hash":
            return {_key(load_value(key)): load_value(item) for key, item in data["v"]}
    except (KeyError, TypeError, ValueError) as err:
        raise ResourceError("Ruby answered an invalid value") from err
    raise ResourceError("Ruby answered an invalid value")


def _key(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict) else value
