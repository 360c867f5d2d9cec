"""Ruby's regular expressions on Python's. Origin of what is expected: Ruby 3.1."""

from __future__ import annotations

import pytest

from shared.errors import EvaluationError
from shared.pattern_timeout import PATTERN_TIMEOUT
from shared.regexps import Regexp, quoted, remembered_matches

MATCHES = [
    (r"^b", "a\nb", True),
    (r"^$", "a\n", False),  # no line begins behind a final line break
    (r"a\Z", "a\n", True),
    (r"a\z", "a\n", False),
    (r"a.b", "a\nb", False),
    (r"(?m)a.b", "a\nb", True),
    (r"(?i)ab", "AB", True),
    (r"(?i:a)b", "AB", False),
    (r"x(?i)y", "xY", True),
    (r"x(?i)y|z", "xZ", True),
    (r"x(?i)y|z", "Z", False),
    (r"\A\h+\z", "fF0", True),
    (r"\w", "é", False),
    (r"[[:alpha:]]", "é", True),
    (r"[^[:alpha:]]", "é", False),
    (r"\d", "٣", False),
    (r"\p{Alpha}", "é", True),
    (r"\P{Alpha}", "é", False),
    (r"a++b", "aab", True),
    (r"a++a", "aaa", False),
    (r"(?>a+)b", "aab", True),
    (r"(?<=a)b", "ab", True),
    (r"(?<y>a)\k<y>", "aa", True),
    (r"(a)\1", "aa", True),
    (r"a{", "a{", True),
    (r"^a{,2}$", "aa", True),
    (r"[]a]+", "]a", True),
    (r"[a[^b]]", "c", True),
    (r"[a[^b]]", "b", False),
    (r"[[:upper:]&&[^B]]", "A", True),
    (r"[[:upper:]&&[^B]]", "B", False),
    (r"[^a-z&&[^c]]", "c", True),
    (r"\R", "\r\n", True),
    (r"(?x) a \s b # blank", "a b", True),
    (r"\u00e9", "é", True),
    (r"[\u{e9}]", "é", True),
    (r"\/", "/", True),
    (r"[\w-]+\.conf$", "x-y.conf", True),
    (r"\p{Alpha}", "\U00020000", True),
    (r"[[:alpha:]]", "\U00020000", True),
    (r"[[:punct:]]", "$", True),
    (r"\p{Punct}", "$", False),
    (r"[[:xdigit:]]", "٣", False),
    (r"\p{^Upper}", "A", False),
    (r"(?<=a|bc)x", "bcx", True),
    *((source, "aab", True) for source in ("(?<=a{2})b", "(?<=a{1}{2})b", "(?<=(?:a|bc))b", "(?<=(?:(?:a|bc)))b", "(?<=(a)|b(c))b")),
    *((source, "aab", True) for source in ("(?<=a{,0})b", "(?<!(?:b))b", r"(?<=\ba|(?<=a)a)b", "(?i)(?<=ss|A)b", r"(?<n>a)(?<=\g<n>)b")),
    (r"/\*(?~\*/)\*/$", "/* a **/", True),
    (r"^/\*(?~\*/)\*/$", "/* a */ b */", False),
    (r"^(?~ab)$", "aab", False),
    (r"^(?~ab)b$", "aab", True),
    (r"(?~|b)", "a", False),
    (r"(?<a>x)\g<a>", "xx", True),
    (r"(x)\g<-1>", "xx", True),
    (r"(?<a>\((?:[^()]|\g<a>)*\))$", "(a(b)c)", True),
    (r"^(?<a>\((?:[^()]|\g<a>)*\))$", "(a(b)c", False),
    (r"(a)?(?:b|c)\k<1>", "ca", False),
    (r"(?<n>a)|(?<n>b)\k<n>", "bb", True),
    (r"\Ga", "ba", False),
    (r"^a**$", "aaa", True),
    (r"^a{2}+$", "aaaa", True),
    (r"^(?:a{2}?|b)$", "", True),
    (r"^a{,2}{2}$", "aaaa", True),
    (r"[+--]", "/", False),
    (r"[a||b]", "|", True),
    (r"[a~~b]", "~", True),
    (r"[a&&b]", "a", False),
    (r"(?:ab){e<=1}", "ax", False),
    (r"\L<x>", "L<x>", True),
    (r"(?u)\w", "é", True),
    (r"\u{41 42}", "AB", True),
    (r"\xc3\xa9", "é", True),
    (r"\cA", "\x01", True),
    (r"(?i)straße", "STRASSE", True),
    (r"x(?i)y|(?-i:z)", "Z", False),
    (r"(?(1)a|b)(c)", "bc", True),
]


@pytest.mark.parametrize(("source", "text", "expected"), MATCHES)
def test_matches_what_ruby_matches(source: str, text: str, expected: bool) -> None:
    assert bool(Regexp(source).search(text)) is expected


def test_plain_groups_do_not_capture_beside_named_ones() -> None:
    found = Regexp(r"(?<a>foo)(bar)").search("foobar")
    assert found is not None
    assert found.groups() == ("foo",)


@pytest.mark.parametrize(
    "source", ["(", "[a", "a)", "*", r"\p{Nonsense}", r"(?~a+b)", "a\\", "[z-a]", r"\k<b>", r"(a)\2", "a{3,1}", r"\xff"]
)
def test_what_is_wrong_or_not_supported_is_one_clear_error(source: str) -> None:
    with pytest.raises(EvaluationError, match="/"):
        _ = Regexp(source).pattern


