"""The frames of JSON and bytes that a master and its compiling processes exchange over a pipe."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, BinaryIO

from shared.data import plainjson
from shared.errors import (
    BadData,
    BadRequest,
    CompileError,
    ConfigError,
    EvaluationError,
    Location,
    NotFound,
    ParseError,
    PuppetError,
    Unsupported,
)

HEAD = struct.Struct(">II")  # octets of the JSON, octets of the bytes behind it
MAX_FRAME = 1 << 30  # octets

_ERRORS: dict[str, type[PuppetError]] = {
    cls.__name__: cls
    for cls in (BadData, BadRequest, CompileError, ConfigError, EvaluationError, NotFound, ParseError, PuppetError, Unsupported)
}


def pack(message: dict[str, Any], body: bytes = b"") -> bytes:
    """Return one frame; BadData when the message is nested too deeply for one."""
    return pack_before(message, len(body)) + body


def pack_before(message: dict[str, Any], size: int) -> bytes:
    """Return a frame up to its bytes, of which this many follow."""
    try:
        text = plainjson.dumps_pson(message)
    except RecursionError as err:
        raise BadData("Facts, or other inputs of a catalog, are nested too deeply") from err
    return HEAD.pack(len(text), size) + text


async def receive(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """Return the next frame; IncompleteReadError when the other side has ended."""
    size, more = HEAD.unpack(await reader.readexactly(HEAD.size))
    # A damaged header must not make the master allocate gigabytes.
    if size + more > MAX_FRAME:
        raise PuppetError(f"A frame of {size + more} octets is too large")
    message: dict[str, Any] = plainjson.loads_trusted(await reader.readexactly(size))
    return message, await reader.readexactly(more) if more else b""


def read_with_body(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """
    Return the next frame's message and the bytes behind it; None at the end.

    Raises:
        BadData: The frame cannot be parsed. It has been taken from the stream, so the next one can be read.
    """
    head = stream.read(HEAD.size)
    # The pipe was closed: the master has ended, and so must the worker.
    if len(head) < HEAD.size:
        return None
    size, more = HEAD.unpack(head)
    text = stream.read(size)
    body = stream.read(more) if more else b""
    message: dict[str, Any] = plainjson.loads_trusted(text)
    return message, body


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next frame's message as `read_with_body` does, without the bytes behind it."""
    frame = read_with_body(stream)
    return frame[0] if frame is not None else None


def plain_error(err: PuppetError) -> dict[str, Any]:
    """Return an error as plain data: its kind, or the nearest known one."""
    # The nearest class that both sides know; subclasses may carry fields that JSON cannot.
    kind = next((cls.__name__ for cls in type(err).__mro__ if cls.__name__ in _ERRORS), "PuppetError")
    where = err.where
    return {
        "error": kind,
        "message": err.message,
        "hint": err.hint,
        "legacy": err.legacy,
        "node": getattr(err, "node", ""),
        "where": [where.file, where.line, where.column] if where else None,
    }


def error_of(data: dict[str, Any]) -> PuppetError:
    """Return the error that `plain_error` made plain."""
    where = Location(*data["where"]) if data.get("where") else None
    err = _ERRORS.get(str(data.get("error")), PuppetError)(str(data.get("message")), where=where, hint=str(data.get("hint") or ""))
    err.legacy = str(data.get("legacy") or "")
    if isinstance(err, CompileError):
        err.node = str(data.get("node") or "")
    return err
