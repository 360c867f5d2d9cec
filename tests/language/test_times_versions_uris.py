"""Timespan, Timestamp, SemVer, SemVerRange, URI. Origin of what is expected: Puppet 7.23."""

from __future__ import annotations

import pytest

from language.values.times import SECOND, Timespan, Timestamp, utc_offset
from language.values.uris import URI
from language.values.versions import SemVer, SemVerRange
from shared.errors import EvaluationError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1-02:03:04.5", "1-02:03:04.5"),
        ("10:20:30", "0-10:20:30.0"),
        ("5", "0-00:00:05.0"),
        ("-1:30.25", "-0-00:01:30.25"),
        ("1-02:03", "1-02:03:00.0"),
    ],
)
def test_timespans_are_read_by_the_default_formats(text: str, shown: str) -> None:
    assert str(Timespan.parse(text)) == shown


def test_timespans_are_written_by_format() -> None:
    span = Timespan.of(days=1, hours=2, minutes=3, seconds=4, milliseconds=56)
    assert span.format("%D %H %M %S %L") == "1 02 03 04 56 "
    assert span.format("%H:%M") == "26:03"
    assert span.format("%S") == "93784"


def test_a_timespan_that_fits_no_format_names_them() -> None:
    with pytest.raises(EvaluationError, match="Unable to parse 'x' using any of the formats %D-%H"):
        Timespan.parse("x")
    with pytest.raises(EvaluationError, match="Bad format specifier '%' in 'a%Q', at position 2"):
        Timespan.seconds(1).format("a%Q")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2020-01-01T10:00:00.123456789 UTC", "2020-01-01T10:00:00.123456789 UTC"),
        ("2020-01-01T10:00:00 +02:00", "2020-01-01T08:00:00.000000000 UTC"),
        ("2020-01-01 10:00:00 CEST", "2020-01-01T08:00:00.000000000 UTC"),
        ("2020-01-01", "2020-01-01T00:00:00.000000000 UTC"),
    ],
)
def test_timestamps_are_read_by_the_default_formats(text: str, shown: str) -> None:
    assert str(Timestamp.parse(text)) == shown


