"""When a schedule lets a resource be managed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from shared.errors import ResourceError
from shared.types.schedule import Schedule, default_schedules

LONG_AGO = "2020-01-01 00:00"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


@pytest.mark.parametrize(
    ("given", "checked", "now", "matches"),
    [
        ({}, LONG_AGO, "2026-11-21 12:00", True),
        ({"range": "10 - 14"}, LONG_AGO, "2026-11-21 12:00", True),
        ({"range": "10 - 14"}, LONG_AGO, "2026-11-21 14:00", True),
        ({"range": "10 - 14"}, LONG_AGO, "2026-11-21 14:00:01", False),
        ({"range": ["1 - 2", "11:30:30 - 12:15"]}, LONG_AGO, "2026-11-21 11:30:29", False),
        ({"range": ["1 - 2", "11:30:30 - 12:15"]}, LONG_AGO, "2026-11-21 11:30:30", True),
        ({"range": "22:00 - 04:00"}, LONG_AGO, "2026-11-21 23:00", True),
        ({"range": "22:00 - 04:00"}, LONG_AGO, "2026-11-21 03:59", True),
        ({"range": "22:00 - 04:00"}, LONG_AGO, "2026-11-21 12:00", False),
        # 2026-11-21 is a Saturday; a range across midnight belongs to the day it began.
        ({"range": "22:00 - 04:00", "weekday": "Saturday"}, LONG_AGO, "2026-11-21 23:00", True),
        ({"range": "22:00 - 04:00", "weekday": "Sat"}, LONG_AGO, "2026-11-22 02:00", True),
        ({"range": "22:00 - 04:00", "weekday": 6}, LONG_AGO, "2026-11-21 02:00", False),
        ({"weekday": ["0", "sat"]}, LONG_AGO, "2026-11-21 02:00", True),
        ({"weekday": ["0", "Mon"]}, LONG_AGO, "2026-11-21 02:00", False),
        ({"period": "hourly"}, "2026-11-21 11:00", "2026-11-21 11:59:59", False),
        ({"period": "hourly"}, "2026-11-21 11:00", "2026-11-21 12:00", True),
        ({"period": "hourly", "repeat": 2}, "2026-11-21 11:00", "2026-11-21 11:30", True),
        ({"period": "daily", "repeat": "4"}, "2026-11-21 11:00", "2026-11-21 16:59", False),
        ({"period": "monthly"}, "2026-11-21 11:00", "2026-12-21 10:59", False),
        ({"period": "monthly"}, "2026-11-21 11:00", "2026-12-21 11:00", True),
        ({"period": "never"}, LONG_AGO, "2026-11-21 12:00", False),
        ({"period": "hourly", "periodmatch": "number"}, "2026-11-21 11:59", "2026-11-21 12:00", True),
        ({"period": "daily", "periodmatch": "number"}, "2026-11-21 00:01", "2026-11-21 23:59", False),
        ({"period": "weekly", "periodmatch": "number"}, "2026-11-21 12:00", "2026-11-22 12:00", True),
        ({"period": "weekly", "periodmatch": "number"}, "2026-11-22 12:00", "2026-11-23 12:00", False),
        ({"period": "weekly", "periodmatch": "number"}, "2026-11-22 12:00", "2026-11-30 12:00", True),
        ({"range": "10 - 14", "period": "daily"}, "2026-11-21 11:00", "2026-11-21 12:00", False),
    ],
)
def test_all_criteria_have_to_match(given: dict[str, Any], checked: str, now: str, matches: bool) -> None:
    assert Schedule("x", given).matches(at(checked), at(now)) is matches


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"range": "noon"}, "Invalid range value 'noon'"),
        ({"range": "25 - 3"}, "Invalid hour '25'"),
        ({"range": "1:61 - 3"}, "Invalid minute '61'"),
        ({"weekday": "Someday"}, "Someday is not a valid day of the week"),
        ({"weekday": 7}, "7 is not a valid day of the week"),
        ({"repeat": "often"}, "Repeat must be a number"),
        ({"repeat": 0}, "Repeat must be at least 1"),
        ({"periodmatch": "number", "repeat": 2}, "Repeat must be 1 unless periodmatch is 'distance', not 'number'"),
    ],
)
def test_a_wrong_value_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ResourceError) as caught:
        Schedule("x", given)
    assert caught.value.message.endswith(f"failed on Schedule[x]: {message}")


def test_every_catalog_has_puppets_schedules() -> None:
    found = {default_schedule.name: (default_schedule.period, default_schedule.repeat) for default_schedule in default_schedules()}
    assert found["puppet"] == ("hourly", 2)
    assert set(found) == {"puppet", "hourly", "daily", "weekly", "monthly", "never"}
