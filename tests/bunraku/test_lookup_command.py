"""`puppet lookup`: what it prints, held against recordings of Puppet 7.23."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bunraku.commands.lookup import main
from shared.errors import ConfigError, EvaluationError

HERE = Path(__file__).parent / "data"
CASES: list[dict[str, Any]] = yaml.load((HERE / "lookup.yaml").read_text(), yaml.CSafeLoader)
EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "lookup.expected.json").read_text())
BETTER = {
    # The reference changes the value it has found while it merges, and shows it so.
    "deep-merge-with-knockout": (
        '              "a"\n            ]\n        Hier',
        '              "a",\n              "no:c"\n            ]\n        Hier',
    ),
}
"""What we print otherwise, knowingly: theirs, and ours."""
FACTS = {"os": {"family": "Debian"}, "role": "web"}


def looked_up(site: Path, arguments: list[str], files: dict[str, str], facts: dict[str, Any] | None = None) -> int:
    environment = site / "code" / "environments" / "production"
    environment.mkdir(parents=True)
    for name, text in files.items():
        path = site / name.removeprefix("/site/") if name.startswith("/site/") else environment / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (site / "facts.json").write_text(json.dumps(facts or FACTS))
    folders = ["--confdir", str(site / "conf"), "--vardir", str(site / "var"), "--codedir", str(site / "code")]
    return main([*arguments, "--node", "n1.example.com", "--facts", str(site / "facts.json"), *folders])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_it_prints_what_puppet_prints(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = looked_up(tmp_path, case["args"], case["files"], case.get("facts"))
    environment = tmp_path / "code" / "environments" / "production"
    printed = capsys.readouterr().out.replace(str(environment), "<env>").replace(str(tmp_path), "<site>")
    wanted = EXPECTED[case["id"]]
    if "json" in case["args"]:
        assert json.loads(printed) == json.loads(wanted["stdout"])
    else:
        assert printed == wanted["stdout"].replace(*BETTER.get(case["id"], ("", "")), 1)
    assert code == wanted["exit"]


def test_options_of_deep_need_deep(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only available with '--merge deep'"):
        looked_up(tmp_path, ["k", "--merge-hash-arrays"], {})


def test_an_unknown_strategy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'first', 'hash', 'unique', or 'deep'"):
        looked_up(tmp_path, ["k", "--merge", "sideways"], {})


def test_keys_are_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No keys"):
        looked_up(tmp_path, [], {})


def test_a_value_of_another_type_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="Found value has wrong type, expects an Integer value, got String"):
        looked_up(tmp_path, ["k", "--type", "Integer"], {"hiera.yaml": "version: 5\n", "data/common.yaml": "k: text\n"})


def test_the_facts_that_name_a_node_go_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must all be overridden"):
        looked_up(tmp_path, ["k"], {}, {"hostname": "other"})


def test_variables_of_classes_are_there_after_a_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "hiera.yaml": "version: 5\nhierarchy:\n  - {name: c, path: '%{c::level}.yaml'}\n",
        "data/high.yaml": "k: of the class\n",
        "manifests/site.pp": "class c { $level = 'high' }\ninclude c\n",
    }
    assert looked_up(tmp_path, ["k", "--compile"], files) == 0
    assert capsys.readouterr().out == "--- of the class\n"
