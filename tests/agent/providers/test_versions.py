"""The order of versions, for each package manager; ranges."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agent.providers.package.apk import order as apk
from agent.providers.package.gem import pessimistic
from agent.providers.package.versions import Order, compare_debian, compare_gem, compare_pep440, compare_rpm, compare_rpm_part, range_of

ASCENDING = [
    (compare_debian, "1.0~rc1-1 1.0-1 1.0-1+b1 1.0-2 1.0.1-1 1.9 1.10 1.10a 1:0.1"),
    (compare_debian, "2.0~~ 2.0~~a 2.0~ 2.0 2.0a 2.0+"),
    (compare_rpm_part, "1.0~rc1 1.0 1.0^git1 1.0.a 1.0.1 1.9 1.10 2"),
    (compare_pep440, "1.0.dev1 1.0a1.dev1 1.0a1 1.0b2 1.0rc1 1.0 1.0.post1 1.0.1 1.9 1.10 1!0.1"),
    (compare_gem, "1.0.a 1.0.a10 1.0.b1 1.0 1.0.1 1.9 1.10"),
    (apk, "1.0_alpha1-r0 1.0_rc1-r0 1.0-r0 1.0-r1 1.0.1-r0 1.10-r0"),
]


@pytest.mark.parametrize(("order", "versions"), ASCENDING)
def test_versions_have_the_order_of_their_package_manager(order: Order, versions: str) -> None:
    for lower, higher in pairwise(versions.split()):
        assert order(lower, higher) < 0, (lower, higher)
        assert order(higher, lower) > 0, (lower, higher)
        assert order(lower, lower) == 0


@pytest.mark.parametrize(
    ("order", "one", "other"),
    [
        (compare_debian, "0:1.0", "1.0-0"),
        (compare_debian, "1.00", "1.0"),
        (compare_pep440, "1.0.0", "1"),
        (compare_pep440, "1.0-1", "1.0.post1"),
        (compare_pep440, "v1.0C1", "1.0rc1"),
        (compare_gem, "1.0.0", "1"),
        (compare_rpm, "3:1.0-7.el9", "1.0"),
        (compare_rpm, "1.0-7", "1.0-7"),
        (compare_rpm, "1.0-7.el9", "1.0-7.el9"),
    ],
)
def test_some_versions_are_the_same(order: Order, one: str, other: str) -> None:
    assert order(one, other) == 0


def test_the_release_of_an_rpm_counts_where_it_is_wanted() -> None:
    assert compare_rpm("1.0-7", "1.0-8") < 0
    assert compare_rpm("1:1.0-7", "2:0.9-1") < 0
    assert compare_rpm("2:0.9-1", "1.0") < 0


RANGES = [
    (compare_debian, ">=1.0-1 <2.0~", ["1.0-1", "1.1-1"], "1.1-1"),
    (compare_debian, "> 1", None, None),
    (compare_debian, "1.1-1", ["1.1-1"], "1.1-1"),
    (compare_debian, ">=1.0-1 garbage", None, None),
    (compare_debian, "=>1.0", None, None),
    (compare_debian, "not a version", None, None),
    (compare_debian, ">=1 <2 <3", None, None),
    (compare_debian, ">3", [], None),
]


@pytest.mark.parametrize(("order", "text", "inside", "best"), RANGES)
def test_ranges_have_one_or_two_terms(order: Order, text: str, inside: list[str] | None, best: str | None) -> None:
    available = ["1.0-1", "2.0~rc1-1", "1.1-1"]
    parsed_range = range_of(text, order)
    assert (parsed_range is None) == (inside is None)
    if parsed_range is not None:
        assert [version for version in available if parsed_range.has(version)] == inside
        assert parsed_range.best(available) == best
        assert not parsed_range.has("nonsense")


@pytest.mark.parametrize(
    ("term", "ours"),
    [("~> 1.2.3", ">=1.2.3 <1.3"), ("~> 1.2", ">=1.2 <2"), ("~> 2", ">=2 <3"), (">= 1.0", ">=1.0"), ("= 1.0", "1.0"), ("1.0", "1.0")],
)
def test_rubygems_own_terms_are_ranges_too(term: str, ours: str) -> None:
    assert pessimistic(term) == ours
