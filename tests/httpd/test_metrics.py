"""Counters and measurements as Prometheus reads them."""

from __future__ import annotations

from httpd.metrics import Counter, Histogram, family_lines


def test_a_counter_has_a_line_for_each_set_of_labels() -> None:
    counter = Counter("doors_total", "Doors opened.", "room", "by")
    for by in ("me", "you", "me"):
        counter.add("hall", by)
    assert list(counter.lines()) == [
        "# HELP doors_total Doors opened.",
        "# TYPE doors_total counter",
        'doors_total{room="hall",by="me"} 2',
        'doors_total{room="hall",by="you"} 1',
    ]


def test_a_value_of_a_label_cannot_end_its_line_or_quotes() -> None:
    counter = Counter("doors_total", "Doors opened.", "room")
    counter.add('a"b\\c\nd 1')
    assert list(counter.lines())[2:] == ['doors_total{room="a\\"b\\\\c\\nd 1"} 1']


def test_a_histogram_counts_up_to_each_bound_and_the_bound_itself_belongs_to_it() -> None:
    histogram = Histogram("wait_seconds", "Waits.", (0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 30.0):
        histogram.observe(seconds)
    assert list(histogram.lines())[2:] == [
        'wait_seconds_bucket{le="0.1"} 2',
        'wait_seconds_bucket{le="1"} 3',
        'wait_seconds_bucket{le="+Inf"} 4',
        "wait_seconds_sum 30.650000",
        "wait_seconds_count 4",
    ]


def test_what_has_labels_begins_with_nothing_and_what_is_known_to_come_with_0() -> None:
    assert list(Counter("a_total", "A.").lines())[2:] == ["a_total 0"]
    counter = Counter("b_total", "B.", "room")
    assert list(counter.lines())[2:] == []
    counter.start("hall")
    assert list(counter.lines())[2:] == ['b_total{room="hall"} 0']
    counter.add("hall")
    counter.start("hall")
    assert list(counter.lines())[2:] == ['b_total{room="hall"} 1']
    assert list(Histogram("c_seconds", "C.", (1.0,)).lines())[2:] == [
        'c_seconds_bucket{le="1"} 0',
        'c_seconds_bucket{le="+Inf"} 0',
        "c_seconds_sum 0.000000",
        "c_seconds_count 0",
    ]


def test_without_bounds_there_are_no_buckets() -> None:
    times = Histogram("d_seconds", "D.", (), "room")
    times.observe(0.5, "hall")
    times.observe(1.0, "hall")
    assert list(times.lines())[1:] == [
        "# TYPE d_seconds summary",
        'd_seconds_sum{room="hall"} 1.500000',
        'd_seconds_count{room="hall"} 2',
    ]


def test_a_count_of_millions_is_shown_to_the_last_one() -> None:
    samples = [((), 12_345_678)]
    assert list(family_lines("e_total", "counter", "E.", (), samples))[2:] == ["e_total 12345678"]
