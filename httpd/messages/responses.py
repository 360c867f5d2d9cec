"""A response as plain data, and how it is written to a connection."""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from aiohttp import web_response

from shared.errors import PuppetError, Unavailable
from shared.wire.deflated import DeflatedText

from ..connections.connection import HttpRequest

log = logging.getLogger("puppet.http")

B = TypeVar("B", bytes, DeflatedText)

_IN_A_THREAD_FROM = 64 * 1024  # bytes; packing less takes under a millisecond
CODINGS = ("gzip", "x-gzip", "deflate")
DEFLATE_FIRST = ("deflate", "gzip", "x-gzip")
_LEVEL = 3  # of zlib: a catalog of 600 kB takes 1.5 ms and 38 kB, 2.8 ms and 35 kB at level 5, 4.0 ms and 33 kB at 6


@dataclass(frozen=True, slots=True)
class Response:
    """
    The response to a request.

    Attributes:
        content_type: None: the response has no such header.
        chunks: Returns a long body piece by piece, instead of `body`.
        size: The length of `chunks` in bytes; None: not known.
        compress_chunks: Whether `chunks`, whose size is not announced, are compressed for a client that asks for it.
        close: Whether the connection ends with this response.
    """

    status: int = 200
    body: bytes | DeflatedText = b""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Callable[[], AsyncIterator[bytes]] | None = None
    size: int | None = None
    compress_chunks: bool = False
    close: bool = False


def one_line(message: str) -> str:
    """Return a message as peers print it: on one line, without characters that would end a line or move a cursor."""
    return "".join(c if c.isprintable() else " " if c in "\t\n\r" else f"\\u{{{ord(c):x}}}" for c in message)


def text_response(status: int, message: str, content_type: str | None = "text/plain") -> Response:
    """Return a response with a text for its body."""
    return Response(status, message.encode("utf-8", "backslashreplace"), content_type)


def error_headers(error: PuppetError) -> dict[str, str]:
    """Return the headers that a client needs to act on an error, such as when to come back."""
    return {"Retry-After": str(error.retry_after)} if isinstance(error, Unavailable) else {}


def error_response(error: PuppetError) -> Response:
    """Return a response with an error's status and its message as text."""
    return replace(text_response(error.status, one_line(error.message)), headers=error_headers(error))


def incident_response(number: str) -> Response:
    """Return the response to an unforeseen error: nothing but a number to look for in the log."""
    return replace(text_response(500, f"Internal Server Error (incident {number})"), close=True)


def negotiate_coding(accept_encoding: str, offered: Sequence[str] = CODINGS) -> str:
    """Return the first coding of those offered that a client takes, '' for none; `q` counts only when it is 0."""
    accepted = {}
    for item in accept_encoding.lower().split(","):
        name, _, parameter = item.partition(";")
        accepted[name.strip()] = parameter.strip().replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    for name in offered:
        if accepted.get(name):
            return name.removeprefix("x-")
    return ""


async def encode_body(body: bytes | DeflatedText, accept_encoding: str) -> tuple[bytes, str]:
    """
    Return a body in a coding that the client accepts, and the coding's name, or ''. Stored deflated bodies are sent as they are if
    possible.
    """
    if isinstance(body, DeflatedText):
        if body.rest and negotiate_coding(accept_encoding, DEFLATE_FIRST) == "deflate":
            return body.deflated(), "deflate"
        body = await _in_a_thread_if_long(bytes, body)
    coding = negotiate_coding(accept_encoding)
    return (await _in_a_thread_if_long(lambda text: compress(text, coding), body) if coding else body), coding


async def _in_a_thread_if_long(convert: Callable[[B], bytes], body: B) -> bytes:
    return await asyncio.to_thread(convert, body) if len(body) >= _IN_A_THREAD_FROM else convert(body)


def compress(body: bytes, coding: str) -> bytes:
    """Return `body` in the coding `gzip` or `deflate` (zlib's form, which Ruby's clients read)."""
    return gzip.compress(body, _LEVEL, mtime=0) if coding == "gzip" else zlib.compress(body, _LEVEL)


