"""The time, as everything that is tested by other times takes it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)
