"""
Long texts that are stored and sent compressed: only a short head differs from one answer to the next.

A stream in zlib's form (RFC 1950) is made of the newly compressed head, followed by the stored rest without unpacking it: a raw
deflate stream (RFC 1951) may be continued by another one, and the Adler-32 of both follows from theirs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self

LEVEL: Final = 1  # of zlib: 600 kB of a catalog take 1.2 ms and 41 kB
WORTHWHILE: Final = 1024  # octets of a text from which compressing it pays
_HEADER: Final = b"\x78\x01"  # of zlib's form: deflate, a window of 32 kB, packed fast
_BASE: Final = 65521  # of Adler-32


@dataclass(frozen=True, slots=True)
class DeflatedText:
    """
    A text in two parts.

    Attributes:
        head: The beginning, as it is.
        rest: All behind it, as a raw deflate stream with its end; empty when the head is the whole text.
        size: The length of the rest in octets, unpacked.
        checksum: The Adler-32 of the rest, unpacked.
    """

    head: bytes
    rest: bytes = b""
    size: int = 0
    checksum: int = 1

    @classmethod
    def split(cls, text: bytes, end: int) -> Self:
        """Return a text whose head ends before `end`; as it is when that is outside of it or the text is short. Blocks for a long one."""
        if not 0 < end < len(text) or len(text) < WORTHWHILE:
            return cls(text)
        rest = memoryview(text)[end:]
        packer = zlib.compressobj(LEVEL, wbits=-15)
        return cls(text[:end], packer.compress(rest) + packer.flush(), len(rest), zlib.adler32(rest))

    def __len__(self) -> int:
        return len(self.head) + self.size

    def __bytes__(self) -> bytes:
        """Return the whole text. Blocks for a long one: a millisecond for a megabyte."""
        return self.head + zlib.decompress(self.rest, -15, self.size) if self.rest else self.head

    def map_head(self, change: Callable[[bytes], bytes]) -> DeflatedText:
        """Return the text with its head changed."""
        return replace(self, head=change(self.head))

    def deflated(self) -> bytes:
        """Return the text as a stream in zlib's form. Takes as long as its head takes to compress."""
        if not self.rest:
            return zlib.compress(self.head, LEVEL)
        packer = zlib.compressobj(LEVEL, wbits=-15)
        head = packer.compress(self.head) + packer.flush(zlib.Z_SYNC_FLUSH)
        checksum = _joined_adler32(zlib.adler32(self.head), self.checksum, self.size)
        return b"".join((_HEADER, head, self.rest, checksum.to_bytes(4, "big")))


def _joined_adler32(first: int, second: int, size: int) -> int:
    """
    Return the Adler-32 of two joined texts; the second has `size` octets.

    The low half of each is 1 and the sum of its octets, the high half the sum of all low halves on the way.
    """
    low_first, low_second = first & 0xFFFF, second & 0xFFFF
    low = (low_first + low_second - 1) % _BASE
    high = ((first >> 16) + (second >> 16) + size * (low_first - 1)) % _BASE
    return high << 16 | low
