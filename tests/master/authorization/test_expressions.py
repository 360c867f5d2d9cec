from __future__ import annotations

import re
from typing import Any

import pytest

from master.authorization.expressions import Expression
from master.authorization.patterns import ruby_regex
from master.authorization.rules import AccessRequest, AclEntry, Client, PathRegex, Rule, decide
from shared.errors import ConfigError, Denied, Location

HERE = Location("auth.conf", 3)
RUNAWAY = [r"^((?:\w+\s?)*)$", r"^(a|aa)+$", r"(x+x+)+y", r"(a{1,8}){1,9}b", "^" + "a?" * 30 + "a" * 30 + "$"]


@pytest.mark.parametrize("source", RUNAWAY)
@pytest.mark.parametrize("text", ["a" * 60 + "!", "a" * 900 + "!", "x" * 5000, "/" * 8000])
def test_no_pattern_holds_up_the_loop(source: str, text: str) -> None:
    """The worst of these has more ways than anybody could wait for."""
    expression = Expression.of(source)
    try:
        found = expression.search(text)
        assert found is None or found[0] == text
    except Denied as err:
        assert "takes too long" in err.message and source in (err.hint or "")


def test_a_pattern_that_is_nested_too_deeply_is_named() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        ruby_regex("(" * 3000 + ")" * 3000, HERE)


def test_what_may_run_away_decides_where_it_does_not() -> None:
    rule = Rule("~", PathRegex(ruby_regex(r"^/file/((a+)+)$", HERE)), (AclEntry(True, "captured", "$1.test"),), line=1)
    client = Client("aaaa.test", "127.0.0.1", True)
    assert decide([rule], AccessRequest(("/file/aaaa",), "find", None, client)).allowed


def test_a_path_on_which_a_rule_runs_away_is_denied() -> None:
    rule = Rule("~", PathRegex(ruby_regex(r"^/file/((a|aa)+)$", HERE)), (AclEntry(True, "all", "*"),), line=1)
    with pytest.raises(Denied):
        decide([rule], AccessRequest(("/file/" + "a" * 100 + "!",), "find", None, Client("web1.test", "127.0.0.1", True)))


def test_looking_around_and_groups_without_a_part_are_fine() -> None:
    expression = Expression.of(r"^/x/(?!secret)([^/]+)(/y)?$")
    assert expression.search("/x/open") == ("open", "") and expression.search("/x/secret") is None
    assert expression.groups == 2 and expression == Expression.of(expression.source)


def test_what_is_no_regular_expression_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"is not valid: .*\(file: auth.conf, line: 3\)"):
        ruby_regex("(a", HERE)


def test_a_match_whose_time_another_thread_has_spent_is_tried_again() -> None:
    class Interrupted:
        """A pattern that has no time left for its first match."""

        tries = 0

        def search(self, text: str, timeout: float) -> object:
            self.tries += 1
            if self.tries == 1:
                raise TimeoutError
            return re.search("^/a(.)", text)

    pattern: Any = Interrupted()
    assert Expression("^/a(.)", pattern).search("/ab") == ("b",)
    assert pattern.tries == 2
