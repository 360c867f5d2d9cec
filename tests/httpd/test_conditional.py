"""When 304 is answered: only for a copy that is certainly the current one."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from httpd.messages.conditional import CLOCK_TOLERANCE, Validators

WRITTEN = 1_700_000_000.4  # seconds since the epoch
NOW = WRITTEN + 10 * CLOCK_TOLERANCE
CURRENT = Validators.of(b"list", WRITTEN, NOW)
MODIFIED = int(WRITTEN) + 1


def date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


@pytest.mark.parametrize(
    ("since", "unchanged"),
    [
        (date(MODIFIED), True),  # as it was given out
        (date(MODIFIED - 1), False),  # the second of the write: the copy may be of before it
        (date(MODIFIED + 1), False),  # of the agent's own clock, which may be fast
        (date(MODIFIED + CLOCK_TOLERANCE - 1), False),
        (date(MODIFIED + CLOCK_TOLERANCE), True),
        (date(NOW - 1), True),
        (date(NOW + 60), False),  # of a clock that is certainly fast
        ("Thu, 01 Jan 2099 00:00:00 GMT", False),
        ("Thu, 01 Jan 1970 00:00:00 GMT", False),
        ("Mon, 01 Jan 9999999 00:00:00 GMT", False),
        ("Tue, 14 Nov 2023 22:13:21 +9999", False),
        ("yesterday", False),
        ("", False),
    ],
)
def test_a_date_counts_if_it_was_given_out_or_no_fast_clock_explains_it(since: str, unchanged: bool) -> None:
    assert CURRENT.match({"If-Modified-Since": since}, NOW) is unchanged


@pytest.mark.parametrize(
    ("tags", "unchanged"),
    [
        (CURRENT.etag, True),
        (CURRENT.etag.removeprefix("W/"), True),
        (f'"other", {CURRENT.etag}', True),
        ("*", True),
        ('"other"', False),
        (CURRENT.etag.strip('W/"'), False),
        ("", False),
    ],
)
def test_a_tag_counts_alone_where_there_is_one(tags: str, unchanged: bool) -> None:
    for since in (date(MODIFIED), date(0)):
        assert CURRENT.match({"If-None-Match": tags, "If-Modified-Since": since}, NOW) is unchanged


@pytest.mark.parametrize("now", [WRITTEN, WRITTEN + 1.9, WRITTEN - 3600])
def test_no_date_is_given_out_while_a_write_in_the_same_second_may_follow_or_the_clock_went_back(now: float) -> None:
    young = Validators.of(b"list", WRITTEN, now)
    assert "Last-Modified" not in young.headers and "ETag" in young.headers
    for since in (MODIFIED - 1, MODIFIED, MODIFIED + 10 * CLOCK_TOLERANCE):
        assert not young.match({"If-Modified-Since": date(since)}, now)


def test_other_contents_have_another_tag() -> None:
    assert Validators.of(b"a", WRITTEN, NOW).etag != Validators.of(b"b", WRITTEN, NOW).etag
