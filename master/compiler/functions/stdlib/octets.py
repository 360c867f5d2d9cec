"""Text as octets: UTF-8, and where a file was not UTF-8, its own octets again."""

from __future__ import annotations

__all__ = ["octets"]


def octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
