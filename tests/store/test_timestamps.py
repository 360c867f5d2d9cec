"""Times in PuppetDB's API."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.timestamps import format_timestamp, parse_timestamp

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2025-11-11", "2025-11-11T00:00:00.000Z"),
        ("2025-11-11T09:01", "2025-11-11T09:01:00.000Z"),
        ("2025-11-11T09:01:30Z", "2025-11-11T09:01:30.000Z"),
        ("2026-11-22T13:04:39.618Z", "2026-11-22T13:04:39.618Z"),
        ("2026-11-22T13:04:26.295+00:00", "2026-11-22T13:04:26.295Z"),
        ("2026-11-22T13:04:26.295123456+01:00", "2026-11-22T12:04:26.295Z"),
        ("2026-11-22 13:04:26 -0530", "2026-11-22T18:34:26.000Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01", "0001-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_in_iso_8601_is_shown_in_utc_to_the_millisecond(text: str, shown: str) -> None:
    assert format_timestamp(parse_timestamp(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "notatime", "2025-13-01", "2025-11-11T25:00", "2025-11-11T09:01:30+25:00", "٢٠٢٥-11-11", "1e9", "0001-01-01T00:00+05:00"]
)
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid timestamp value"):
        parse_timestamp(text)


@given(st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999))
def test_a_shown_time_is_read_back(milliseconds: int) -> None:
    assert parse_timestamp(format_timestamp(milliseconds * 1000)) == milliseconds * 1000
