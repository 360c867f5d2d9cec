"""Waves: which nodes belong to each, and how they are written."""

from __future__ import annotations

from collections import Counter

import pytest

from master.rollouts.waves import Wave, parse_waves, wave_of, waves_of
from shared.errors import BadData

QUERY = "nodes[certname] { certname ~ '^a;b' }"


@pytest.mark.parametrize(
    ("text", "waves"),
    [
        ("100%", [Wave("100%", 100.0)]),
        ("1%; 10%;100 %", [Wave("1%", 1.0), Wave("10%", 10.0), Wave("100%", 100.0)]),
        (f"canary: {QUERY}; 100%", [Wave("canary", query=QUERY), Wave("100%", 100.0)]),
        ("few: 0.5%; all: 100%", [Wave("few", 0.5), Wave("all", 100.0)]),
    ],
)
def test_an_option_names_waves(text: str, waves: list[Wave]) -> None:
    assert list(parse_waves(text)) == waves


@pytest.mark.parametrize(
    "text", ["", "10%", "50%; 10%; 100%", "10%; 10%; 100%", "0%; 100%", "web1; 100%", "canary: 'nodes; 100%", f"100%; {QUERY}"]
)
def test_waves_that_do_not_reach_all_or_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadData):
        parse_waves(text)


def test_a_file_names_waves_by_text_or_by_name() -> None:
    assert waves_of([{"canary": QUERY}, "10%", "100%"]) == parse_waves(f"canary: {QUERY}; 10%; 100%")
    for wrong in ("10%", [10, "100%"], [{"a": "1%", "b": "2%"}, "100%"]):
        with pytest.raises(BadData):
            waves_of(wrong)


def test_a_node_is_always_in_the_same_wave_and_shares_are_as_large_as_they_say() -> None:
    waves = parse_waves("1%; 10%; 50%; 100%")
    names = [f"node{number}.example.com" for number in range(5_000)]
    sizes = Counter(wave_of(waves, name) for name in names)
    assert all(abs(sizes[wave] - share) < 0.3 * share for wave, share in enumerate((50, 450, 2000, 2500)))
    more = parse_waves("1%; 5%; 10%; 50%; 100%")
    assert all(wave_of(more, name) == 0 for name in names if wave_of(waves, name) == 0)


def test_a_query_goes_before_shares() -> None:
    waves = (Wave("canary", query=QUERY, members=frozenset({"web1"})), Wave("all", 100.0))
    assert [wave_of(waves, name) for name in ("web1", "web2")] == [0, 1]
