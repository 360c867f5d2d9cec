from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Puppet

BAD = "class x {\n  $a = \n}\n"
ERROR = "Could not parse for environment production: Syntax error at '}'"


class Piped(io.StringIO):
    """Standard input that is no terminal."""

    def isatty(self) -> bool:
        return False


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_valid_manifest_is_answered_with_silence(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    said = puppet("parser", "validate", str(file("a.pp", "notify { 'a': }\n")))
    assert (said.code, said.out, said.err) == (0, "", "")


def test_every_file_with_an_error_is_told(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    good, one, two = file("good.pp", "$a = 1\n"), file("one.pp", BAD), file("two.pp", "\n" + BAD)
    said = puppet("parser", "validate", str(good), str(one), str(two))
    assert said.code == 1
    assert said.out == ""
    assert f"Error: {ERROR} (file: {one}, line: 3, column: 1)\n" in said.err
    assert f"Error: {ERROR} (file: {two}, line: 4, column: 1)\n" in said.err


def test_a_folder_stands_for_its_manifests(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    path = file("code/manifests/deep/x.pp", BAD)
    file("code/readme.txt", BAD)
    said = puppet("parser", "validate", str(path.parents[2]))
    assert (said.code, said.err.count("Error:")) == (1, 1)


def test_relative_names_are_told_as_absolute_ones(
    puppet: Puppet, file: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file("x.pp", BAD)
    monkeypatch.chdir(path.parent)
    assert f"(file: {path}, line: 3, column: 1)" in puppet("parser", "validate", "x.pp").err


def test_what_is_piped_in_is_checked_without_a_place_it_does_not_have(puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Piped("notify { 'a'"))
    said = puppet("parser", "validate")
    assert said.code == 1
    assert said.err.splitlines()[0] == "Error: Could not parse for environment production: Syntax error at end of input"


def test_without_files_at_a_terminal_it_is_the_main_manifest(
    puppet: Puppet, file: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal())
    path = file("conf/code/environments/production/manifests/site.pp", BAD)
    said = puppet("parser", "validate")
    assert said.code == 1
    assert f"No manifest specified. Validating the default manifest {path.parent}\n" in said.err
    assert f"(file: {path}, line: 3, column: 1)" in said.err


def test_json_has_puppets_keys_and_all_issues(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    good, bad = file("good.pp", "$a = 1\n"), file("bad.pp", BAD)
    said = puppet("parser", "validate", "--render-as", "json", str(good), str(bad))
    assert said.code == 1
    found = json.loads(said.out)
    assert list(found) == [str(bad)]
    assert found[str(bad)] | {"issues": [], "hint": ""} == {
        "message": "Syntax error at '}'",
        "full_message": f"{ERROR} (file: {bad}, line: 3, column: 1)",
        "file": str(bad),
        "line": 3,
        "pos": 1,
        "hint": "",
        "issues": [],
    }
    assert [each["severity"] for each in found[str(bad)]["issues"]] == ["error"]


def test_warnings_are_told_and_leave_the_exit_code(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    path = file("w.pp", "$a = { 'x' => 1, 'x' => 2 }\n")
    said = puppet("parser", "validate", str(path))
    assert said.code == 0
    assert said.err == f"Warning: The key 'x' is declared more than once (file: {path}, line: 1, column: 22)\n"


INHERITED = "Warning: {} is a metaparam; this value will inherit to all contained resources in the {} definition"
REFUSED = (
    "Error: Could not parse for environment production: {} is a metaparameter; please choose another parameter name in the {} definition"
)
METAPARAMETERS = {
    "define x($stage = 1, $tag = undef) { }": (0, [INHERITED.format("stage", "x"), INHERITED.format("tag", "x")]),
    "class a::b { class y($loglevel = 1) { } }": (0, [INHERITED.format("loglevel", "a::b::y")]),
    "define z($tag) { }": (1, [REFUSED.format("tag", "z")]),
    "class y($stage = 1) { $x = } }": (1, [ERROR]),
}


@pytest.mark.parametrize("manifest", METAPARAMETERS)
def test_parameters_with_names_of_metaparameters_are_told(manifest: str, puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    code, messages = METAPARAMETERS[manifest]
    path = file("x.pp", manifest)
    said = puppet("parser", "validate", str(path))
    assert said.code == code
    for message in messages:
        assert f"{message} (file: {path}, line: 1, column: " in said.err
    assert said.err.count(str(path)) == len(messages)


def test_epp_templates_are_checked_as_such(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    assert puppet("parser", "validate", "--epp", str(file("good.epp", "x <%= $a %> y\n"))).code == 0
    assert puppet("parser", "validate", "--epp", str(file("bad.epp", "<% if true { %>x\n"))).code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["validate", "/no/such/a.pp", "/no/such/b.pp"],
            "One or more file(s) specified did not exist:\n     /no/such/a.pp\n     /no/such/b.pp",
        ),
        (["frob"], "'parser' has no 'frob' action.  See `puppet help parser`."),
        (["validate", "--frob"], "Could not parse application options: invalid option: --frob\nTry 'puppet parser --help'."),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words: list[str], message: str, puppet: Puppet) -> None:
    said = puppet("parser", *words)
    assert (said.code, said.out, said.err) == (1, "", f"Error: {message}\n")


def test_a_manifest_that_is_not_utf_8_is_named(puppet: Puppet, tmp_path: Path) -> None:
    path = tmp_path / "latin.pp"
    path.write_bytes("$a = 'ä'\n".encode("latin-1"))
    said = puppet("parser", "validate", str(path))
    assert said.code == 1
    assert said.err.startswith(f"Error: Could not read {path}: ")


# What `puppet parser dump` of 7.23 prints for these.
DUMPS = [
    (("-e", "$a+1"), '(+ (var "a") 1)\n'),
    (("-e", "$a+1", "--format", "json"), '{"^":["+",{"^":["var","a"]},1]}\n'),
    (("-e", "class a($x){}", "--format", "pn"), '(class {:name "a" :params {:x {}}})\n'),
    (
        ("-e", 'file {"a": a=>1}', "--pretty"),
        '(resource\n  {\n    :type (qn\n      "file")\n    :bodies [\n      {\n        :title "a"\n        :ops [\n'
        '          (=>\n            "a"\n            1)]}]})\n',
    ),
    (
        ("-e", "$a + 1.5", "--pretty", "--format", "json"),
        '{\n  "^": [\n    "+",\n    {\n      "^": [\n        "var",\n        "a"\n      ]\n    },\n    1.5\n  ]\n}\n',
    ),
]


@pytest.mark.parametrize(("words", "wanted"), DUMPS)
def test_dump_prints_the_tree_as_puppet_does(words: tuple[str, ...], wanted: str, puppet: Puppet) -> None:
    said = puppet("parser", "dump", *words)
    assert (said.code, said.out, said.err) == (0, wanted, "")


def test_dump_of_files_names_each_and_tells_errors(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    good, bad = file("good.pp", "1\n"), file("bad.pp", BAD)
    said = puppet("parser", "dump", str(good), str(bad))
    assert said.code == 1
    assert said.out == f"--- {good}\n1\n--- {bad}\n"
    assert said.err == f"Error: Syntax error at '}}' (file: {bad}, line: 3, column: 1)\n"


def test_dump_checks_only_when_it_is_asked_to(puppet: Puppet) -> None:
    assert puppet("parser", "dump", "-e", "$a = 1 $a").code == puppet("parser", "dump", "-e", "1 2").code == 0
    said = puppet("parser", "dump", "-e", "1 2", "--validate")
    assert (said.code, said.out) == (1, "")
    assert "has no effect" in said.err


def test_a_dump_in_the_old_format_is_refused(puppet: Puppet) -> None:
    said = puppet("parser", "dump", "-e", "1", "--format", "old")
    assert said.code == 1
    assert "format old is not supported" in said.err


def test_folders_are_searched_through_links_but_never_twice(puppet: Puppet, tmp_path: Path) -> None:
    (tmp_path / "real" / "manifests").mkdir(parents=True)
    (tmp_path / "real" / "manifests" / "init.pp").write_text(BAD)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "round").symlink_to(tmp_path / "real")
    said = puppet("parser", "validate", str(tmp_path / "modules"))
    assert said.code == 1
    assert said.err.count("Syntax error") == 1
