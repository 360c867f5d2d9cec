"""`puppet facts`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bunraku.commands.facts import main
from shared import __version__
from shared.data import plainyaml
from shared.errors import ConfigError
from shared.wire.dialects import MODERN

pytestmark = pytest.mark.slow  # they gather this machine's facts


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    (tmp_path / "facts.d").mkdir()
    (tmp_path / "facts.d" / "mine.json").write_text('{"mine": {"list": ["a", 1]}}')
    return [f"--confdir={tmp_path}", f"--vardir={tmp_path}", f"--logdir={tmp_path}", f"--rundir={tmp_path}"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["show", "mine.list.1", "kernel"], {"mine.list.1": 1, "kernel": "Linux"}),
        (["kernel"], {"kernel": "Linux"}),
        (["show", "nosuch"], {"nosuch": ""}),
        (["mine", "--yaml"], {"mine": {"list": ["a", 1]}}),
        (["mine", "--render-as", "yaml"], {"mine": {"list": ["a", 1]}}),
        (["--value-only", "mine"], {"list": ["a", 1]}),
    ],
)
def test_facts_are_shown_by_name(words: list[str], expected: object, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, *options]) == 0
    output = capsys.readouterr().out
    assert (plainyaml.loads(output) if any("yaml" in word for word in words) else json.loads(output)) == expected


def test_a_single_text_is_printed_bare(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--value-only", "kernel", *options]) == 0
    assert capsys.readouterr().out == "Linux\n"


def test_without_names_all_structured_facts_are_shown_and_flat_ones_on_demand(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(options)
    plain = json.loads(capsys.readouterr().out)
    main(["show", "--show-legacy", *options])
    legacy = json.loads(capsys.readouterr().out)
    assert "os" in plain
    assert "osfamily" not in plain
    assert legacy["osfamily"] == plain["os"]["family"]


def test_find_wraps_them_as_a_master_gets_them(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["find", "node1", *options])
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "node1"
    assert found["values"]["mine"] == {"list": ["a", 1]}
    assert found["values"]["clientversion"] == found["values"]["puppetversion"]
    assert {"clientcert", "clientnoop"} <= found["values"].keys()


@pytest.mark.parametrize(("fact", "version"), [("puppetversion", MODERN.version), ("bunrakuversion", __version__)])
def test_both_versions_are_facts(fact: str, version: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--value-only", fact, *options]) == 0
    assert capsys.readouterr().out == f"{version}\n"


def test_an_unknown_option_is_refused(options: list[str]) -> None:
    with pytest.raises(ConfigError, match="invalid option: --nosuch"):
        main(["show", "--nosuch", *options])


def test_folders_of_facts_and_facters_configuration_can_be_given(
    tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(f"from_{name}={name}\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "x.py").write_text("from agent.facts import fact\n\n@fact()\ndef own(host, known):\n    return 'own'\n")
    (tmp_path / "facter.conf").write_text('facts : { blocklist : [ "two.txt" ] }')
    given = [f"--external-dir={tmp_path}/one", "--external-dir", f"{tmp_path}/two", f"--custom-dir={tmp_path}/own"]
    asked = ["show", "own", "from_two", "from_one", "mine.list.0"]
    assert main([*asked, *given, *options]) == 0
    assert json.loads(capsys.readouterr().out) == {"from_one": "one", "from_two": "two", "mine.list.0": "a", "own": "own"}
    assert main([*asked, *given, "--config-file", f"{tmp_path}/facter.conf", *options]) == 0
    assert json.loads(capsys.readouterr().out)["from_two"] == ""


@pytest.mark.parametrize("action", ["show", "find"])
def test_modules_of_a_modulepath_have_facts(action: str, tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        (tmp_path / name / name / "facts.d").mkdir(parents=True)
        (tmp_path / name / name / "facts.d" / "x.txt").write_text(f"from_{name}={name}\n")
    assert main([action, f"--modulepath={tmp_path}/one:{tmp_path}/two", *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    values = answer if action == "show" else answer["values"]
    assert (values["from_one"], values["from_two"]) == ("one", "two")


def test_a_bare_value_can_be_had_as_json(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--value-only", "kernel", "--render-as", "json", *options]) == 0
    assert capsys.readouterr().out == '"Linux"\n'
