"""Queries as texts in JSON: reading them, and PuppetDB's messages for faulty ones."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from shared.data.plainjson import check_values
from shared.errors import BadData, BadRequest

from ...jsontext import Json
from ...queries.language.messages import show_value

_BLANKS = re.compile(r"\s*")
_TOKEN = re.compile(r"\w+")
_EXPECTED = "was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"


def read_query(text: str) -> Json:
    """Return the query of a text in JSON; None for an empty text. Raise BadRequest for text that is not JSON, and for two queries."""
    try:
        check_values(text.encode("utf-8", "surrogatepass"))
    except BadData as err:
        raise BadRequest(f"Json parse error: {err.message}") from err
    start = _skip_blanks(text, 0)
    if start == len(text):
        return None
    query, end = _decode(text, start)
    rest = _skip_blanks(text, end)
    if rest < len(text):
        extra, _ = _decode(text, rest)
        found = json.dumps(extra, ensure_ascii=False, separators=(",", ":"))
        raise BadRequest(f"Only one query may be sent in a request. Found JSON ({found}) after the query {show_value(query)}")
    return query


def _skip_blanks(text: str, start: int) -> int:
    match = _BLANKS.match(text, start)
    return match.end() if match else start


def _decode(text: str, start: int) -> tuple[Json, int]:
    try:
        value, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text, start)
    except json.JSONDecodeError as err:
        raise _parse_error(text, err) from err
    except RecursionError as err:
        raise BadRequest("Json parse error: the query is nested too deeply") from err
    except ValueError as err:
        raise BadRequest(f"Json parse error: {err}") from err
    return value, end


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_error(text: str, err: json.JSONDecodeError) -> BadRequest:
    """Return the error for a text that is not JSON, with a mark below the place."""
    token = _TOKEN.match(text, err.pos)
    opened = _open_brackets(text)
    place = err.pos
    if token:
        place, reason = token.end(), f"Unrecognized token '{token[0]}': {_EXPECTED}"
    elif err.pos >= len(text) and opened:
        line, column = _line_and_column(text, opened[-1])
        name = "Array" if text[opened[-1]] == "[" else "Object"
        marker = f"start marker at [Source: (StringReader); line: {line}, column: {column}]"
        reason = f"Unexpected end-of-input: expected close marker for {name} ({marker})"
    else:
        reason = err.msg
    line, column = _line_and_column(text, place)
    shown = text.split("\n")[line - 1]
    return BadRequest(f"Json parse error at line {line}, column {column}:\n\n{shown}\n{' ' * max(column - 2, 0)}^\n\n{reason}")


def _line_and_column(text: str, place: int) -> tuple[int, int]:
    """Return the line and column of a character, both from 1 on."""
    before = text[:place]
    return before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1


_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def _open_brackets(text: str) -> list[int]:
    """Return the places of brackets that are opened and not closed."""
    places: list[int] = []
    for match in _PARTS.finditer(text):
        if match[0] in ("[", "{"):
            places.append(match.start())
        elif match[0] in ("]", "}") and places:
            places.pop()
    return places
