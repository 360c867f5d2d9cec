"""`puppet epp`. What is expected is what Puppet 7.23 answers, but for hints, and that good templates of several are printed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Puppet

TWO = "<%- | $a, $b = 2 | -%>\nhello <%= $a %> <%= $b %>\n"
UNBALANCED = "Unbalanced epp tag, reached <eof> without closing tag."


@pytest.fixture(autouse=True)
def facts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def few(*_: object) -> dict[str, Any]:
        return {"kernel": "Linux"}

    monkeypatch.setattr("bunraku.catalogs.compilation.gather", few)


@pytest.fixture
def make(file: Callable[[str, str], Path]) -> Callable[[str, str], str]:
    return lambda name, text: str(file(name, text))


Make = Callable[[str, str], str]


def test_a_template_is_rendered_with_its_parameters(puppet: Puppet, make: Make) -> None:
    assert puppet("epp", "render", make("t.epp", TWO), "--values", "{a => 1}").out == "hello 1 2\n"


def test_a_relative_file_and_one_of_a_module_are_found(puppet: Puppet, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(make("t.epp", TWO)).parent
    make("code/environments/production/modules/m/templates/x.epp", "of m: <%= $a %>\n")
    monkeypatch.chdir(folder)
    said = puppet("epp", "render", "t.epp", "m/x.epp", "--values", "{a => 1}", "--no-header", "--codedir", str(folder / "code"))
    assert said.out == "hello 1 2\nof m: 1\n"


def test_several_have_headers(puppet: Puppet, make: Make) -> None:
    one, two = make("t.epp", TWO), make("u.epp", "x <%= $facts[kernel] %>\n")
    assert puppet("epp", "render", one, two, "--values", "{a=>1}").out == f"--- {one}\nhello 1 2\n\n--- {two}\nx Linux\n"


def test_a_bad_one_of_several_is_told_and_the_others_printed(puppet: Puppet, make: Make) -> None:
    bad, good = make("bad.epp", "x <%= "), make("t.epp", "fine\n")
    said = puppet("epp", "render", bad, good, "--no-header")
    assert (said.code, said.out) == (1, "fine\n")
    assert f"Error: epp(): Invalid EPP: {UNBALANCED} (file: {bad}, line: 1, column: 7)\n" in said.err
    assert "Error: error while rendering epp\n" in said.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-e", "a <%= $c %>", "--values_file", "V.pp"], "a set\n"),
        (["-e", "a <%= $c %>", "--values_file", "V.yaml"], "a yaml\n"),
        (["-e", "a <%= $c %>", "--values_file", "V.yaml", "--values", "{c => 'over'}"], "a over\n"),
        (["-e", "a <%= $c %>", "--values", "$c = 'here'\nundef"], "a here\n"),
        (["-e", "<%= $color %> <%= $facts[kernel] %> <%= $facts[size] %>", "--facts", "F.json"], "red Linux 5\n"),
        (["-e", "<%= Sensitive('s') %>"], "s\n"),
        (["-e", "<%= $trusted['certname'] %>", "--node", "web1"], "web1\n"),
    ],
)
def test_values_come_from_code_files_and_facts(puppet: Puppet, make: Make, options: list[str], expected: str) -> None:
    files = {
        "V.pp": make("v.pp", "$c = 'set'\nundef\n"),
        "V.yaml": make("v.yaml", "c: yaml\n"),
        "F.json": make("f.json", '{"color": "red", "size": 5}'),
    }
    said = puppet("epp", "render", *[files.get(word, word) for word in options])
    assert (said.code, said.out) == (0, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", "a <%= $x"], f"inline_epp(): Invalid EPP: {UNBALANCED} (file: inlined-epp-text, line: 1, column: 9)"),
        (["-e", "a <%= nofun() %>"], "Evaluation Error: Unknown function: 'nofun'. (file: inlined-epp-text, line: 1, column: 7)"),
        (["-e", "a", "--values", "3"], "--values option must evaluate to a Hash or undef, got: 'Integer'"),
        (
            ["-e", "a", "--values", "$x = 1\n$x = 2"],
            "Evaluation Error: Cannot reassign variable '$x' (file: values-hash, line: 2, column: 4)",
        ),
        (["-e", "a", "--values", "class c {}"], "Nothing can be defined here (file: values-hash, line: 1, column: 1)"),
        (["-e", "a", "--values_file", "/nope.pp"], "Could not load --values_file /nope.pp: No such file or directory"),
        (["-e", "a", "--values_file", "/nope.txt"], "Only .yaml or .pp can be used as a --values_file"),
        (["-e", "a", "--facts", "/nope.yaml"], "Could not read the facts in /nope.yaml: No such file or directory"),
        (["nope.epp"], "Could not find template 'nope.epp'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(puppet: Puppet, options: list[str], message: str) -> None:
    said = puppet("epp", "render", *options)
    assert (said.code, said.out) == (1, "")
    assert f"Error: {message}\n" in said.err


def test_validate_stops_at_the_first_bad_template_unless_told_to_go_on(puppet: Puppet, make: Make) -> None:
    bad, worse, good = make("bad.epp", "x <%= "), make("worse.epp", "<% } %>"), make("t.epp", TWO)
    said = puppet("epp", "validate", good, bad, worse)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"Error: {UNBALANCED} (file: {bad}, line: 1, column: 7)\nError: Errors while validating epp\n"
    assert puppet("epp", "validate", bad, worse, "--continue_on_error").err.count(" (file: ") == 2
    assert puppet("epp", "validate", good).code == 0


def test_templates_that_are_not_there_are_named(puppet: Puppet) -> None:
    for action in ("validate", "dump"):
        said = puppet("epp", action, "one.epp", "two.epp")
        assert (said.code, said.err) == (1, "Error: One or more file(s) specified did not exist:\n   one.epp\n   two.epp\n")


def test_what_is_piped_in_is_taken(puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a <%= 1 + %>"))
    assert "Error: Syntax error at '%>' (file: <stdin>, line: 1, column: 11)\n" in puppet("epp", "validate").err
    monkeypatch.setattr("sys.stdin", io.StringIO("a <%= 1 + 1 %>\n"))
    assert puppet("epp", "render").out == "a 2\n"


def test_trees_are_dumped_as_notation_or_json(puppet: Puppet) -> None:
    assert puppet("epp", "dump", "-e", "a <%= $x %>", "--format", "pn").out == (
        '(lambda {:body [(epp (render-s "a ") (render (var "x")))]})\n'
    )
    wanted = {"^": ["lambda", {"#": ["body", [{"^": ["epp", {"^": ["render-s", "a "]}, {"^": ["render", {"^": ["var", "x"]}]}]}]]}]}
    assert json.loads(puppet("epp", "dump", "-e", "a <%= $x %>", "--format", "json").out) == wanted
    assert puppet("epp", "dump", "-e", "a", "--format", "old").code == 1


def test_an_action_that_is_none_is_told(puppet: Puppet) -> None:
    assert "'epp' has no 'foo' action.  See `puppet help epp`." in puppet("epp", "foo").err
    assert "'epp' has no default action.  See `puppet help epp`." in puppet("epp").err
