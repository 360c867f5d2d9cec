from __future__ import annotations

import random
import re
import time
from dataclasses import replace

import pytest

from master.http.auth import Client, Entry, Pattern, Question, Rule, allowed
from master.http.auth_patterns import regex
from master.http.expressions import MOST_TEXT, Expression, Unbounded
from shared.errors import ConfigError, Denied, Location

RUNAWAY = [
    r"(a+)+$",
    r"^(a|a)*$",
    r"^(a|aa)+$",
    r"(?:.*)*x",
    "^" + "a?" * 30 + "a" * 30 + "$",
    r"(x+x+)+y",
    r".*.*.*.*.*=",
    r"(a{1,8}){1,9}b",
]


def walked(expression: Expression) -> Expression:
    """The same, as it is matched when Python's engine is not to be trusted with it."""
    return replace(expression, _pattern=None)


@pytest.mark.parametrize("source", RUNAWAY)
@pytest.mark.parametrize("text", ["a" * 60 + "!", "a" * 900 + "!", "x" * 5000, "/" * 8000])
def test_no_pattern_takes_longer_than_its_text_is_long(source: str, text: str) -> None:
    began = time.process_time()
    try:
        Expression.of(source).search(text)
    except Denied:
        assert len(text) > MOST_TEXT
    assert time.process_time() - began < 5  # the shortest of these would take Python's engine years


def test_what_runs_away_is_still_found_where_it_is() -> None:
    assert Expression.of(r"^(a+)+$").search("a" * 60) == ("a" * 60,)
    assert Expression.of(r"^(a+)+$").search("a" * 60 + "!") is None


def test_usual_patterns_go_to_pythons_engine() -> None:
    for source in (r"^/catalog/([^/]+)$", r"^/puppet/v3/(catalog|node)/(\w+)[.](.+)$", r"\.example\.com$", r"^/x/(?!secret)[^/]+$"):
        assert Expression.of(source)._pattern is not None


@pytest.mark.parametrize("source", [r"(.*)*x", r"(a{1,40}){1,20}b", r"(?=(a+)+)x", r"(a+)+\1", r"((?>a+)b?)+(a+)+", r"(a+)+" * 400])
def test_what_can_be_bounded_in_no_way_is_refused_when_the_rules_are_read(source: str) -> None:
    with pytest.raises(Unbounded):
        Expression.of(source)
    with pytest.raises(ConfigError, match=r"is refused: it may take longer.*\(file: auth.conf, line: 3\)") as failed:
        regex(source, Location("auth.conf", 3))
    assert failed.value.hint


def test_looking_around_is_fine_where_it_is_cheap_and_denied_on_what_is_too_long() -> None:
    expression = Expression.of(r"^/x/(?!secret)([^/]+)$")
    assert expression.search("/x/open") == ("open",) and expression.search("/x/secret") is None
    with pytest.raises(Denied, match="too long for the rules"):
        expression.search("/x/" + "y" * 2000)


def test_a_rule_with_a_runaway_pattern_decides() -> None:
    rule = Rule("~", Pattern(regex(r"^/file/((a+)+)$", Location("f", 1))), (Entry(True, "captured", "$1.test"),), line=1)
    client = Client("aaaa.test", "127.0.0.1", True)
    assert allowed([rule], Question(("/file/aaaa",), "find", None, client)).allowed
    assert not allowed([rule], Question(("/file/" + "a" * 100 + "!",), "find", None, client)).allowed


# --- both ways find the same

ATOMS = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    r"\d",
    r"\b",
    "^",
    "$",
    "(a)",
    "(?:ab)",
    "(a|b)",
    "(b|ab|a)",
    "(|a)",
    r"\.",
    "[a-c/]",
    "(?P<n>b)",
]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"]


def test_walking_finds_what_pythons_engine_finds() -> None:
    """Thousands of patterns and texts; only those of which Python's engine is known to have few ways."""
    chance = random.Random(20260101)
    compared = 0
    for _ in range(4000):
        parts = [chance.choice(ATOMS) + chance.choice(REPEATS) for _ in range(chance.randrange(1, 5))]
        source = "".join(parts)
        try:
            expression = Expression.of(source)
        except (re.error, Unbounded):
            continue  # "^*", or a name twice; groups that may hold nothing
        if expression._program is None:
            continue
        for _ in range(4):
            text = "".join(chance.choice("ab./1c") for _ in range(chance.randrange(8)))
            found = re.compile(source).search(text)
            wanted = None if found is None else tuple(group or "" for group in found.groups())
            assert walked(expression).search(text) == wanted, (source, text)
            compared += 1
    assert compared > 8000


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"(?i)^WEB\d+$", "web12"),
        (r"(?i)[^a-c]x", "Ax dX"),
        (r"\Aweb\Z", "web"),
        (r"(a+)*b", "aab"),
        (r"((a)|b)*", "ab"),
        (r"\Bb", "ab"),
        (r"\S+\s\D", "ab 1 c"),
        (r"é+", "caféé"),
        ("a$", "a\n"),
    ],
)
def test_walking_knows_the_rest_of_the_syntax(source: str, text: str) -> None:
    found = re.compile(source).search(text)
    wanted = None if found is None else tuple(group or "" for group in found.groups())
    assert walked(Expression.of(source)).search(text) == wanted
