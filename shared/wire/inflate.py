"""Compressed bodies of HTTP messages, decompressed piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ..errors import BadData

_STEP = 256 * 1024  # bytes of a piece
_CODINGS = {"": "", "identity": "", "gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}


def content_coding(header: str) -> str | None:
    """Return the coding that a Content-Encoding header names: `gzip`, `deflate` or '' for none; None for any other, and for two."""
    return _CODINGS.get(header.strip().lower())


class Inflater:
    """
    Decompresses one body.

    Args:
        coding: `gzip` or `deflate`; the latter in zlib's form, or bare as some peers send it.
        ignore_rest: Whether bytes behind the compressed data are dropped, and not an error.
    """

    def __init__(self, coding: str, *, ignore_rest: bool = False) -> None:
        self.coding = coding
        self._ignore_rest = ignore_rest
        self._decoder = zlib.decompressobj(31) if coding == "gzip" else None
        self._start = b""  # of deflate data, until its form is known

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of `data`, each of bounded size; raise BadData when it is not compressed as it claims."""
        if self._decoder is None:
            data = self._start = self._start + data
            if len(data) < 2:
                return
            self._decoder = zlib.decompressobj(15 if _has_zlib_header(data) else -15)
        while data:
            if self._decoder.eof:
                if self._ignore_rest:
                    return
                raise BadData(f"There is something behind the {self.coding} data")
            try:
                piece = self._decoder.decompress(data, _STEP)
            except zlib.error as err:
                raise BadData(f"The body is not {self.coding} data: {err}") from err
            data = self._decoder.unconsumed_tail or self._decoder.unused_data
            yield piece

    def finish(self) -> None:
        """Raise BadData when the data ended too early."""
        if self._decoder is None or not self._decoder.eof:
            raise BadData(f"The {self.coding} data is cut off")


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and (data[0] * 256 + data[1]) % 31 == 0
