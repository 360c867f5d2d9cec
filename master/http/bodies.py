"""Request bodies: read within a size and a rate, unpacked within the same size, whole or as a stream."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from aiohttp.web_protocol import RequestPayloadError

from shared.errors import BadData, BadRequest, PuppetError, TooLarge, UnsupportedMediaType
from shared.names import shown

from .connection import HttpRequest
from .limits import HttpLimits

_STEP = 256 * 1024  # bytes that unpacking gives at a time
_CODINGS = {"": "", "identity": "", "gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}


class TooSlow(PuppetError):
    """A body that does not arrive in time."""

    status = 408


def coding_of(request: HttpRequest) -> str:
    """How the body is packed: `gzip`, `deflate` or ''; UnsupportedMediaType for anything else, also for two at once."""
    values = request.headers.getall("Content-Encoding", [])
    name = ",".join(values).strip().lower()
    if name not in _CODINGS:
        raise UnsupportedMediaType(f"The Content-Encoding {shown(name)} is not supported", hint="gzip, deflate and identity are.")
    return _CODINGS[name]


class Inflater:
    """Unpacks a body piece by piece. `feed` gives the pieces, `finish` checks that it was all."""

    def __init__(self, coding: str) -> None:
        self.coding = coding
        self._object = zlib.decompressobj(31) if coding == "gzip" else None

    def feed(self, data: bytes) -> list[bytes]:
        """The unpacked pieces of at most _STEP bytes; BadData when `data` is not what it claims."""
        pieces: list[bytes] = []
        try:
            while data:
                if self._object is None:  # deflate: zlib's form, or bare as some clients send it
                    self._object = zlib.decompressobj(15 if _has_zlib_header(data) else -15)
                if self._object.eof:
                    raise BadData(f"There is something behind the {self.coding} data")
                pieces.append(self._object.decompress(data, _STEP))
                data = self._object.unconsumed_tail or self._object.unused_data
        except zlib.error as err:
            raise BadData(f"The body is not {self.coding} data: {err}") from err
        return pieces

    def finish(self) -> None:
        """BadData when the data ended too early."""
        if self._object is None or not self._object.eof:
            raise BadData(f"The {self.coding} data is cut off")


def _has_zlib_header(data: bytes) -> bool:
    return len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] * 256 + data[1]) % 31 == 0


def unpack(data: bytes, coding: str, limit: int) -> bytes:
    """`data` unpacked; TooLarge as soon as it is more than `limit` bytes. Long data: call it in a thread."""
    found = bytearray()
    inflater = Inflater(coding)
    view = memoryview(data)
    for start in range(0, len(view), 1024):
        for piece in inflater.feed(bytes(view[start : start + 1024])):
            found += piece
            if len(found) > limit:
                raise too_large(limit)
    inflater.finish()
    return bytes(found)


def too_large(limit: int) -> TooLarge:
    """What a body over its limit gets."""
    return TooLarge(f"The body is larger than {limit} bytes", hint="The limits are settings of the master: max_..._body.")


async def packed_chunks(request: HttpRequest, limit: int, limits: HttpLimits) -> AsyncIterator[bytes]:
    """
    The body's bytes as they arrive, still packed.

    Raises:
        TooLarge: more than `limit`; said before reading when the length is announced.
        TooSlow: slower than the minimum rate, after the grace time; only time spent waiting for the peer counts.
        BadRequest: broken framing.
    """
    announced = request.content_length
    if announced is not None and announced > limit:
        raise too_large(limit)
    if request.headers.get("Expect", "").lower() == "100-continue" and not request.sent_continue:
        request.sent_continue = True
        request.connection.send_continue()
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


async def read_body(request: HttpRequest, limit: int, limits: HttpLimits) -> bytes:
    """The body, unpacked, of at most `limit` bytes in either form; errors as `packed_chunks` and `unpack`."""
    coding = coding_of(request)
    body = bytearray()
    async for chunk in packed_chunks(request, limit, limits):
        body += chunk
    if not coding or not body:
        return bytes(body)
    return await asyncio.to_thread(unpack, bytes(body), coding, limit)


async def body_chunks(request: HttpRequest, limit: int, limits: HttpLimits) -> AsyncIterator[bytes]:
    """The body, unpacked, piece by piece in constant memory; errors as `read_body`."""
    coding = coding_of(request)
    if not coding:
        async for chunk in packed_chunks(request, limit, limits):
            yield chunk
        return
    inflater, size = Inflater(coding), 0
    async for chunk in packed_chunks(request, limit, limits):
        for start in range(0, len(chunk), 1024):
            for piece in inflater.feed(chunk[start : start + 1024]):
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                yield piece
    inflater.finish()
