"""The content codings that agents in Ruby accept, and bodies out of any of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

ACCEPTED_BY_RUBY = "gzip;q=1.0,deflate;q=0.6,identity;q=0.3"  # what Net::HTTP sends as Accept-Encoding
EITHER_WRAPPER = 47  # zlib's window bits for a body of gzip or of zlib, by its first bytes


def decode(body: bytes, headers: Mapping[str, str]) -> bytes:
    """
    Return a body as it was meant, by the headers (in lower case) that came with it.

    Raises:
        AssertionError: for a coding other than gzip and deflate, the only ones that servers of Puppet use.
    """
    coding = headers.get("content-encoding", "identity")
    if coding == "identity":
        return body
    assert coding in ("gzip", "deflate"), coding
    return zlib.decompress(body, EITHER_WRAPPER)