CAPTURES = [
    (r"a.\Kb", "axb", ("b", 2)),
    (r"(?<a>x)(?<a>y)", "xy", ("xy", 0, "x", "y")),
    (r"(x)(?<a>y)", "xy", ("xy", 0, "y")),
    (r"(a)|(b)", "b", ("b", 0, None, "b")),
]


@pytest.mark.parametrize(("source", "text", "expected"), CAPTURES)
def test_a_match_has_the_text_place_and_groups_that_ruby_gives(source: str, text: str, expected: tuple[object, ...]) -> None:
    match = Regexp(source).search(text)
    assert match is not None
    assert (match[0], match.start(), *match.groups()) == expected


LOOK_BEHIND_OF_NO_FIXED_LENGTH = [
    "(?<=a+)b", "(?<=a{1,2})b", "(?<=a{2}?)b", "(?<=a{,2})b", "(?<!a?)b", "(?<=(?:a*){0})b", "(?<=(?:a|bc)d)b", "(?<=(?:a|bc)|)b",
    "(?<=(a|bc))b", "(?<=(?i:a|bc))b", "(?<=x(?i)a|bc)b", "(?<!(a))b", "(?<=(?=a))b", "(?<!(?!b)a)b", "(?<=(?>a))b", r"(?<=\R)b",
    r"(?<=\X)b", r"(a)(?<=\1)b", r"(?<n>a|bc)(?<=\g<n>)b", "(?<=(?~b))b", "(a)(?<=(?(1)a|b))b", "(?=(?<=a+)b)",
]  # fmt: skip
WORDS = [
    (r"\p{Foo}", "invalid character property name {Foo}: /\\p{Foo}/"),
    ("[[:foo:]]", "invalid POSIX bracket type: /[[:foo:]]/"),
    ("a{100001}", "too big number for repeat range: /a{100001}/"),
    (r"(?<n>x)(y)\1", "numbered backref/call is not allowed. (use name): /(?<n>x)(y)\\1/"),
    ("(?<1a>x)", "invalid group name <1a>: /(?<1a>x)/"),
    ("[]", "empty char-class: /[]/"),
    *((source, f"invalid pattern in look-behind: /{source}/") for source in LOOK_BEHIND_OF_NO_FIXED_LENGTH),
    ("(*PRUNE)", "target of repeat operator is not specified: /(*PRUNE)/"),
]


@pytest.mark.parametrize(("source", "message"), WORDS)
def test_what_is_wrong_is_said_in_the_words_of_ruby(source: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        _ = Regexp(source).pattern
    assert caught.value.message == message


RUNAWAY = [(r"^(a|aa)+$", "a" * 70 + "b"), (r"^(.*?,){25}P", "1," * 60), (r"^(a|ab|b)+$", "ab" * 40 + "c")]


@pytest.mark.parametrize(("source", "text"), RUNAWAY)
def test_a_match_ends_with_its_budget_of_processor_time(source: str, text: str) -> None:
    token = PATTERN_TIMEOUT.set(0.02)
    try:
        with pytest.raises(EvaluationError) as caught:
            Regexp(source).search(text)
    finally:
        PATTERN_TIMEOUT.reset(token)
    assert f"/{source}/ takes longer than pattern_timeout (0.02 seconds) on a text of {len(text)} characters" in caught.value.message
    assert text not in caught.value.message
    assert caught.value.hint


def test_an_expression_that_calls_itself_for_ever_is_a_clear_error() -> None:
    token = PATTERN_TIMEOUT.set(0.05)
    try:
        with pytest.raises(EvaluationError, match=r"nests without end|takes longer than pattern_timeout"):
            Regexp(r"(?<a>\g<a>)").search("x")
    finally:
        PATTERN_TIMEOUT.reset(token)


def test_delimiters_are_shown_and_escaped() -> None:
    assert str(Regexp("a/b")) == r"/a\/b/"
    assert str(Regexp(r"a\/b")) == r"/a\/b/"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("é", "/(?-mix:é)/"),
        (r"\p{L}", r"/(?-mix:\p{L})/"),
        (r"\xc3\xa9/", r"/(?-mix:\xc3\xa9\/)/"),
        ("(?i:É)", "/(?i-mx:É)/"),
        (r"\\u", r"/\\u/"),
    ],
)
def test_what_ruby_reads_as_unicode_is_shown_with_its_options(source: str, shown: str) -> None:
    assert str(Regexp(source)) == shown


def test_quoted_text_matches_itself() -> None:
    text = "a.b*c[d]\n\t{e}$ ^#-"
    found = Regexp(quoted(text)).search(text)
    assert found is not None
    assert found[0] == text


def test_answers_for_short_texts_are_remembered_in_a_block_and_forgotten_behind_it() -> None:
    pattern, text = Regexp("(a+)+b"), "a" * 20 + "c"
    with remembered_matches():
        assert pattern.search(text) is None
        budget = PATTERN_TIMEOUT.set(0.000001)
        try:
            assert pattern.search(text) is None
            with pytest.raises(EvaluationError, match="takes longer than pattern_timeout"):
                pattern.search(text, 1)
        finally:
            PATTERN_TIMEOUT.reset(budget)
    budget = PATTERN_TIMEOUT.set(0.000001)
    try:
        with pytest.raises(EvaluationError, match="takes longer than pattern_timeout"):
            pattern.search(text)
    finally:
        PATTERN_TIMEOUT.reset(budget)
