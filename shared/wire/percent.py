"""
Percent escapes of long texts, decoded piece by piece.

One step over a body of megabytes would hold all threads of a process for as long as it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

_PIECE = 64 * 1024  # bytes


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield `data` in pieces of at most 64 KiB, none of which ends within an escape."""
    start = 0
    while start < len(data):
        end = start + _PIECE
        if end < len(data) and (escape := data.rfind(b"%", end - 2, end)) >= 0:
            end = escape
        yield data[start:end]
        start = end


def decode_percent(data: bytes) -> bytes:
    """Return `data` percent-decoded once; what is no escape stays as it is."""
    return b"".join(map(unquote_to_bytes, pieces(data)))
