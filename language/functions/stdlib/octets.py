"""Text as bytes: UTF-8, and the original bytes where a file was not UTF-8."""

from __future__ import annotations


def encode_octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
