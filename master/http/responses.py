"""An answer as plain data, and how it is written to a connection."""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from .connection import HttpRequest

log = logging.getLogger("puppet.http")

_IN_A_THREAD_FROM = 64 * 1024  # bytes; packing less takes under a millisecond
_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Response:
    """
    `content_type` None: no such header. `chunks`: a long body instead of `body`, `size` its length in bytes when known.

    `close`: the connection ends with this answer.
    """

    status: int = 200
    body: bytes = b""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Callable[[], AsyncIterator[bytes]] | None = None
    size: int | None = None
    close: bool = False


def text_response(status: int, message: str, content_type: str | None = "text/plain") -> Response:
    """A short text, on one line whatever it quotes."""
    return Response(status, message.encode("utf-8", "backslashreplace"), content_type)


def negotiate_coding(accept_encoding: str) -> str:
    """The packing a client asks for: `gzip`, `deflate`, or '' for none; `q` only counts when it is 0."""
    asked = {}
    for item in accept_encoding.lower().split(","):
        name, _, parameter = item.partition(";")
        asked[name.strip()] = parameter.strip().replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    for name in ("gzip", "x-gzip", "deflate"):
        if asked.get(name):
            return name.removeprefix("x-")
    return ""


def compress(body: bytes, how: str) -> bytes:
    """`body` in the coding `gzip` or `deflate` (zlib's form, which is what Ruby's clients read)."""
    return gzip.compress(body, _LEVEL, mtime=0) if how == "gzip" else zlib.compress(body, _LEVEL)


async def send(request: HttpRequest, answer: Response, *, compress_from: int) -> tuple[web.StreamResponse, int]:
    """
    Write `answer`; gives aiohttp's response and the number of body bytes.

    A long body that breaks off cuts the connection: the client must never take a part for the whole.
    """
    headers = dict(answer.headers)
    if answer.content_type is not None:
        headers["Content-Type"] = answer.content_type
    request.untyped = answer.content_type is None
    if answer.chunks is not None and request.method != "HEAD":
        return await _send_stream(request, answer, headers)
    body = answer.body
    how = negotiate_coding(request.headers.get("Accept-Encoding", "")) if len(body) >= compress_from else ""
    if how and request.method != "HEAD":
        body = await asyncio.to_thread(compress, body, how) if len(body) >= _IN_A_THREAD_FROM else compress(body, how)
        headers |= {"Content-Encoding": how, "Vary": "Accept-Encoding"}
    response = web.Response(status=answer.status, headers=headers, body=body)
    _close_if_due(request, response, answer)
    await response.prepare(request)
    await response.write_eof()
    return response, 0 if request.method == "HEAD" else len(body)


async def _send_stream(request: HttpRequest, answer: Response, headers: dict[str, str]) -> tuple[web.StreamResponse, int]:
    """The first piece is asked for before anything is written: what fails there can still be told."""
    assert answer.chunks is not None
    chunks = answer.chunks()
    try:
        chunk = await anext(chunks, None)
        response = web.StreamResponse(status=answer.status, headers=headers)
        if answer.size is not None:
            response.content_length = answer.size
        _close_if_due(request, response, answer)
        await response.prepare(request)
        try:
            sent = await _send_chunks(response, chunk, chunks, answer.size)
        except BaseException:
            request.connection.abort()
            raise
        await response.write_eof()
        return response, sent
    finally:
        close = getattr(chunks, "aclose", None)  # an async generator holds its file until then
        if close is not None:
            await close()


async def _send_chunks(response: web.StreamResponse, first: bytes | None, chunks: AsyncIterator[bytes], size: int | None) -> int:
    """Write all pieces; their number of bytes. ConnectionError when it is not `size`, since the length is announced already."""
    sent, chunk = 0, first
    while chunk is not None:
        sent += len(chunk)
        if size is not None and sent > size:
            break
        await response.write(chunk)
        chunk = await anext(chunks, None)
    if size is not None and sent != size:
        log.warning("A body of %d bytes has become another while it was sent; the connection is cut", size)
        raise ConnectionError("The body is not as long as announced")
    return sent


def _close_if_due(request: HttpRequest, response: web.StreamResponse, answer: Response) -> None:
    if answer.close or request.version < (1, 1) or not request.keep_alive:
        response.force_close()
