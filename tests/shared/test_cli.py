"""Options of commands."""

from __future__ import annotations

import pytest

from shared.cli import invalid_option, value_of
from shared.errors import ConfigError


@pytest.mark.parametrize(
    ("word", "left", "value", "rest"),
    [("--a=b", ["c"], "b", ["c"]), ("--a", ["c", "d"], "c", ["d"]), ("--a=", [], "", []), ("--a=b=c", [], "b=c", [])],
)
def test_a_value_stands_behind_the_option_or_next(word: str, left: list[str], value: str, rest: list[str]) -> None:
    assert value_of(word, left) == value
    assert left == rest


def test_a_value_that_is_missing_and_an_option_that_does_not_exist_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^Could not parse application options: missing argument: --a$"):
        value_of("--a", [])
    error = invalid_option("doc", "--b")
    assert (error.message, error.hint) == ("Could not parse application options: invalid option: --b", "Try 'puppet doc --help'.")