async def compressed_chunks(chunks: AsyncIterator[bytes], coding: str) -> AsyncIterator[bytes]:
    """Yield a long body in the coding `gzip` or `deflate`, in constant memory; close `chunks` at the end."""
    compressor = zlib.compressobj(_LEVEL, wbits=31 if coding == "gzip" else 15)
    try:
        async for chunk in chunks:
            packed = await asyncio.to_thread(compressor.compress, chunk) if len(chunk) >= _IN_A_THREAD_FROM else compressor.compress(chunk)
            if packed:
                yield packed
        yield compressor.flush()
    finally:
        await close_chunks(chunks)


async def close_chunks(chunks: AsyncIterator[bytes]) -> None:
    """Close an iterator of a body that may not have been read to its end: an async generator holds its file until then."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


async def send(request: HttpRequest, response: Response) -> tuple[web_response.StreamResponse, int]:
    """
    Write `response`; return it in the form of aiohttp, and the number of body bytes.

    A long body that breaks off cuts the connection: the client must never take a part for all of it.
    """
    headers = dict(response.headers)
    if response.content_type is not None:
        headers["Content-Type"] = response.content_type
    request.untyped = response.content_type is None
    if response.chunks is not None and request.method != "HEAD":
        return await _send_stream(request, response, headers)
    is_worthwhile = len(response.body) >= request.connection.limits.compress_from and request.method != "HEAD"
    body, coding = await encode_body(response.body, request.headers.get("Accept-Encoding", "") if is_worthwhile else "")
    if coding:
        headers |= {"Content-Encoding": coding, "Vary": "Accept-Encoding"}
    written = web_response.Response(status=response.status, headers=headers, body=body)
    _close_if_due(request, written, response)
    await written.prepare(request)
    await written.write_eof()
    return written, 0 if request.method == "HEAD" else len(body)


async def _send_stream(request: HttpRequest, response: Response, headers: dict[str, str]) -> tuple[web_response.StreamResponse, int]:
    """Write a long body; its first piece is read before anything is written, so that an error there can still be a response."""
    assert response.chunks is not None
    chunks = response.chunks()
    if response.compress_chunks and (coding := negotiate_coding(request.headers.get("Accept-Encoding", ""))):
        chunks = compressed_chunks(chunks, coding)
        headers |= {"Content-Encoding": coding, "Vary": "Accept-Encoding"}
    try:
        chunk = await anext(chunks, None)
        written = web_response.StreamResponse(status=response.status, headers=headers)
        if response.size is not None:
            written.content_length = response.size
        _close_if_due(request, written, response)
        await written.prepare(request)
        try:
            sent = await _send_chunks(written, chunk, chunks, response.size)
        except BaseException as err:
            request.connection.abort()
            if isinstance(err, PuppetError):
                log.warning("Broke off the answer to %s: %s", request.client.address or "the socket", one_line(str(err)))
                raise ConnectionError("The answer broke off") from err
            raise
        await written.write_eof()
        return written, sent
    finally:
        await close_chunks(chunks)


async def _send_chunks(written: web_response.StreamResponse, first: bytes | None, chunks: AsyncIterator[bytes], size: int | None) -> int:
    """Write all pieces and return their number of bytes; raise ConnectionError when it is not `size`, which is announced already."""
    sent, chunk = 0, first
    while chunk is not None:
        sent += len(chunk)
        if size is not None and sent > size:
            break
        await written.write(chunk)
        chunk = await anext(chunks, None)
    if size is not None and sent != size:
        log.warning("A body of %d bytes has changed while it was sent; the connection is cut", size)
        raise ConnectionError("The body is not as long as announced")
    return sent


def _close_if_due(request: HttpRequest, written: web_response.StreamResponse, response: Response) -> None:
    if response.close or request.version < (1, 1) or not request.keep_alive:
        written.force_close()
