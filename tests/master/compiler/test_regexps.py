"""Ruby's regular expressions on Python's. Origin of what is expected: Ruby 3.1."""

from __future__ import annotations

import pytest

from master.compiler.regexps import Regexp, quoted
from shared.errors import EvaluationError

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
]


@pytest.mark.parametrize(("source", "text", "expected"), MATCHES)
def test_matches_what_ruby_matches(source: str, text: str, expected: bool) -> None:
    assert bool(Regexp(source).search(text)) is expected


def test_plain_groups_do_not_capture_beside_named_ones() -> None:
    found = Regexp(r"(?<a>foo)(bar)").search("foobar")
    assert found is not None
    assert found.groups() == ("foo",)


@pytest.mark.parametrize("source", ["(", "[a", "a)", "*", r"\p{Nonsense}", r"(?<a>x)\g<a>", "a\\"])
def test_what_is_wrong_or_not_supported_is_one_clear_error(source: str) -> None:
    with pytest.raises(EvaluationError, match="/"):
        _ = Regexp(source).pattern


def test_delimiters_are_shown_and_escaped() -> None:
    assert str(Regexp("a/b")) == r"/a\/b/"
    assert str(Regexp(r"a\/b")) == r"/a\/b/"


def test_quoted_text_matches_itself() -> None:
    text = "a.b*c[d]\n\t{e}$ ^#-"
    found = Regexp(quoted(text)).search(text)
    assert found is not None
    assert found[0] == text
