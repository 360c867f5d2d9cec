"""`schedule`: when resources are managed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from ..ral import Param, Type
from ..ral.attributes import text_of

_RANGE = re.compile(r"\d+(:\d+){0,2}\s*-\s*\d+(:\d+){0,2}")
_DAY = re.compile(r"(Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(day)?", re.IGNORECASE)
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SECONDS = {"hourly": 3600, "daily": 86400, "weekly": 604800, "monthly": 2592000}

TimeOfDay = tuple[int, int, int]
Span = tuple[TimeOfDay, TimeOfDay]


def _time_of_day(hour: int, minute: int = 0, second: int = 0) -> TimeOfDay:
    return hour, minute, second


def _span(value: Any) -> Span:
    if not isinstance(value, str) or not _RANGE.search(value):
        raise ValueError(f"Invalid range value '{text_of(value)}'")
    parts = [[int(number) for number in part.split(":")] for part in re.split(r"\s*-\s*", value)]
    if len(parts) != 2:
        raise ValueError(f"Invalid range {value}")
    times = [_time_of_day(*part) for part in parts]
    for hour, minute, second in times:
        if hour > 23:
            raise ValueError(f"Invalid hour '{hour}'")
        if minute > 59:
            raise ValueError(f"Invalid minute '{minute}'")
        if second > 59:
            raise ValueError(f"Invalid second '{second}'")
    return times[0], times[1]


def _weekday(value: Any) -> int:
    text = text_of(value)
    if re.fullmatch(r"[0-6]", text):
        return int(text)
    if isinstance(value, str) and _DAY.fullmatch(text):
        return _DAYS.index(text[:3].lower())
    raise ValueError(f"{text_of(value)} is not a valid day of the week")


class ScheduleRepeat(Param[int]):
    """Validated against `periodmatch`, which is assigned before."""

    def validate(self, resource: Type, value: Any) -> None:
        if not isinstance(value, int) and not re.fullmatch(r"\d+", str(value)):
            raise ValueError("Repeat must be a number")
        policy = resource.value_of("periodmatch")
        if policy not in (None, "distance") and int(value) != 1:
            raise ValueError(f"Repeat must be 1 unless periodmatch is 'distance', not '{policy}'")
        if int(value) < 1:
            raise ValueError("Repeat must be at least 1")


class Schedule(Type, name="schedule", providers=False, apply_to="both"):
    """The times at which the resources that name it are managed: all given criteria must hold. Times are the machine's local time."""

    name = Param(str, namevar=True, doc="What the metaparameter `schedule` refers to.")
    range = Param(tuple, many=True, munge=_span, doc="`H[:M[:S]] - H[:M[:S]]`, one or several; may cross midnight.")
    periodmatch = Param(
        str,
        values=("number", "distance"),
        default="distance",
        doc="Whether two periods differ by their number (another hour) or by their distance.",
    )
    period = Param(str, values=("hourly", "daily", "weekly", "monthly", "never"), doc="At most once in this period.")
    repeat = ScheduleRepeat(int, default=1, doc="How often in a period; only with `periodmatch => distance`.")
    weekday = Param(int, many=True, munge=_weekday, doc="Days: 0 (Sunday) to 6, or names. With a range across midnight, the day it began.")

    def matches(self, checked: datetime, now: datetime) -> bool:
        """Return whether a resource last checked at `checked` should be managed `now`; both in local time."""
        if self.range and not any(self._within(span, now) for span in self.range):
            return False
        if self.period and not self._due(checked, now):
            return False
        return bool(self.range) or self._on_day(now)

    def _within(self, span: tuple[Any, ...], now: datetime) -> bool:
        start, end = (now.replace(hour=h, minute=m, second=s, microsecond=0) for h, m, s in span)
        if start < end:
            return start <= now <= end and self._on_day(now)
        if now >= start:
            return self._on_day(now)
        return now <= end and self._on_day(now - timedelta(days=1))

    def _on_day(self, day: datetime) -> bool:
        return not self.weekday or day.isoweekday() % 7 in self.weekday

    def _due(self, checked: datetime, now: datetime) -> bool:
        period = self.period
        if period is None or period == "never":
            return False
        if self.periodmatch == "distance":
            return int(now.timestamp()) - int(checked.timestamp()) >= SECONDS[period] // self.repeat
        if period == "weekly":
            return checked.isoweekday() % 7 > now.isoweekday() % 7 or now - checked > timedelta(days=7)
        unit = {"hourly": "hour", "daily": "day", "monthly": "month"}[period]
        return bool(getattr(now, unit) != getattr(checked, unit))


def default_schedules() -> list[Schedule]:
    """Return the schedules that every catalog has: `puppet`, and one for each period."""
    periods = ("hourly", "daily", "weekly", "monthly", "never")
    return [Schedule("puppet", {"period": "hourly", "repeat": 2}), *(Schedule(period, {"period": period}) for period in periods)]
