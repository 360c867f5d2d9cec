from __future__ import annotations

from typing import NoReturn

import pytest

from shared import names
from shared.errors import BadName

GOOD = ["x", "a.example.com", "_x._tcp.example.com", "10.0.0.5", "web-1", "a_b", "9", "a" * 64, "a--b", "x-1.y-2"]
BAD = [
    "", ".", "..", "-rf", "--help", " a", "a ", "a\n", "a\x00b", "a\t", "a..b", "a.-b", "a-", "a.", ".a", "a/b", "a\\b", "A",
    "Agent.Example.com",
    "ägent",
    "\u0430gent", "agent\u2024example", "\uff41gent", "web\x08db",
    "web\x1b[2K", "\u202eweb", "a" * 65,
    "a%2fb", "*", "a*", "c:x", "a-.b", "a" * 60 + "-.",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_certname_is_given_back_as_it_is(name: str) -> None:
    assert names.valid_certname(name) is name


@pytest.mark.parametrize("name", BAD)
def test_what_breaks_the_rule_is_refused_and_shown_escaped(name: str) -> None:
    with pytest.raises(BadName) as caught:
        names.valid_certname(name)
    assert str(caught.value).isprintable()
    assert str(caught.value).isascii() or "…" in str(caught.value)


class UndividedText(str):
    """Text whose characters and parts nobody may look at."""

    def _refuse(self, *_: object) -> NoReturn:
        raise AssertionError("only the length may be looked at")

    split = __iter__ = _refuse


@pytest.mark.parametrize("name", ["a-" * 5000, "1a-" * 22000, "." * 100_000])
def test_of_a_certname_that_is_too_long_only_the_length_is_looked_at(name: str) -> None:
    with pytest.raises(BadName, match="is longer than 64 characters"):
        names.valid_certname(UndividedText(name))


@pytest.mark.parametrize("name", ["ca", "master.example.com"])
def test_reserved_names_cannot_be_requested(name: str) -> None:
    with pytest.raises(BadName, match="reserved"):
        names.valid_requested_certname(name, master="master.example.com")


@pytest.mark.parametrize("name", ["production", "a_b", "E2"])
def test_an_environment_is_made_of_word_characters(name: str) -> None:
    assert names.valid_environment(name) == name


@pytest.mark.parametrize("name", ["", "a-b", "../x", "prod;id", "a\x00", "\uff41", "a" * 10_000, "a\n", "a b"])
def test_other_environment_names_are_refused(name: str) -> None:
    with pytest.raises(BadName, match="purely alphanumeric"):
        names.valid_environment(name)


@pytest.mark.parametrize("key", ["..", "../x", "a/b", "a\\b", "a\x00", "c:x", ".hidden", "-x", "", "x" * 300, "a\nb"])
def test_a_key_that_is_no_plain_file_name_is_refused(key: str) -> None:
    with pytest.raises(BadName):
        names.valid_file_key(key)
