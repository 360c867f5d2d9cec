from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Puppet

SITE = """
node 'web1' {
  file { '/motd': content => "one\\ntwo\\n", mode => '0644' }
  notify { 'gone': }
}
node 'web2' {
  include extra
  file { '/motd': content => "one\\n2\\n", owner => Sensitive('admin') }
}
node default { notify { "size ${facts['size']}": } }
class extra { notify { 'new': message => 'x' } }
"""


@pytest.fixture
def site(tmp_path: Path, file: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options for an environment with a site manifest, and few facts."""

    async def few(*_: object) -> dict[str, Any]:
        return {"size": 1}

    monkeypatch.setattr("bunraku.catalogs.compilation.gather", few)
    file("code/environments/production/manifests/site.pp", SITE)
    file("code/environments/testing/manifests/site.pp", SITE.replace("0644", "0600"))
    for name in ("web1", "web2"):
        file(f"vardir/yaml/facts/{name}.yaml", f"---\nname: {name}\nvalues:\n  size: 1\n")
    return ["--codedir", str(tmp_path / "code")]


def test_compile_prints_the_catalog_and_nothing_else(puppet: Puppet, site: list[str]) -> None:
    said = puppet("catalog", "compile", "web1", *site)
    catalog = json.loads(said.out)
    assert (said.code, catalog["name"], catalog["environment"]) == (0, "web1", "production")
    assert [each["title"] for each in catalog["resources"] if each["type"] == "Notify"] == ["gone"]
    assert said.err == ""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["catalog", "compile", "stranger"], 1),
        (["catalog", "find", "stranger"], 1),
        (["catalog", "select", "stranger", "notify"], 1),
        (["catalog", "diff", "web1", "stranger"], 2),
        (["lookup", "key", "--node", "stranger", "--default", "x"], 1),
        (["lookup", "key", "--node", "stranger", "--default", "x", "--compile"], 1),
        (["master", "--compile", "stranger", "--user", "root"], 30),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_of_a_node_that_nobody_knows_nothing_is_compiled_or_looked_up(
    puppet: Puppet, site: list[str], command: list[str], code: int
) -> None:
    """Another machine's facts would choose another role's data, and its secrets."""
    said = puppet(*command, *site)
    assert (said.code, said.out) == (code, "")
    assert "No facts available for target node: stranger" in said.err
    assert "--facts FILE" in said.err


def test_a_node_that_nobody_knows_has_the_facts_that_are_given_and_no_others(
    puppet: Puppet, site: list[str], file: Callable[[str, str], Path]
) -> None:
    given = file("facts.json", '{"size": 9}')
    said = puppet("catalog", "select", "stranger", "notify", "--facts", str(given), *site)
    assert (said.out, said.err) == ("Notify[size 9]\n", "")
    assert puppet("catalog", "compile", *site, "--certname", "node1.example.com").code == 0  # this machine knows itself


def test_facts_are_those_the_node_has_sent_unless_others_are_given(
    puppet: Puppet, site: list[str], file: Callable[[str, str], Path], tmp_path: Path
) -> None:
    file("vardir/yaml/facts/db1.yaml", "---\nname: db1\nvalues:\n  size: 7\n")
    said = puppet("catalog", "select", "db1", "notify", *site)
    assert (said.out, said.err) == ("Notify[size 7]\n", "")
    given = file("facts.json", '{"name": "db1", "values": {"size": 8}}')
    assert puppet("catalog", "select", "db1", "notify", "--facts", str(given), *site).out == "Notify[size 8]\n"


def test_an_error_of_the_manifest_is_told_with_its_place(puppet: Puppet, site: list[str], file: Callable[[str, str], Path]) -> None:
    path = file("code/environments/production/manifests/site.pp", "fail('no')\n")
    said = puppet("catalog", "compile", *site)
    assert (said.code, said.out) == (1, "")
    wanted = f"Evaluation Error: Error while evaluating a Function Call, no (file: {path}, line: 1, column: 1) on node node1.example.com"
    assert said.err == f"Error: {wanted}\n"


def test_select_gives_references_or_the_resources_as_json(puppet: Puppet, site: list[str]) -> None:
    assert puppet("catalog", "select", "web2", "Notify", *site).out == "Notify[new]\n"
    assert puppet("catalog", "select", "web2", "cron", *site).out == "no matching resources found\n"
    assert puppet("catalog", "select", "web2", "*", *site).out.splitlines()[-2:] == ["Notify[new]", "File[/motd]"]
    assert json.loads(puppet("catalog", "select", "web2", "notify", "--json", *site).out)[0]["parameters"] == {"message": "x"}


def test_profile_says_which_lines_took_the_time(puppet: Puppet, site: list[str], file: Callable[[str, str], Path]) -> None:
    path = file("code/environments/production/manifests/site.pp", 'Integer[1, 300].each |$i| {\n  notify { "n${i}": }\n}\n')
    said = puppet("catalog", "compile", "--profile", *site)
    assert len(json.loads(said.out)["resources"]) == 303
    lines = said.err.splitlines()
    assert lines[0].startswith("Slowest manifest lines of ")
    by_place = {each.split()[3]: each.split()[:3] for each in lines[2:] if len(each.split()) > 3}
    own, whole, times = by_place[f"{path}:2"]
    assert times == "300"
    assert 0 < float(own) <= float(whole)


def test_diff_tells_resources_and_attributes(puppet: Puppet, site: list[str]) -> None:
    said = puppet("catalog", "diff", "web1", "web2", *site)
    assert said.code == 1
    for line in (
        "- Notify[gone]  (",
        "+ Class[Extra]",
        "+ class extra",
        "~ File[/motd]  (",
        "        -two",
        "        +2",
        '    - mode = "0644"',
    ):
        assert f"\n{line}" in said.out, line
    assert "    + owner = [sensitive]\n" in said.out and "admin" not in said.out
    assert said.out.endswith("Resources: 2 removed, 3 added, 1 changed (5 attributes).\n")


def test_diff_of_environments_and_as_json(puppet: Puppet, site: list[str]) -> None:
    said = puppet("catalog", "diff", "web1", "web1@testing", "--json", *site)
    assert said.code == 1
    found = json.loads(said.out)
    assert found["resources"] == {
        "removed": [],
        "added": [],
        "changed": {"File[/motd]": [{"attribute": "mode", "old": "0644", "new": "0600"}]},
    }
    assert found["classes"] == found["edges"] == {"removed": [], "added": []}


def test_diff_of_files_that_say_the_same_is_0(puppet: Puppet, site: list[str], tmp_path: Path) -> None:
    text = puppet("catalog", "compile", "web1", *site).out
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_text(text)
    two.write_text(json.dumps(json.loads(text) | {"version": 1}, indent=None))
    said = puppet("catalog", "diff", str(one), str(two))
    assert (said.code, said.out.splitlines()[-1]) == (0, "The catalogs are the same.")


@pytest.mark.parametrize("other", ["no/such.json", "web1@nope", "bad.json"])
def test_diff_of_what_is_not_there_is_2(puppet: Puppet, site: list[str], other: str, file: Callable[[str, str], Path]) -> None:
    bad = file("bad.json", "{")
    said = puppet("catalog", "diff", "web1", str(bad) if other == "bad.json" else other, *site)
    assert (said.code, said.out) == (2, "")
    assert "Error: " in said.err


def test_find_gives_what_a_terminus_has_kept(puppet: Puppet, site: list[str], file: Callable[[str, str], Path]) -> None:
    text = puppet("catalog", "compile", "web1", *site).out
    file("vardir/server_data/catalog/web1.json", text)
    said = puppet("catalog", "find", "web1", "--catalog_terminus", "json", *site)
    assert (said.code, json.loads(said.out)["resources"]) == (0, json.loads(text)["resources"])
    assert puppet("catalog", "find", "web9", "--catalog_terminus", "json", *site).code == 1


@pytest.mark.parametrize("words", [["apply", "web1"], ["download"], ["save"], ["foo"], [], ["compile", "a", "b"], ["compile", "../x"]])
def test_what_cannot_be_done_is_told(puppet: Puppet, site: list[str], words: list[str]) -> None:
    said = puppet("catalog", *words, *site)
    assert (said.code, said.out) == (1, "") and said.err.startswith("Error: ")
