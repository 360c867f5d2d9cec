"""Durations as settings and environment.conf write them."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
_DURATION = re.compile(r"(\d{1,12})([smhdy]?)", re.ASCII)


def duration(value: Any) -> int:
    """Return the seconds of `90`, `30m`, `2h`, `1d`, `5y` (a year has 365 days); ValueError for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _DURATION.fullmatch(str(value))
    if not match:
        raise ValueError(f"Invalid duration format '{value}'; write seconds, or a number with s, m, h, d or y")
    return int(match[1]) * _UNITS[match[2] or "s"]


def ttl(value: Any) -> int | None:
    """Return the seconds of a duration, None for `unlimited`; ValueError for anything else."""
    return None if value in (None, "unlimited") else duration(value)
