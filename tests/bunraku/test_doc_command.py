"""`puppet doc`."""

from __future__ import annotations

import json

import pytest

from language.functions.stdlib import stdlib_functions
from language.loading.builtins import all_functions
from shared.settings import AgentSettings, MasterSettings
from shared.types import builtin_types
from tests.support.command_line import Said


@pytest.fixture
def doc(capsys: pytest.CaptureFixture[str]) -> object:
    from bunraku.puppet import main

    return lambda *words: Said(main(["doc", *words]), *capsys.readouterr())


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("function", {*all_functions(), *stdlib_functions()}),
        ("type", set(builtin_types())),
        ("configuration", {*AgentSettings.model_fields, *MasterSettings.model_fields}),
        ("metaparameter", {"before", "require", "notify", "subscribe", "noop", "audit", "schedule", "tag", "loglevel", "alias", "stage"}),
    ],
)
def test_a_reference_has_an_entry_with_a_text_for_everything(reference, names, doc) -> None:
    said = doc("--reference", reference, "--json")
    entries = json.loads(said.out)
    assert said.code == 0 and {each["name"] for each in entries} >= names
    assert [each["name"] for each in entries if not each["text"]] == []
    titles = [line.removeprefix("## ") for line in doc("-r", reference).out.splitlines() if line.startswith("## ")]
    assert titles == [each["name"] for each in entries]


def test_functions_are_listed_with_their_signatures(doc) -> None:
    (split,) = json.loads(doc("-r", "function", "split", "--json").out)
    assert "split(String str, String pattern)" in split["signatures"]
    text = doc("-r", "function", "include").out
    assert text.startswith("## include\n\n") and "```puppet\ninclude(Any names+)\n```" in text


def test_settings_are_listed_with_their_defaults(doc) -> None:
    assert "- *default*: 30m" in doc("-r=configuration", "runinterval").out


def test_what_there_is_can_be_asked_for(doc) -> None:
    assert [line.split(" - ")[0] for line in doc("--list").out.splitlines()] == ["configuration", "function", "metaparameter", "type"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-r", "nosuch"], "Could not find reference nosuch"),
        (["nosuch"], "The reference type has no nosuch"),
        (["-r"], "Could not parse application options: missing argument: -r"),
        (["--nosuch"], "Could not parse application options: invalid option: --nosuch"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words, message, doc) -> None:
    said = doc(*words)
    assert (said.code, said.out) == (1, "") and said.err.startswith(f"Error: {message}\n")