def test_timestamps_take_a_format_and_a_zone() -> None:
    assert str(Timestamp.parse("3 Feb 2020 4:05 PM", "%e %b %Y %I:%M %p", "EST")) == "2020-02-03T21:05:00.000000000 UTC"
    for wrong in ("x", "2020-13-01"):
        with pytest.raises(EvaluationError):
            Timestamp.parse(wrong)
    with pytest.raises(EvaluationError, match="mutually exclusive"):
        Timestamp.parse("2020 UTC", "%Y %Z", "EST")


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("%Y-%m-%d %H:%M:%S", "2020-02-09 15:04:05"),
        ("%d %b %y %I:%M %p", "09 Feb 20 03:04 PM"),
        ("%A %a %B %j %u %w", "Sunday Sun February 040 7 0"),
        ("%s %L %N %3N %6N", "1581260645 678 678000000 678 678000"),
        ("%c | %D | %T", "Sun Feb  9 15:04:05 2020 | 02/09/20 | 15:04:05"),
        ("%Z %z %:z", "UTC +0000 +00:00"),
        ("%e|%-d|%-H|%l|%_m", " 9|9|15| 3| 2"),
        ("%G-W%V %U %W %%", "2020-W06 06 05 %"),
        ("%010Y|%^a|%#B", "0000002020|SUN|FEBRUARY"),
        ("%Q", "%Q"),
    ],
)
def test_timestamps_are_written_as_ruby_does(format_: str, text: str) -> None:
    moment = Timestamp(Timestamp.parse("2020-02-09T15:04:05 UTC").nanoseconds + 678 * SECOND // 1000)
    assert moment.format(format_) == text


def test_a_time_outside_of_the_supported_years_names_them() -> None:
    with pytest.raises(EvaluationError, match="the year 10000 is out of range: Timestamps are supported from the year 1 to 9999"):
        Timestamp.parse("10000-01-01", "%Y-%m-%d")
    with pytest.raises(EvaluationError, match="the year 0 is out of range: Timestamps are supported from the year 1 to 9999"):
        Timestamp.parse("0000-01-01", "%Y-%m-%d")
    with pytest.raises(EvaluationError, match="the time 253402300800 is out of range: Timestamps are supported from the year 1 to 9999"):
        Timestamp(253402300800 * SECOND).format("%Y")


def test_zones() -> None:
    assert utc_offset("+02:30") == 9000
    assert utc_offset("GMT-3") == -10800
    assert utc_offset("cest") == 7200
    with pytest.raises(EvaluationError, match="Illegal timezone 'nowhere'"):
        utc_offset("nowhere")


def test_versions_are_ordered_by_precedence() -> None:
    order = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.0.1", "1.10.0"]
    parsed = [SemVer.parse(text) for text in order]
    shuffled = [parsed[i] for i in (5, 2, 7, 0, 3, 6, 1, 4)]
    assert sorted(shuffled) == parsed
    for wrong in ("1.2", "01.2.3", "1.2.3-01", "a.b.c"):
        with pytest.raises(EvaluationError):
            SemVer.parse(wrong)


@pytest.mark.parametrize(
    ("range_", "inside", "outside"),
    [
        ("1.x", ["1.0.0", "1.9.9"], ["2.0.0", "1.0.0-a"]),
        ("~1.2", ["1.2.0", "1.2.9"], ["1.3.0"]),
        ("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"]),
        ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0"]),
        (">=1.0.0 <2.0.0", ["1.5.0"], ["2.0.0", "0.9.9"]),
        ("> 1.2", ["1.3.0"], ["1.2.9"]),
        ("<=1.2", ["1.2.9"], ["1.3.0"]),
        ("1.2.3 - 2.0.0", ["1.2.3", "2.0.0"], ["2.0.1"]),
        ("<1.0.0 || >=2.0.0", ["0.1.0", "3.0.0"], ["1.5.0"]),
        (">=1.0.0-rc1", ["1.0.0-rc2", "1.0.0"], ["1.0.0-a", "1.1.0-rc2"]),
        ("*", ["0.0.1", "9.9.9"], []),
        ("=1.2.3", ["1.2.3"], ["1.2.4"]),
    ],
)
def test_version_ranges(range_: str, inside: list[str], outside: list[str]) -> None:
    parsed = SemVerRange.parse(range_)
    assert [v for v in inside if SemVer.parse(v) not in parsed] == []
    assert [v for v in outside if SemVer.parse(v) in parsed] == []
    assert str(parsed) == range_


def test_a_range_that_is_none_is_named() -> None:
    with pytest.raises(EvaluationError, match='Unparsable version range: "foo"'):
        SemVerRange.parse("foo")


def test_uris_have_parts_and_default_ports() -> None:
    uri = URI.parse("https://u@example.com/p/x?q=1#f")
    assert (uri.scheme, uri.userinfo, uri.host, uri.port, uri.path, uri.query, uri.fragment) == (
        "https",
        "u",
        "example.com",
        443,
        "/p/x",
        "q=1",
        "f",
    )
    assert str(uri) == "https://u@example.com/p/x?q=1#f"
    assert URI.parse("mailto:a@b").opaque == "a@b"
    with pytest.raises(EvaluationError, match="bad URI"):
        URI.parse("bad uri")


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("g", "http://a/b/c/g"),
        ("../g", "http://a/b/g"),
        ("/g", "http://a/g"),
        ("?y", "http://a/b/c/d?y"),
        ("//h/x", "http://h/x"),
        ("", "http://a/b/c/d"),
    ],
)
def test_references_are_resolved(reference: str, joined: str) -> None:
    assert str(URI.parse("http://a/b/c/d").join(URI.parse(reference))) == joined
