"""Options of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.process.cli import CommandOptions, flag, invalid_option, maybe_flag, maybe_text, optional_text, parse_options, text, texts
from shared.settings import AgentSettings


@dataclass(frozen=True, slots=True)
class Options(CommandOptions):
    """One option of each kind."""

    same_key: bool = flag("use the same key", "-k", off=("--other-key",))
    cache: bool = flag("forget nothing", default=True, negatable=True)
    allow_names: bool | None = maybe_flag(None)
    name: str = text("NAME", "whose key", "-n", default="x")
    code: str | None = maybe_text("CODE", "code")
    only: tuple[str, ...] = texts("WHAT", "nothing else")
    disable: str | None = optional_text("WHY", "stop")


def parse(*words: str, **more: Any) -> Options:
    return parse_options(Options, "some", words, AgentSettings, **more)[0]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], Options()),
        (["a", "--", "--cache", "--"], Options(arguments=("a", "--cache", "--"))),
        (["--same-key", "-"], Options(arguments=("-",), same_key=True)),
        (["--same_key", "--other-key", "-h"], Options(help=True)),
        (["-k", "--no-cache"], Options(same_key=True, cache=False)),
        (["--no-allow-names"], Options(allow_names=False)),
        (["--name=a=b", "--code", "--noop"], Options(name="a=b", code="--noop")),
        (["-n", "--", "--code="], Options(name="--", code="")),
        (["--only", "a", "--only=b"], Options(only=("a", "b"))),
        (["--disable", "why", "b"], Options(disable="why", arguments=("b",))),
        (["--disable", "--cache"], Options(disable="")),
        (["--disable"], Options(disable="")),
        (["--disable=why"], Options(disable="why")),
    ],
)
def test_words_become_the_fields_of_a_dataclass(words: list[str], options: Options) -> None:
    assert parse(*words) == options


def test_settings_are_options_too_and_give_way_to_the_commands_own() -> None:
    options, flags = parse_options(Options, "some", ["-v", "--name", "b", "--server", "c", "--no-daemonize"], AgentSettings)
    assert (options.name, flags) == ("b", {"verbose": True, "server": "c", "daemonize": False})


def test_a_word_like_an_option_is_an_argument_where_that_is_allowed() -> None:
    assert parse("a", "b", "-x", arguments_only_after=2).arguments == ("a", "b", "-x")
    with pytest.raises(ConfigError, match="invalid option: -x"):
        parse("a", "-x", arguments_only_after=2)


@pytest.mark.parametrize("words", [["--name"], ["-n"], ["--only"]])
def test_a_value_that_is_missing_is_named(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"^Could not parse application options: missing argument: {words[0]}$"):
        parse(*words)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--same-kee", "Did you mean --same-key? "),
        ("--cache=x", "Did you mean --cache? "),
        ("--no-cach", "Did you mean --no-cache? "),
        ("--sever", "Did you mean --server? "),
        ("-x", ""),
    ],
)
def test_an_option_that_does_not_exist_is_answered_with_one_that_is_close(word: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(word)
    assert (caught.value.message, caught.value.hint) == (
        f"Could not parse application options: invalid option: {word}",
        f"{hint}Try 'puppet some --help'.",
    )
    assert invalid_option("doc", "--b").hint == "Try 'puppet doc --help'."
    unused = "That is a setting which this command does not use, or not in this form. Try 'puppet doc --help'."
    assert invalid_option("doc", "--store-port=3").hint == invalid_option("doc", "--no-server").hint == unused
