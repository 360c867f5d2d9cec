"""Data: the first value found along hiera.yaml, interpolated; what is not supported is named."""

from __future__ import annotations

from typing import Any

import pytest

from master.compiler.testing import compiled
from shared.errors import CompileError

FACTS = {"os": {"family": "Debian"}, "role": "web"}
LEVELS = """
version: 5
hierarchy:
  - name: node
    path: "nodes/%{trusted.certname}.yaml"
  - name: family
    paths: ["family/%{facts.os.family}.yaml", "role/%{role}.json"]
  - name: all
    glob: "common/*.yaml"
"""


def _looked_up(key: str, files: dict[str, str]) -> Any:
    result = compiled(f"notify {{ 'r': message => lookup('{key}') }}", {"hiera.yaml": LEVELS, **files}, facts=FACTS)
    return result.parameters("Notify[r]")["message"]


CASES: list[tuple[str, dict[str, str], Any]] = [
    ("k", {"data/common/a.yaml": "k: common\n"}, "common"),
    ("k", {"data/common/a.yaml": "k: common\n", "data/family/Debian.yaml": "k: family\n"}, "family"),
    ("k", {"data/role/web.json": '{"k": [1, {"a": true}]}'}, [1, {"a": True}]),
    ("k", {"data/nodes/node1.example.com.yaml": "k: node\n", "data/family/Debian.yaml": "k: family\n"}, "node"),
    ("k.a.1", {"data/common/a.yaml": "k: {a: [x, y]}\n"}, "y"),
    ("k", {"data/common/a.yaml": "k: 'f=%{facts.os.family} r=%{role} n=%{nothing}'\n"}, "f=Debian r=web n="),
    ("k", {"data/common/a.yaml": "k: \"%{lookup('other')}!\"\nother: o\n"}, "o!"),
    ("k", {"data/common/a.yaml": "k: \"%{alias('other')}\"\nother: [1, 2]\n"}, [1, 2]),
    ("k", {"data/common/a.yaml": "k: \"%{literal('%')}{x}\"\n"}, "%{x}"),
]


@pytest.mark.parametrize(("key", "files", "value"), CASES, ids=[str(value) for _, _, value in CASES])
def test_a_key_is_looked_up_along_the_levels(key: str, files: dict[str, str], value: Any) -> None:
    assert _looked_up(key, files) == value


def test_module_data_comes_after_the_environment_s() -> None:
    files = {
        "hiera.yaml": "version: 5\n",
        "data/common.yaml": "m::b: environment\n",
        "modules/m/hiera.yaml": "version: 5\n",
        "modules/m/data/common.yaml": "m::a: module\nm::b: module\n",
        "modules/m/manifests/init.pp": "class m($a, $b) { notice($a, $b) }",
    }
    assert compiled("include m", files).notices == ["module environment"]


def test_what_is_not_found_is_said() -> None:
    with pytest.raises(CompileError, match=r"did not find a value for the name 'k'"):
        _looked_up("k", {})


def test_a_lookup_that_comes_back_to_itself_is_refused() -> None:
    with pytest.raises(CompileError, match=r"Recursive lookup detected in \[a, b\]"):
        _looked_up("a", {"data/common/a.yaml": "a: \"%{lookup('b')}\"\nb: \"%{lookup('a')}\"\n"})


def test_a_path_does_not_climb_out_of_the_data_folder() -> None:
    files = {"hiera.yaml": "version: 5\nhierarchy:\n  - {name: x, path: '%{who}.yaml'}\n", "secret.yaml": "k: secret\n"}
    with pytest.raises(CompileError, match="did not find a value"):
        compiled("lookup('k')", files, facts={"who": "../secret"})


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("version: 3\n", "version 3"),
        ("version: 5\nhierarchy: [{name: x, lookup_key: eyaml_lookup_key, path: a}]\n", "lookup_key"),
        ("version: 5\nhierarchy: [{name: x, data_hash: hocon_data, path: a}]\n", "hocon_data"),
    ],
)
def test_what_is_not_supported_is_named(config: str, named: str) -> None:
    with pytest.raises(CompileError, match=named):
        compiled("lookup('k')", {"hiera.yaml": config})


def test_data_that_does_not_parse_names_its_file() -> None:
    with pytest.raises(CompileError, match=r"Unable to parse \(/env/data/common/a\.yaml\)"):
        _looked_up("k", {"data/common/a.yaml": "k: [1\n"})
