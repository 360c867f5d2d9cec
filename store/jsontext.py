"""JSON as texts: integers keep all their digits, and characters that no database stores are replaced when a text is read."""

from __future__ import annotations

import json
import re
from typing import NoReturn, TypeAlias

import orjson

from shared.data.plainjson import check_values
from shared.errors import BadData

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A value as JSON has it. Integers keep all their digits."""

MAX_DEPTH = 250
"""Lists and objects are nested no deeper than this; orjson writes 254 levels."""

_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19  # in a text whose digits are zeros; a regular expression takes ten times as long to find it
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def load_json(data: bytes) -> Json:
    """
    Return the value of a JSON text in UTF-8; raise ValueError if it is faulty or has too many values.

    U+FFFD replaces each byte that is not UTF-8, each NUL and each surrogate without its partner, as PuppetDB does: PostgreSQL stores no
    text with these.
    """
    try:
        check_values(data)
    except BadData as err:
        raise ValueError(err.message) from err
    return load_stored(data)


def load_stored(data: bytes) -> Json:
    """Do the same as `load_json` for JSON that the store has written: its values are not counted."""
    # orjson makes a float of an integer of more than 64 bits.
    if b"\\u0000" not in data and _LONG_NUMBER not in data.translate(_AS_ZEROS):
        try:
            value: Json = orjson.loads(data)
        except orjson.JSONDecodeError:
            pass  # the slow parser accepts some texts that orjson refuses, and else says why not
        else:
            if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
                _check_depth(value)
            return value
    try:
        value = json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse_constant, parse_float=_finite_float)
    except RecursionError as err:
        raise ValueError("the value is nested too deeply") from err
    return _storable(value, 0)


def _check_depth(value: Json) -> None:
    try:
        orjson.dumps(value)
    except TypeError as err:
        raise ValueError("the value is nested too deeply") from err


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return number


def _storable(value: Json, depth: int) -> Json:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list | dict) and depth == MAX_DEPTH:
        raise ValueError("the value is nested too deeply")
    if isinstance(value, list):
        return [_storable(element, depth + 1) for element in value]
    if isinstance(value, dict):
        return {_UNSTORABLE.sub("\ufffd", key): _storable(member, depth + 1) for key, member in value.items()}
    return value


def dump_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, compact, the keys of objects sorted, integers with all their digits."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
