"""Bodies and headers of answers: decompressed within a limit, dates and seconds read."""

from __future__ import annotations

import zlib
from email.utils import parsedate_to_datetime

from shared.errors import BadData, TooLarge
from shared.names import shown


class Inflater:
    """Puts a body together, decompressing it, and never holds more than `limit` bytes of it."""

    def __init__(self, encoding: str, limit: int) -> None:
        self.kept = bytearray()
        self.limit = limit
        names = {"gzip": 47, "x-gzip": 47, "deflate": 15, "identity": 0, "": 0}
        name = encoding.strip().lower()
        if name not in names:
            raise BadData(f"Unsupported content encoding {shown(encoding)}")
        self._window = names[name]
        self._decoder = zlib.decompressobj(self._window) if self._window else None
        self._first = True

    def feed(self, chunk: bytes) -> None:
        if self._decoder is None:
            self._keep(chunk)
            return
        while chunk:
            try:
                self._keep(self._decoder.decompress(chunk, self.limit - len(self.kept) + 1))
            except zlib.error as err:
                if self._window == 15 and self._first:  # some servers send raw deflate
                    self._window, self._decoder = -15, zlib.decompressobj(-15)
                    continue
                raise BadData(f"A compressed body is damaged: {err}") from err
            finally:
                self._first = False
            chunk = self._decoder.unconsumed_tail

    def _keep(self, data: bytes) -> None:
        self.kept += data
        if len(self.kept) > self.limit:
            raise TooLarge(f"The answer is larger than {self.limit} bytes")

    def end(self) -> bytes:
        if self._decoder is not None and not self._decoder.eof and self.kept:
            raise BadData("A compressed body ends too early")
        return bytes(self.kept)


def retry_after(text: str, now: float) -> float | None:
    """Seconds that a Retry-After header asks for: a number or a date; 0 for the past, None when it is neither."""
    text = text.strip()
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return 0.0 if text.startswith("-") else float(digits[:12])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
