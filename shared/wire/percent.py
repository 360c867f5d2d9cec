"""
Percent escapes of long texts, decoded piece by piece.

One step over a body of megabytes would hold all threads of a process for as long as it takes.
"""

from __future__ import annotations

import re
from binascii import a2b_qp
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

_PIECE = 64 * 1024  # bytes
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_SAVED = len("%41") - len("A")


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
    """Return `data` percent-decoded once; other text is unchanged."""
    return b"".join([unquote_to_bytes(piece) if (decoded := _decoded(piece)) is None else decoded for piece in pieces(data)])


def decode_valid_percent(data: bytes) -> bytes | None:
    """Return `data` percent-decoded once; None when one of its percent signs begins no escape."""
    decoded = []
    for piece in pieces(data):
        text = _decoded(piece)
        if text is None:
            return None
        decoded.append(text)
    return b"".join(decoded)


def _decoded(piece: bytes) -> bytes | None:
    """
    Return a piece decoded; None when one of its percent signs begins no escape.

    Quoted-printable is the same with another sign, and the standard library reads it in a twentieth of the time. A sign with its two
    digits makes the text shorter by two bytes. Any other one does so only before the end of a line, and is not handed over there.
    """
    escapes = piece.count(b"%")
    if not escapes:
        return piece
    if b"\n" in piece or b"\r" in piece:
        return None if _BROKEN.search(piece) else unquote_to_bytes(piece)
    decoded = a2b_qp(piece.replace(b"=", b"=3D").replace(b"%", b"="))
    return decoded if len(decoded) == len(piece) - _SAVED * escapes else None
