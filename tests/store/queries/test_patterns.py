"""Regular expressions mean the same on both databases: what PostgreSQL says about them, as far as that depends on no locale."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError

from store.database.functions import MatchBudget
from store.queries.language.patterns import MAX_DEPTH, MAX_PATTERN, translate
from store.queries.questions import QueryRefused
from tests.support.examples import examples
from tests.support.postgresql import PostgresqlServer

TEXTS = [
    "", "a", "b", "ab", "aab", "abc", "ABC", "web1.example.com", "xweb", "web x", "a b\nc", "\n",
    "a\nb", "aaaa", "{a}", "a{,2}", "a]b", "1", "12",
    "a.b", "a*b", "-", "a-z", "_", "a_1", "\t", "\x08", "\\", "a\\b", "^", "$",
    "[a]", "(a)", "a|b", "?", "+", "aa bb", "Web", "WEB.", "\x7f",
]  # fmt: skip
ODD_TEXTS = ["٣", "é", "É", "ſ", "\u212a", "kůň", "web\u00a0", "\u2028", "\x85", "😀", "ß", "ẞ", "a٣", "éa", "Straße", "İ", "ǆ"]


@pytest.fixture(scope="module")
def connection(postgresql: PostgresqlServer) -> Iterator[Connection]:
    engine = create_engine(postgresql.address("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def on_postgresql(connection: Connection, pattern: str, texts: list[str]) -> list[bool] | None:
    """Return which texts match; None for what is no regular expression."""
    statement = text("SELECT array_agg(t ~ :pattern ORDER BY n) FROM unnest(CAST(:texts AS text[])) WITH ORDINALITY AS u(t, n)")
    try:
        return list(connection.execute(statement, {"pattern": pattern, "texts": texts}).scalar_one())
    except DBAPIError as err:
        assert "invalid regular expression" in str(err), err
        return None


def on_sqlite(pattern: str, texts: list[str]) -> list[bool]:
    """Return which texts match, as SQLite is told. Nothing that `regex` doubts may be in a translation."""
    budget = MatchBudget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [bool(budget.regexp(pattern, each)) for each in texts]


def refusal(pattern: str) -> str:
    with pytest.raises(QueryRefused) as refused:
        translate(pattern)
    return refused.value.message.removeprefix("ERROR: ").removeprefix("invalid regular expression: ")


ATOMS = st.sampled_from([
    *"abcwex1 .{}]-_,", "^", "$", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\m", r"\M", r"\y", r"\Y", r"\A", r"\Z",
    r"\.", r"\\", r"\n", r"\t",
    r"\x61", r"\u0062", r"\U00000063", r"\cH", r"\B", "[ab]", "[^a]", "[]a]", "[^]a]", "[a-c]", "[-a]",
    "[a-]", r"[\d_]", r"[\w.]", "[[:alpha:]]",
    "[^[:digit:] ]", "[[:punct:]]", "[[:space:]x]", "[[:<:]]", "[[:>:]]",
    r"[\]a]", "[.*+?(){}|^$]", r"[\n-\r]", "[[:word:]]", "[a-c1-3]", "[:a:]",
])  # fmt: skip
QUANTIFIERS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0}", "{1,}", "{0,2}", "{2,3}", "*?", "+?", "??", "{1,2}?", "{,2}"])
GROUPS = st.sampled_from(["(", "(?:", "(", "(?=", "(?!", "(?<=", "(?<!"])
PATTERNS = st.recursive(
    st.tuples(ATOMS, QUANTIFIERS).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.tuples(GROUPS, inner, st.just(")"), QUANTIFIERS).map("".join),
    ),
    max_leaves=8,
)
WITH_OPTIONS = st.tuples(st.sampled_from(["", "", "", "(?i)", "(?c)", "(?s)", "***:", "***=", "***:(?i)"]), PATTERNS).map("".join)
ODD = st.text(st.sampled_from("aé٣(){}[]*+?|\\^$.:=!<>-,20123PbdpgkxuURQEZzG&~#'\"i\n"), max_size=10)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(pattern=st.one_of(WITH_OPTIONS, ODD))
def test_PDB_13_generated_patterns_match_the_same_on_both_databases_as_postgresql_says(connection: Connection, pattern: str) -> None:
    expected = on_postgresql(connection, pattern, TEXTS) if pattern.isascii() else []
    try:
        translated = translate(pattern)
    except QueryRefused:
        return
    assert expected is not None, "PostgreSQL refuses it"
    matches = on_sqlite(translated, TEXTS + ODD_TEXTS)
    assert matches == on_postgresql(connection, translated, TEXTS + ODD_TEXTS)
    assert not pattern.isascii() or matches[: len(TEXTS)] == expected


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(pattern=WITH_OPTIONS)
def test_PDB_13_what_is_built_of_common_parts_is_refused_only_if_postgresql_refuses_it(connection: Connection, pattern: str) -> None:
    try:
        translate(pattern)
    except QueryRefused as err:
        assert on_postgresql(connection, pattern, TEXTS) is None or "complex" in err.message, err.message


SAME = {
    r"\d": ["1", "12"],
    "[[:alpha:]]": ["a", "éa"],
    "a{,2}": ["a{,2}"],
    r"^[[:<:]]web": ["web x", "web1.example.com", "web\u00a0"],
    "***=a.b": ["a.b"],
    "(?i)^É$": ["é", "É"],
    "(?i)^s$": [],
    r"^\Z|^.$": ["٣", "ſ", "é", "É", "\n", "-", ""],
}


@pytest.mark.parametrize("pattern", SAME)
def test_a_pattern_that_the_databases_took_differently_has_one_meaning(connection: Connection, pattern: str) -> None:
    texts = [
        "1",
        "12",
        "٣",
        "a",
        "éa",
        "ſ",
        "é",
        "É",
        "a{,2}",
        "aa",
        "web x",
        "web1.example.com",
        "web\u00a0",
        "xweb",
        "a.b",
        "axb",
        "\n",
        "-",
        "",
    ]
    matches = on_sqlite(translate(pattern), texts)
    assert matches == on_postgresql(connection, translate(pattern), texts)
    found = [each for each, is_match in zip(texts, matches, strict=True) if is_match]
    assert set(SAME[pattern]) <= set(found)
    assert SAME[pattern] != [] or found == []


REFUSED = {
    r"(a)\1": "back references are not supported, at character 4",
    r"\bweb": r"\b is not supported; \y is the begin or end of a word, at character 1",
    "^W(?i)eb": "(?i) is not supported, at character 3",
    "(?P<n>a)": "(?P< is not supported, at character 1",
    "(?>a)": "(?>a is not supported, at character 1",
    r"\p{L}": "invalid escape \\ sequence, at character 1",
    "a++": "quantifier operand invalid, at character 3",
    "a**": "quantifier operand invalid, at character 3",
    "*a": "quantifier operand invalid, at character 1",
    "^*": "quantifier operand invalid, at character 2",
    "(?x)a b": "the option x is not supported, at character 3",
    "[": "brackets [] not balanced",
    "[[.hyphen.]]": "[. is not supported, at character 2",
    "[[:nosuch:]]": "invalid character class, at character 2",
    "[z-a]": "invalid character range, at character 5",
    "(?i)[é-ž]": "a range beyond ASCII together with the option i is not supported, at character 9",
    "(a": "parentheses () not balanced",
    "a)": "parentheses () not balanced",
    "a{2": "braces {} not balanced, at character 2",
    "a{3,2}": "invalid repetition count(s), at character 2",
    "a{256}": "invalid repetition count(s), at character 2",
    "a\\": "invalid escape \\ sequence",
    r"\ud800": "invalid escape \\ sequence, at character 1",
    "(x{1,255}){1,255}": "regular expression is too complex, at character 18",
    "((((a?){60}){60}){60})": "regular expression is too complex, at character 17",
    "(" * 101 + ")" * 101: f"groups are nested more than {MAX_DEPTH} deep",
    "((((" * 1000: f"groups are nested more than {MAX_DEPTH} deep",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_the_databases_do_not_read_alike_is_refused_by_name_and_place(pattern: str) -> None:
    assert refusal(pattern) == REFUSED[pattern]


def test_PDB_13_a_pattern_is_bounded_in_length_and_depth() -> None:
    with pytest.raises(QueryRefused, match=f"longer than {MAX_PATTERN}"):
        translate("a" * (MAX_PATTERN + 1))
    assert on_sqlite(translate("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH), ["a"]) == [True]
    assert on_sqlite(translate("a" * MAX_PATTERN), ["a"]) == [False]


def test_a_whole_pattern_is_no_part_of_a_text() -> None:
    assert on_sqlite(translate("(?i)a|b", is_whole=True), ["A", "b", "ab"]) == [True, True, False]
    with pytest.raises(QueryRefused, match="not balanced"):
        translate("a)|(b", is_whole=True)
