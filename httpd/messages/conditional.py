"""
Conditional requests: whether the copy that a client has is certainly the current one. Source: RFC 9110 8.8 and 13.1.

Puppet's agents send the time of their own clock at their last refresh as If-Modified-Since, not the Last-Modified of the response.
A date therefore counts only with a tolerance for their clocks. When in doubt the body is sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

CLOCK_TOLERANCE = 24 * 3600  # seconds by which the clock of an agent may be fast
SETTLED_AFTER = 2  # seconds without a write until the time of a file identifies its contents
_TAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Validators:
    """
    The validators of a body: its tag and its date.

    Attributes:
        etag: A hash of the contents; weak, as the body may be compressed on its way.
        modified: The first whole second since the epoch in which the body was certainly the current one; None while a second write
            in the same second could still follow, or when the file's time is not in this machine's past.
    """

    etag: str
    modified: int | None

    @classmethod
    def of(cls, body: bytes, written: float, now: float) -> Validators:
        """Return the validators of `body`, whose file was written at `written`; both times are seconds since the epoch by our clock."""
        settled = now - written >= SETTLED_AFTER
        return cls(f'W/"{hashlib.sha256(body).hexdigest()}"', int(written) + 1 if settled else None)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a response with this body, and of a 304."""
        if self.modified is None:
            return {"ETag": self.etag}
        return {"ETag": self.etag, "Last-Modified": format_datetime(datetime.fromtimestamp(self.modified, UTC), usegmt=True)}

    def match(self, request: Mapping[str, str], now: float) -> bool:
        """
        Return whether a request with these headers is answered with 304.

        If-None-Match alone counts when there is one. A date counts when it is the one that we sent, or when it is past by our clock
        and so much later than the last change that an agent's fast clock cannot explain it.
        """
        tags = request.get("If-None-Match")
        if tags is not None:
            return tags.strip() == "*" or self.etag.removeprefix("W/") in _TAG.findall(tags)
        since = _timestamp(request.get("If-Modified-Since", ""))
        if since is None or self.modified is None:
            return False
        return since == self.modified or self.modified + CLOCK_TOLERANCE <= since <= now


def _timestamp(header: str) -> float | None:
    """Return an HTTP date in seconds since the epoch, None for anything else."""
    if not header:
        return None
    try:
        date = parsedate_to_datetime(header)
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
