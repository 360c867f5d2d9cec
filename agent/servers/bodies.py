"""Bodies and headers of answers: decompressed within a limit, dates and seconds read."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from shared.errors import BadData, TooLarge
from shared.names import quoted_for_log
from shared.wire.inflate import Inflater, content_coding


class LimitedBody:
    """
    A body that is put together, decompressed on the way, of at most `limit` bytes.

    Args:
        encoding: The Content-Encoding of the answer; BadData when it is not supported.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        coding = content_coding(encoding)
        if coding is None:
            raise BadData(f"Unsupported content encoding {quoted_for_log(encoding)}")
        self.limit = limit
        self.content = bytearray()
        self._inflater = Inflater(coding, ignore_rest=True) if coding else None

    def feed(self, chunk: bytes) -> None:
        """Add the contents of `chunk`; raise TooLarge when they are too much, BadData when they are damaged."""
        for piece in self._inflater.feed(chunk) if self._inflater is not None else (chunk,):
            self.content += piece
            if len(self.content) > self.limit:
                raise TooLarge(f"The answer is larger than {self.limit} bytes")

    def end(self) -> bytes:
        """Return the body; raise BadData when compressed data ended too early."""
        if self._inflater is not None and self.content:  # an answer without a body may name an encoding as well
            self._inflater.finish()
        return bytes(self.content)


def retry_after(text: str, now: float) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date; 0 for the past, None for other text."""
    text = text.strip()
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return 0.0 if text.startswith("-") else float(digits[:12])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
