"""Times as PuppetDB's API writes and reads them; inside the store a time is an integer, microseconds since 1970-01-01T00:00:00Z."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FORM = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[T ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)


def parse_timestamp(text: str) -> int:
    """
    Return the microseconds since the epoch of a time in ISO 8601: a year, a month, a date, or a date and a time, with or without an offset.

    A time without an offset is in UTC. Digits below the microsecond are cut off. ValueError names the text that is not a time.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a valid timestamp value")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=_zone(zone)
        ).astimezone(UTC)
        return (moment - _EPOCH) // _MICROSECOND + int((fraction or "0")[:6].ljust(6, "0"))
    except (ValueError, OverflowError) as err:
        raise ValueError(f"'{text}' is not a valid timestamp value") from err


def _zone(text: str | None) -> timezone:
    if text is None or text.upper() in ("Z", "UTC"):
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[3:].removeprefix(":") or 0)
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def format_timestamp(microseconds: int) -> str:
    """Return a time as PuppetDB's answers show it: `2025-11-10T09:01:30.000Z`, in UTC, cut to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
