"""Times as PostgreSQL's to_char writes them, for SQLite."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


_FORMS: dict[str, Callable[[datetime], str]] = {
    "YYYY": lambda time: f"{time.year:04}",
    "YYY": lambda time: f"{time.year % 1000:03}",
    "YY": lambda time: f"{time.year % 100:02}",
    "Y": lambda time: str(time.year % 10),
    "Y,YYY": lambda time: f"{time.year // 1000},{time.year % 1000:03}",
    "IYYY": lambda time: f"{time.isocalendar().year:04}",
    "IW": lambda time: f"{time.isocalendar().week:02}",
    "ID": lambda time: str(time.isoweekday()),
    "IDDD": lambda time: f"{(time.isocalendar().week - 1) * 7 + time.isoweekday():03}",
    "CC": lambda time: f"{(time.year + 99) // 100:02}",
    "Q": lambda time: str((time.month + 2) // 3),
    "MM": lambda time: f"{time.month:02}",
    "WW": lambda time: f"{(time.timetuple().tm_yday - 1) // 7 + 1:02}",
    "W": lambda time: str((time.day - 1) // 7 + 1),
    "DDD": lambda time: f"{time.timetuple().tm_yday:03}",
    "DD": lambda time: f"{time.day:02}",
    "D": lambda time: str(time.isoweekday() % 7 + 1),
    "HH24": lambda time: f"{time.hour:02}",
    "HH12": lambda time: f"{(time.hour + 11) % 12 + 1:02}",
    "HH": lambda time: f"{(time.hour + 11) % 12 + 1:02}",
    "MI": lambda time: f"{time.minute:02}",
    "SSSS": lambda time: str(time.hour * 3600 + time.minute * 60 + time.second),
    "SSSSS": lambda time: str(time.hour * 3600 + time.minute * 60 + time.second),
    "SS": lambda time: f"{time.second:02}",
    "MS": lambda time: f"{time.microsecond // 1000:03}",
    "US": lambda time: f"{time.microsecond:06}",
    "J": lambda time: str(time.toordinal() + 1721425),
}
"""The meaning of each pattern. Times are in UTC and after Christ, so those of eras and zones are not known."""

_PATTERN = re.compile(
    r'"[^"]*"|Month|MONTH|month|Mon|MON|mon|Day|DAY|day|Dy|DY|dy|'
    + "|".join(map(re.escape, sorted(_FORMS, key=lambda name: (-len(name), name))))
    + "|[AaPp][Mm]|[AaPp]\\.[Mm]\\.",
)


def format_time(microseconds: int | None, form: str) -> str | None:
    """Return a time, in microseconds since the epoch, in a format of PostgreSQL's to_char, in UTC; None for no time or no format."""
    if microseconds is None or not form:
        return None
    time = _EPOCH + timedelta(microseconds=microseconds)
    return _PATTERN.sub(lambda match: _formatted(match[0], time), form)


def _formatted(pattern: str, time: datetime) -> str:
    if pattern[0] == '"':
        return pattern[1:-1]
    match pattern.upper():
        case "MONTH":
            return _in_case(_MONTHS[time.month - 1].ljust(9), pattern)
        case "MON":
            return _in_case(_MONTHS[time.month - 1][:3], pattern)
        case "DAY":
            return _in_case(_DAYS[time.weekday()].ljust(9), pattern)
        case "DY":
            return _in_case(_DAYS[time.weekday()][:3], pattern)
    if pattern in _FORMS:
        return _FORMS[pattern](time)
    half = "am" if time.hour < 12 else "pm"
    half = f"{half[0]}.{half[1]}." if "." in pattern else half
    return half.upper() if pattern[0].isupper() else half


def _in_case(name: str, pattern: str) -> str:
    """Return a name in capitals, in small letters or as it is: as its pattern is written."""
    if pattern.isupper():
        return name.upper()
    return name.lower() if pattern.islower() else name
