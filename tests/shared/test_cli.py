"""Options of commands."""

from __future__ import annotations

import pytest

from shared.errors import ConfigError
from shared.process.cli import invalid_option, options_in, value_of


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


def test_an_option_that_is_nearly_one_of_the_commands_own_or_a_setting_is_answered_with_that_one() -> None:
    usage = "--test, -t   one run\n--[no-]allow-names   or not"
    assert options_in(usage) == {"test", "allow-names"}
    hints = [
        invalid_option("agent", word, options_in(usage)).hint for word in ("--tets", "--allow-name=x", "--no-allow-name", "--sever", "-x")
    ]
    assert [hint.partition(" Try")[0] for hint in hints[:-1]] == [
        f"Did you mean --{name}?" for name in ("test", "allow-names", "no-allow-names", "server")
    ]
    assert hints[-1] == "Try 'puppet agent --help'."
