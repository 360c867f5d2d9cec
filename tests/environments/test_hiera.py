"""Data: the first value found along hiera.yaml, interpolated; what is not supported is named."""

from __future__ import annotations

from typing import Any

import pytest

from environments.hiera import merge_of
from shared.errors import CompileError, EvaluationError
from tests.support.compiling import compiled

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


def test_data_that_does_not_parse_names_its_file() -> None:
    with pytest.raises(CompileError, match=r"Unable to parse \(/env/data/common/a\.yaml\)"):
        _looked_up("k", {"data/common/a.yaml": "k: [1\n"})


MERGES: list[tuple[Any, list[Any], Any]] = [
    ("first", [1, 2], 1),
    ("unique", [["a", "b"], "c", ["b", "d"]], ["a", "b", "c", "d"]),
    ("unique", ["twice", "twice"], ["twice"]),
    ("unique", ["single"], "single"),
    ("hash", [{"a": 1}, {"b": 2, "a": 3}], {"b": 2, "a": 1}),
    ("deep", [{"h": {"x": 1}, "l": [1, 2]}, {"h": {"y": 2, "x": 0}, "l": [2, 3]}], {"h": {"y": 2, "x": 1}, "l": [2, 3, 1]}),
    ({"strategy": "deep", "knockout_prefix": "--"}, [{"l": ["--a", "c"]}, {"l": ["a", "b"]}], {"l": ["b", "c"]}),
    ({"strategy": "deep", "sort_merged_arrays": True}, [["b"], ["c", "a"]], ["a", "b", "c"]),
    ({"strategy": "deep", "merge_hash_arrays": True}, [[{"a": 1}], [{"b": 2}, {"c": 3}]], [{"b": 2, "a": 1}, {"c": 3}]),
]


@pytest.mark.parametrize(("strategy", "inputs", "result"), MERGES, ids=[str(strategy) for strategy, _, _ in MERGES])
def test_values_are_merged_by_strategy(strategy: Any, inputs: list[Any], result: Any) -> None:
    got = merge_of(strategy).merge_over(inputs, lambda value: value)
    assert got == result
    if isinstance(result, dict):
        assert list(got) == list(result)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(EvaluationError, match="Unknown merge strategy: 'sideways'") as caught:
        merge_of("sideways")
    assert "unique" in caught.value.hint


def test_lookup_options_say_how_a_key_is_merged_and_converted() -> None:
    files = {
        "hiera.yaml": "version: 5\nhierarchy:\n  - {name: a, path: a.yaml}\n  - {name: b, path: b.yaml}\n",
        "data/a.yaml": "lookup_options:\n  list: {merge: unique}\n  '^sec': {convert_to: Sensitive}\nlist: [1]\nsecret: x\n",
        "data/b.yaml": "list: [2, 1]\n",
    }
    result = compiled("notice(lookup('list'), lookup('list', Array, 'first'), lookup('secret'))", files)
    assert result.notices == ["[1, 2] [1] Sensitive [value redacted]"]


def test_text_that_came_from_a_variable_is_not_interpolated_again() -> None:
    """The reference does; a fact could so read any key of the data. Variables may be named, for data has use for that."""
    data = "greeting: 'hello %{who}'\nvia: \"%{lookup('greeting')}\"\nsecret: s\n"
    result = compiled(
        "notice(lookup('via'))", {"hiera.yaml": "version: 5\n", "data/common.yaml": data}, facts={"who": "%{lookup('secret')}"}
    )
    assert result.notices == ["hello %{lookup('secret')}"]
