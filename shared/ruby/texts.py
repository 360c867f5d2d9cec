"""Texts on their way to Ruby: those that JSON does not have are marked."""

from __future__ import annotations

import base64
from typing import Any


def dump_text(value: str) -> Any:
    """Return a text as JSON data for Ruby; one of bytes that are not UTF-8 is an object with the key `$`."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$": "bytes", "v": base64.b64encode(value.encode("utf-8", "surrogateescape")).decode()}
    return value
