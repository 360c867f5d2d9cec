"""Request bodies: read within a size and a rate, decompressed within the same size, as one text or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp.web_protocol import RequestPayloadError

from shared.errors import BadRequest, PuppetError, TooLarge, UnsupportedMediaType
from shared.names import quoted_for_log
from shared.wire.inflate import Inflater, content_coding

from ..connections.connection import HttpRequest


class TooSlow(PuppetError):
    """A body that does not arrive in time."""

    status = 408


def coding_of(request: HttpRequest) -> str:
    """Return how the body is compressed, `gzip`, `deflate` or ''; raise UnsupportedMediaType for anything else, also for two at once."""
    header = ",".join(request.headers.getall("Content-Encoding", []))
    coding = content_coding(header)
    if coding is None:
        raise UnsupportedMediaType(
            f"The Content-Encoding {quoted_for_log(header.strip().lower())} is not supported", hint="gzip, deflate and identity are."
        )
    return coding


def unpack(data: bytes, coding: str, limit: int) -> bytes:
    """Return `data` decompressed; raise TooLarge as soon as it is more than `limit` bytes. Long data: call it in a thread."""
    unpacked = bytearray()
    inflater = Inflater(coding)
    for piece in inflater.feed(data):
        unpacked += piece
        if len(unpacked) > limit:
            raise too_large(limit)
    inflater.finish()
    return bytes(unpacked)


def too_large(limit: int) -> TooLarge:
    """Return the error for a body over its limit."""
    return TooLarge(f"The body is larger than {limit} bytes", hint="The limits are settings of the master: max_..._body.")


async def packed_chunks(request: HttpRequest, limit: int) -> AsyncIterator[bytes]:
    """
    Yield the body's bytes as they arrive, still compressed.

    Raises:
        TooLarge: The body is longer than `limit`; raised before reading when the length is announced.
        TooSlow: It is slower than the minimum rate, after the grace time; only time spent waiting for the peer counts.
        BadRequest: Its framing is broken.
    """
    announced = request.content_length
    if announced is not None and announced > limit:
        raise too_large(limit)
    if request.headers.get("Expect", "").lower() == "100-continue" and not request.sent_continue:
        request.sent_continue = True
        request.connection.send_continue()
    limits = request.connection.limits
    clock = asyncio.get_running_loop().time
    size, waited = 0, 0.0
    while True:
        patience = limits.body_timeout + size / limits.body_rate - waited
        started = clock()
        try:
            async with asyncio.timeout(max(patience, 0.001)):
                chunk = await request.content.readany()
        except TimeoutError as err:
            raise TooSlow("The body does not arrive in time") from err
        except RequestPayloadError as err:
            raise BadRequest("The body's framing is broken") from err
        if not chunk:
            return
        waited += clock() - started
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        yield chunk


async def read_body(request: HttpRequest, limit: int) -> bytes:
    """Return the body, decompressed, of at most `limit` bytes in either form; errors as `packed_chunks` and `unpack`."""
    coding = coding_of(request)
    body = bytearray()
    async for chunk in packed_chunks(request, limit):
        body += chunk
    if not coding or not body:
        return bytes(body)
    return await asyncio.to_thread(unpack, bytes(body), coding, limit)


async def body_chunks(request: HttpRequest, limit: int) -> AsyncIterator[bytes]:
    """Yield the body, decompressed, piece by piece in constant memory; errors as `read_body`."""
    coding = coding_of(request)
    if not coding:
        async for chunk in packed_chunks(request, limit):
            yield chunk
        return
    inflater, size = Inflater(coding), 0
    async for chunk in packed_chunks(request, limit):
        for piece in inflater.feed(chunk):
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            yield piece
    inflater.finish()
