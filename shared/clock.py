"""The time, as everything that is tested by other times takes it."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def microseconds_now() -> int:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() // 1000
