"""JSON and PSON as plain data: strict reading of peers' messages, fast writing."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

import orjson

from ..errors import BadData
from ..names import quoted_for_log

_QUICK = 512 * 1024  # bytes of a text that is read in one step, which holds all threads of a process
MAX_NUMBER = 400  # digits of one number; Python itself stops at 4300, quadratic before that
FREE_VALUES = 200_000  # values that a text of any length may have
BYTES_A_VALUE = 16  # for a longer text each so many bytes allow another one
_WINDOW = 2**16  # bytes whose strings are told apart at once
_BEFORE_VALUES = b",[{"
_NOT_COUNTED = bytes(set(range(256)) - set(b'"' + _BEFORE_VALUES))


def check_values(text: bytes) -> None:
    """
    Refuse a JSON text of more values than its length allows, before they are built: an empty list takes twenty times its bytes.

    Raises:
        BadData: with the limit.
    """
    most = FREE_VALUES + len(text) // BYTES_A_VALUE
    # The cheap count of three bytes rules out nearly all texts; only then are strings told apart.
    if len(text) > most and sum(map(text.count, _BEFORE_VALUES)) >= most and _count_values(text, most) > most:
        limit = f"{FREE_VALUES} and one more for each {BYTES_A_VALUE} bytes"
        raise BadData(f"JSON of {len(text)} bytes may have {most} values ({limit}), and this has more")


def _count_values(text: bytes, most: int) -> int:
    """Return how many values a JSON text has, lists and objects twice; any number above `most` as soon as it is certain."""
    if b"\\" in text:
        # Escaped quotes do not end a string.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    count, inside = 1, 0
    for start in range(0, len(text), _WINDOW):
        pieces = text[start : start + _WINDOW].translate(None, _NOT_COUNTED).split(b'"')
        count += sum(map(len, pieces[inside::2]))
        if count > most:
            break
        inside ^= len(pieces) % 2 == 0
    return count


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    # Parsers disagree on which of two equal keys counts; a check by one must not differ from the use by another.
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadData(f"The key {quoted_for_log(key)} appears twice in one object")
            seen.add(key)
    return members


def _pairs_of_octets(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = _pairs(pairs)
    if len({key.encode("utf-8", "replace") for key in members}) != len(members):
        raise BadData("Two keys of one object differ only in octets that are not UTF-8")
    return members


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadData(f"The number {quoted_for_log(text)} is out of range")
    return number


def _int(text: str) -> int:
    if len(text) > MAX_NUMBER:
        raise BadData("A number is too long")
    return int(text)


def _constant(text: str) -> Any:
    raise BadData(f"{text} is not JSON")


_UNTHREADED = 2047  # bytes that are hashed without a chance for other threads, for which to get it back takes longer than all of it
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a surrogate pair; the other half may stand beside it
_NUMBERS: dict[str, Any] = {"parse_float": _float, "parse_int": _int, "parse_constant": _constant}
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, **_NUMBERS)
_OCTETS_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs_of_octets, **_NUMBERS
)  # such octets become question marks where JSON is written
_OCTET = re.compile("[\ud800-\udfff]")


def loads(body: bytes) -> Any:
    """
    Return the value of a JSON text in UTF-8.

    Stricter than `json.loads`: repeated keys, NaN, Infinity and numbers beyond a float are refused, not
    resolved; so are halves of surrogate pairs, other encodings, a byte order mark, trailing data and nesting that
    exhausts the stack, and more values than `check_values` allows.

    Raises:
        BadData: names the fault, without the text.
    """
    check_values(body)
    try:
        data = _read_canonical(body)
        return _loaded(body.decode("utf-8"), "strict") if data is _OTHER else data
    except UnicodeDecodeError as err:
        raise BadData(f"Not JSON: byte {err.start} is not UTF-8") from err


def loads_pson(body: bytes) -> Any:
    """As `loads`, but strings may hold any bytes: those that are not UTF-8 become surrogate escapes, which `dumps_pson` writes back."""
    check_values(body)
    return loads_trusted(body)


def loads_trusted(body: bytes) -> Any:
    """Do the same as `loads_pson` for text of our own processes: its values are not counted."""
    data = _read_canonical(body)
    return _loaded(body.decode("utf-8", "surrogateescape"), "surrogateescape") if data is _OTHER else data


_OTHER = object()


def _read_canonical(body: bytes) -> Any:
    """
    Return the value of a text that is exactly in the form of `dumps`, as most peers' texts are; _OTHER for any other text, right or wrong.

    orjson takes the last of repeated keys, and a float for a large integer: that would not be written in the same way again.
    """
    if len(body) > _QUICK:
        return _OTHER
    try:
        data = orjson.loads(body)
        # Only a text that comes back identical had no repeated keys and no number that was changed.
        return data if orjson.dumps(data) == body else _OTHER
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return _OTHER


def _loaded(text: str, errors: str) -> Any:
    try:
        halves = _HALF.search(text)
        has_octets = halves or (not text.isascii() and _OCTET.search(text))
        data = (_OCTETS_DECODER if has_octets else _DECODER).decode(text)
        # A surrogate without its partner cannot be written as UTF-8 anywhere later.
        if halves:
            json.dumps(data, ensure_ascii=False).encode("utf-8", errors)
        return data
    except UnicodeEncodeError as err:
        raise BadData("Not JSON: a string holds half of a pair of escapes, which is no character") from err
    except json.JSONDecodeError as err:
        raise BadData(f"Not JSON: {err.msg} (line: {err.lineno}, column: {err.colno})") from err
    except RecursionError as err:
        raise BadData("Not JSON that can be read here: nested too deeply") from err
    except ValueError as err:
        raise BadData(f"Not JSON: {err}") from err


def dumps(data: Any) -> bytes:
    """Return `data` as compact JSON in UTF-8; integers may be of any size, bytes that are not UTF-8 (see `loads_pson`) become `?`."""
    return _dumped(data, "replace")


def dumps_pson(data: Any) -> bytes:
    """Return the same as `dumps`, but surrogate escapes become the bytes that they encode."""
    return _dumped(data, "surrogateescape")


def _dumped(data: Any, errors: str) -> bytes:
    try:
        return orjson.dumps(data)
    except TypeError:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", errors)


_EXACT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def dumps_quickly(data: Any) -> bytes | None:
    """Return compact JSON with null for NaN and infinite numbers; None for data that orjson does not write."""
    try:
        return orjson.dumps(data, option=_EXACT)
    except TypeError:
        return None


def dumps_exactly(data: Any) -> bytes | None:
    """Return compact JSON from which nothing but equal data could be read; None for data of which there is none."""
    text = dumps_quickly(data)
    # What is read is no equal of NaN and infinite numbers; to look for them takes longer.
    return None if text is None or (b"null" in text and orjson.loads(text) != data) else text


def digest(data: Any) -> bytes | None:
    """Return a digest that no other data has; None for data that JSON does not tell from all others."""
    text = dumps_exactly(data)
    if text is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, len(text), _UNTHREADED):
        digest.update(text[start : start + _UNTHREADED])
    return digest.digest()


def dumps_pretty(data: Any) -> bytes:
    """Return `data` as JSON for people: indented by two, ended by a newline."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2).encode("utf-8", "replace") + b"\n"
