"""The forms of answers: JSON in PuppetDB's two layouts, texts, redirections, and arrays of rows as a stream of bounded memory."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from httpd.messages.responses import Response
from shared.data import plainjson

from ..jsontext import Json
from ..queries.batches import Batches

JSON_TYPE = "application/json;charset=utf-8"
TEXT_TYPE = "text/plain;charset=utf-8"
DASHBOARD = "/pdb/dashboard/index.html"
_HELD_BACK = 64 * 1024  # bytes of an array that are collected before it becomes a stream


def pretty_json(value: Any) -> str:
    """Return a value as indented JSON in the layout of the reference: a member of an object is a line, arrays stay on theirs."""
    return "".join(_pretty_parts(value, "\n"))


def _pretty_parts(value: Any, line_start: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        inner = line_start + "  "
        for number, (key, member) in enumerate(value.items()):
            yield f"{',' if number else '{'}{inner}{_scalar(str(key))} : "
            yield from _pretty_parts(member, inner)
        yield f"{line_start}}}" if value else "{ }"
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield ", " if number else "[ "
            yield from _pretty_parts(item, line_start)
        yield " ]" if value else "[ ]"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_response(value: Json | Mapping[str, Any] | Sequence[Any], status: int = 200) -> Response:
    """Return a response with one value, indented."""
    return Response(status, pretty_json(value).encode("utf-8", "replace"), JSON_TYPE)


def compact_response(value: Any, status: int = 200) -> Response:
    """Return a response with one value, without needless blanks."""
    return Response(status, plainjson.dumps(value), JSON_TYPE)


def text_response(status: int, text: str) -> Response:
    """Return a response with a text, which may have several lines."""
    return Response(status, text.encode("utf-8", "replace"), TEXT_TYPE)


def error_response(status: int, message: str) -> Response:
    """Return a response with an error in the form of PuppetDB's answers to commands and to requests for unknown things."""
    return json_response({"error": message}, status)


def dashboard_redirect() -> Response:
    """Return the redirection that all unknown paths below /pdb get."""
    return Response(302, headers={"Location": DASHBOARD})


async def array_response(batches: Batches, *, pretty: bool, headers: Mapping[str, str]) -> Response:
    """
    Return a response with an array of rows, of which only one batch is in memory at a time.

    The first rows are read before there is a response, so that an error of the query can still be one.

    Args:
        batches: The rows, some at a time; closed at the end of the response, or when an error is raised here.
    """
    chunks = _array_chunks(batches, pretty=pretty)
    begin = bytearray()
    async for chunk in chunks:
        begin += chunk
        if len(begin) >= _HELD_BACK:
            return Response(200, b"", JSON_TYPE, headers, chunks=partial(_joined, bytes(begin), chunks), compress_chunks=True)
    return Response(200, bytes(begin), JSON_TYPE, headers)


async def _joined(begin: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield a body whose begin is known already; `rest` is closed."""
    async with aclosing(rest):
        yield begin
        async for chunk in rest:
            yield chunk


async def _array_chunks(batches: Batches, *, pretty: bool) -> AsyncGenerator[bytes, None]:
    """Yield the text of an array, one piece for each batch that is not empty; `batches` are closed."""
    opening, separator, closing = ("[ ", ", ", " ]") if pretty else ("[", ",", "]")
    before = opening
    async with aclosing(batches):
        async for batch in batches:
            if not batch:
                continue
            text = separator.join(map(pretty_json, batch)).encode("utf-8", "replace") if pretty else plainjson.dumps(batch)[1:-1]
            yield before.encode() + text
            before = separator
    yield (closing if before == separator else opening.rstrip() + closing).encode()
