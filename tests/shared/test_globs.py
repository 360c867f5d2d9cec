"""File name patterns, by Ruby's rules."""

import pytest

from shared.filesystem.globs import Glob
from tests.support.steps import steps_in


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*", "a", True),
        ("*", ".a", False),
        (".*", ".a", True),
        ("\\.*", ".a", True),
        ("[.]a", ".a", False),
        ("*.rb", "x.rb", True),
        ("*.rb", "x.rbx", False),
        ("a*b*c", "aXbYbZc", True),
        ("a*b*c", "aXbY", False),
        ("?", "ab", False),
        ("??", "ab", True),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[^a-c]x", "dx", True),
        ("[abc", "a", False),
        ("[abc", "[abc", False),
        ("[a\\]]", "]", True),
        ("[a-]", "-", True),
        ("\\*", "*", True),
        ("\\*", "x", False),
        ("CVS", "CVS", True),
        ("CVS", "cvs", False),
        ("", "a", False),
        ("*", "", True),
        ("a\\", "a\\", True),
        ("*.{a,b}", "x.a", False),
        ("x\n", "x", False),
        ("é*", "été", True),
        ("é*", "élan", True),
    ],
)
def test_patterns_match_as_fnmatch_does(pattern, name, expected):
    assert Glob(pattern).matches(name) is expected


@pytest.mark.parametrize("pattern", ["[" * 100_000, "*" * 100_000 + "b", "*a" * 50_000, "[a-" * 30_000, "?*" * 50_000])
def test_no_pattern_is_expensive(pattern):
    assert steps_in(lambda: Glob(pattern).matches("a" * 255)) < 20 * len(pattern)


def test_the_worst_that_fits_a_name_stays_cheap():
    glob = Glob("*a" * 120 + "b")
    assert steps_in(lambda: glob.matches("a" * 255)) < 255**2
    assert not glob.matches("a" * 255)
