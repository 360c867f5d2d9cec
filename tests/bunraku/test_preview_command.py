"""`puppet preview` from its command line to what it prints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bunraku.commands.preview import main
from bunraku.previews.revisions import checked_location
from shared.errors import BadName, ConfigError, NotFound, PuppetError
from tests.support.needs import needs_git

pytestmark = [pytest.mark.slow, pytest.mark.works_with("Preview", "puppet preview")]

CODE = {
    "manifests/site.pp": """
node default {
  include base
  if $facts['role'] == 'web' { include web }
}
""",
    "modules/base/manifests/init.pp": "class base {\n  notify { \"${facts['hostname']} of ${environment}\": }\n}\n",
    "modules/web/manifests/init.pp": """
class web {
  file { '/etc/web.conf':
    content => epp('web/conf.epp'),
  }
  file { '/etc/key':
    content => Sensitive('hush'),
  }
}
""",
    "modules/web/templates/conf.epp": "host <%= $facts['hostname'] %>\nworkers 1\n",
}
NODES = {"web1": "web", "web2": "web", "db1": "db"}


@dataclass(slots=True)
class Site:
    """A master's folders with the facts of three nodes, and two environments of the same code."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def __post_init__(self) -> None:
        for environment in ("production", "feature"):
            self.write(CODE, environment)
        for name, role in NODES.items():
            facts = {"name": name, "values": {"hostname": name, "role": role}}
            path = self.root / "var/server_data/facts" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(facts))

    def write(self, files: Mapping[str, str], environment: str = "feature") -> None:
        for name, text in files.items():
            path = self.root / "code/environments" / environment / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run(self, *words: str) -> int:
        folders = [f"--{name}dir={self.root / folder}" for name, folder in (("conf", "conf"), ("code", "code"), ("var", "var"))]
        return main([*words, "--certname=master.test", "--facts_terminus=json", "--workers=1", *folders])

    def preview(self, *words: str, sides: tuple[str, str] = ("production", "feature")) -> tuple[int, dict[str, Any]]:
        """The exit code and the result of a preview of all nodes."""
        self.capsys.readouterr()
        code = self.run("--from", sides[0], "--to", sides[1], "--json", *(words or ["--all"]))
        result: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return code, result


@pytest.fixture
def site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Site:
    return Site(tmp_path, capsys)


CHANGED = {"modules/web/templates/conf.epp": "host <%= $facts['hostname'] %>\nworkers 2\n"}


def test_the_same_change_on_two_nodes_is_one_entry_and_the_third_is_not_compiled_twice(site: Site) -> None:
    site.write(CHANGED)
    code, result = site.preview()
    assert code == 2
    assert result["counts"] == {
        "nodes": 3,
        "unaffected": 1,
        "unchanged": 0,
        "changed": 2,
        "failed": 0,
        "fixed": 0,
        "compiled": 2,
        "compilations": 5,
    }
    assert result["nodes"] == {"db1": "unaffected", "web1": "changed", "web2": "changed"}
    (change,) = result["changes"]
    assert (change["subject"], change["parameter"], change["nodes"]) == ("File[/etc/web.conf]", "content", ["web1", "web2"])
    assert (change["lines"], change["varies"]) == (2, True)
    assert "-workers 1" in change["diff"]
    assert change["places"] == {"old": "modules/web/manifests/init.pp:3", "new": "modules/web/manifests/init.pp:3"}


def test_without_a_difference_nothing_is_compiled_twice_and_the_code_is_0(site: Site) -> None:
    code, result = site.preview()
    assert (code, result["counts"]["unaffected"], result["counts"]["compilations"], result["changes"]) == (0, 3, 3, [])


def test_a_compile_error_is_new_old_or_no_longer_there(site: Site) -> None:
    broken = {"modules/web/manifests/init.pp": "class web {\n  fail('broken')\n}\n"}
    site.write(broken)
    code, result = site.preview()
    assert (code, result["nodes"]) == (4, {"db1": "unaffected", "web1": "failed", "web2": "failed"})
    (error,) = result["errors"]
    assert (error["state"], error["file"], error["line"], error["nodes"]) == ("new", "modules/web/manifests/init.pp", 2, ["web1", "web2"])
    site.write(broken, "production")
    site.write({"modules/base/manifests/init.pp": "class base {\n  notify { 'changed': }\n}\n"})
    code, result = site.preview()
    assert (code, [error["state"] for error in result["errors"]], result["nodes"]["db1"]) == (6, ["old"], "changed")
    assert site.preview("--all", "--fail-on", "new-errors")[0] == 0
    assert site.preview("--all", "--fail-on", "changes")[0] == 2
    code, result = site.preview(sides=("feature", "production"))
    site.write(CODE)
    _, result = site.preview()
    assert ([error["state"] for error in result["errors"]], result["nodes"]["web1"]) == (["fixed"], "fixed")


def test_warnings_that_only_the_new_side_gives_are_new(site: Site) -> None:
    site.write({"modules/base/manifests/init.pp": "class base {\n  warning('careful')\n}\n"})
    _, result = site.preview()
    assert [(warning["message"], warning["state"], len(warning["nodes"])) for warning in result["warnings"]] == [("careful", "new", 3)]


def test_no_sensitive_value_is_in_the_result(site: Site) -> None:
    site.write({"modules/web/manifests/init.pp": CODE["modules/web/manifests/init.pp"].replace("hush", "quiet")})
    _, result = site.preview()
    (change,) = result["changes"]
    assert (change["subject"], change["parameter"], change["secret"]) == ("File[/etc/key]", "content", True)
    assert "hush" not in json.dumps(result)
    assert "quiet" not in json.dumps(result)


def test_what_differs_each_time_is_named_and_no_change(site: Site, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    program = tmp_path / "count.sh"
    program.write_text(f"#!/bin/sh\necho x >> {counter}\nwc -l < {counter}\n")
    program.chmod(0o755)
    manifest = f"class base {{\n  notify {{ 'n': message => generate('{program}') }}\n  notify {{ 'm': message => 'TEXT' }}\n}}\n"
    site.write({"modules/base/manifests/init.pp": manifest}, "production")
    site.write({"modules/base/manifests/init.pp": manifest.replace("TEXT", "other")})
    code, result = site.preview("--nodes", "db1,web1")
    assert code == 2
    assert [change["subject"] for change in result["changes"]] == ["Notify[m]"]
    (value,) = result["unstable"]
    assert (value["subject"], value["parameter"], value["nodes"]) == ("Notify[n]", "message", ["db1", "web1"])
    assert "generate" in value["reason"]


def test_nodes_come_from_a_file_and_facts_of_a_file_go_over_theirs(site: Site, tmp_path: Path) -> None:
    site.write(CHANGED)
    names, facts = tmp_path / "names", tmp_path / "facts.yaml"
    names.write_text("# two\ndb1\n\nunknown1\n")
    facts.write_text("role: web\n")
    _, result = site.preview("--file", str(names), "--facts", str(facts))
    assert result["nodes"] == {"db1": "changed", "unknown1": "changed"}


def test_what_catalogs_depended_on_is_kept_for_the_next_preview(site: Site, tmp_path: Path) -> None:
    assert site.preview()[1]["counts"]["compilations"] == 3
    site.write(CHANGED)
    assert site.preview()[1]["counts"]["compilations"] == 4
    assert site.preview("--all", "--preview_records_size=0")[1]["counts"]["compilations"] == 5
    assert {path.name for path in (tmp_path / "var/preview").iterdir()} == set(NODES)


def test_a_folder_of_records_that_cannot_be_written_is_one_warning(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    assert site.run("--from", "production", "--to", "feature", "--all", "--preview_records", "/proc/version/records") == 0
    (warning,) = caplog.records
    assert "in /proc/version/records: Not a directory" in warning.message


def test_folders_are_sides_too_and_their_names_are_no_difference(site: Site, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "code/environments/feature", tmp_path / "checkout")
    assert site.preview(sides=("production", str(tmp_path / "checkout")))[0] == 0


def git(folder: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    people = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
    subprocess.run(["git", "-C", str(folder), *people, *words], check=True, capture_output=True, env=environment)


@pytest.fixture
def repository(site: Site, tmp_path: Path) -> Path:
    """A control repository with the branches `main` and `work`, which has another template."""
    folder = tmp_path / "control"
    shutil.copytree(tmp_path / "code/environments/feature", folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "checkout", "--quiet", "-b", "work")
    (folder / "modules/web/templates/conf.epp").write_text(CHANGED["modules/web/templates/conf.epp"])
    git(folder, "commit", "--quiet", "-am", "second")
    git(folder, "checkout", "--quiet", "main")
    return folder


@needs_git
def test_two_revisions_of_a_repository_are_compared_and_nothing_is_left_of_them(
    site: Site, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("GIT_DIR", "/nonexistent")  # of the caller, as in a hook
    status = subprocess.run(["ls", "-lR", str(repository)], capture_output=True, check=True).stdout
    code, result = site.preview("--repo", str(repository), "--all", sides=("main", "work"))
    assert (code, [change["nodes"] for change in result["changes"]]) == (2, [["web1", "web2"]])
    assert len(result["to"]["revision"]) == 40
    assert result["environment"] == "production"
    assert list(tmp_path.glob("puppet-preview-*")) == []
    assert subprocess.run(["ls", "-lR", str(repository)], capture_output=True, check=True).stdout == status
    with pytest.raises(ConfigError, match="no revision"):
        site.preview("--repo", str(repository), "--all", sides=("main", "missing"))


@needs_git
def test_a_checkout_without_branches_has_those_of_its_origin_as_for_ci(site: Site, repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(repository), str(tmp_path / "checkout"))
    git(tmp_path / "checkout", "checkout", "--quiet", "--detach", "origin/work")
    code, result = site.preview("--repo", str(tmp_path / "checkout"), "--all", sides=("origin/main", "HEAD"))
    assert (code, [change["subject"] for change in result["changes"]]) == (2, ["File[/etc/web.conf]"])


@needs_git
def test_links_that_lead_out_of_a_repository_are_named_and_not_read(site: Site, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("root: LEAK\n")
    git(repository, "checkout", "--quiet", "work")
    (repository / "data").mkdir()
    for name, target in {
        "data/common.yaml": tmp_path / "secret.yaml", "data/second.yaml": "common.yaml", "data/own.yaml": "../own.yaml",
        "up": "../..", "loop": "loop",
    }.items():  # fmt: skip
        (repository / name).symlink_to(target)
    (repository / "own.yaml").write_text("own: fine\n")
    (repository / "hiera.yaml").write_text("version: 5\nhierarchy: [{name: a, paths: [common.yaml, second.yaml, own.yaml]}]\n")
    (repository / "manifests/site.pp").write_text("notify { \"${lookup('root', default_value => 'none')} ${lookup('own')}\": }\n")
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "-m", "links")
    site.run("--from", "main", "--to", "work", "--repo", str(repository), "--all")
    out, err = site.capsys.readouterr()
    assert "+ Notify[none fine]" in out and "LEAK" not in out + err
    assert [line.partition(" in ")[0] for line in err.splitlines() if "out of the repository" in line] == [
        "Error: 'data/common.yaml'", "Error: 'data/second.yaml'", "Error: 'up'",
    ]  # fmt: skip


@needs_git
@pytest.mark.parametrize("name", ["--output=/tmp/x", "-x", "a b", "a;b", "main..work", ""])
def test_a_name_that_is_no_revision_is_refused(site: Site, repository: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        site.preview("--repo", str(repository), "--all", "--to", name, sides=("main", "main"))


@pytest.mark.parametrize("location", ["--upload-pack=/bin/sh", "ext::sh -c x", "-x:y", "/proc/none", "ssh://-oProxyCommand=x/y", "-oX=y:z"])
def test_a_location_that_git_may_take_for_something_else_is_refused(location: str) -> None:
    with pytest.raises(ConfigError, match="no repository"):
        checked_location(location)


@pytest.mark.parametrize("location", ["https://git.example.com/control.git", "git@git.example.com:site/control.git", "ssh://git@h/x"])
def test_locations_of_repositories_elsewhere(location: str) -> None:
    assert checked_location(location) == location


def test_what_is_made_of_a_secret_is_not_shown(site: Site) -> None:
    manifest = """
class web(Sensitive[String] $key = Sensitive('hush hush')) {{
  $local = Sensitive({{ 'token' => '{token}', 'user' => 'somebody' }})
  file {{ '/etc/web.conf': content => epp('web/conf.epp', {{ key => $key, token => $local.unwrap['token'] }}), mode => '{mode}' }}
  file {{ '/etc/token': content => "{{\\"t\\": \\"${{local.unwrap['token']}}\\"}}" }}
  if '{mode}' == '0600' {{
    notify {{ "new ${{local.unwrap['token']}}": message => {{ 'deep' => ["${{key.unwrap}}"] }} }}
    warning("see ${{key.unwrap}}")
  }}
}}
"""
    for environment, token, mode in (("production", "first token", "0644"), ("feature", "second token", "0600")):
        site.write({"modules/web/manifests/init.pp": manifest.format(token=token, mode=mode)}, environment)
    site.write({"modules/web/templates/conf.epp": "key <%= $key.unwrap %>\nt <%= $token %>\n"}, "production")
    site.write({"modules/web/templates/conf.epp": "the key <%= $key.unwrap %>\nt <%= $token %>\n"})
    code, result = site.preview()
    shown = json.dumps(result)
    assert code == 2
    for secret in ("hush", "first token", "second token"):
        assert secret not in shown
    changes = {(change["subject"], change["parameter"]): change for change in result["changes"]}
    assert changes["File[/etc/token]", "content"]["secret"]
    assert changes["File[/etc/web.conf]", "content"]["diff"] == [
        "@@ -1,2 +1,2 @@", "-key [sensitive]", "+the key [sensitive]", " t [sensitive]",
    ]  # fmt: skip
    assert changes["Notify[new [sensitive]]", None]["parameters"] == {"message": {"deep": ["[sensitive]"]}}
    assert changes["File[/etc/web.conf]", "mode"]["new"] == "0600"


@pytest.mark.parametrize("words", [("--strict_variables", "false"), ("--strict_variables=false",)])
def test_a_value_behind_a_flag_is_named_with_what_to_write_instead(site: Site, words: Sequence[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        site.run("--from", "production", "--to", "feature", "--all", *words)
    assert "--no-strict_variables for false" in refused.value.hint


def test_forms_for_people(site: Site) -> None:
    site.write(CHANGED)
    site.run("--from", "production", "--to", "feature", "--all")
    text = site.capsys.readouterr().out
    assert "~ File[/etc/web.conf] content: 2 lines (2 nodes: web1, web2)\n" in text
    assert text.endswith("2 nodes compiled on both sides: 2 changed. 1 skipped (not affected), 1 change.\n")
    site.run("--from", "production", "--to", "feature", "--all", "--format", "markdown")
    page = site.capsys.readouterr().out
    assert page.startswith("### Catalogs: `production` → `feature`\n")
    assert "```diff\n" in page
    assert "+workers 2\n" in page


WRONG: Mapping[str, tuple[list[str], type[PuppetError]]] = {
    "no nodes": (["--from", "production", "--to", "feature"], ConfigError),
    "two ways to say which nodes": (["--from", "production", "--to", "feature", "--all", "--nodes", "a"], ConfigError),
    "no sides": (["--all"], ConfigError),
    "an argument": (["x", "--from", "production", "--to", "feature", "--all"], ConfigError),
    "a format": (["--from", "production", "--to", "feature", "--all", "--format", "xml"], ConfigError),
    "a classification": (["--from", "production", "--to", "feature", "--all", "--classification", "x"], ConfigError),
    "a reason to fail": (["--from", "production", "--to", "feature", "--all", "--fail-on", "x"], ConfigError),
    "an environment": (["--from", "production", "--to", "nothere", "--all"], NotFound),
    "a folder": (["--from", "production", "--to", "./nothere", "--all"], NotFound),
    "a certname": (["--from", "production", "--to", "feature", "--nodes", "../x"], BadName),
    "a node without facts": (["--from", "production", "--to", "feature", "--nodes", "stranger"], NotFound),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_one_clear_error(site: Site, name: str) -> None:
    words, error = WRONG[name]
    with pytest.raises(error):
        site.run(*words)


def test_an_environment_that_is_a_link_is_the_version_that_it_leads_to(site: Site) -> None:
    environments = site.root / "code/environments"
    version = environments / ".versions/feature/1"
    version.parent.mkdir(parents=True)
    (environments / "feature").rename(version)
    (version / "manifests/site.pp").write_text("notify { $environment: }")
    (environments / "feature").symlink_to(".versions/feature/1")
    code, result = site.preview("--nodes", "db1")
    assert (code, result["to"]) == (2, {"name": "feature", "root": str(version), "revision": None, "subject": None})
    assert "Notify[production]" in {change["subject"] for change in result["changes"]}  # it is called so in both compilations


MESSAGE = "${fact} ${team} ${facts['fact']}"
CLASSIFIED = {
    "manifests/site.pp": "node default { }",
    "modules/old/manifests/init.pp": f'class old($text = "x") {{ notify {{ "old ${{text}} {MESSAGE}": }} }}',
    "modules/new/manifests/init.pp": 'class new { notify { "new ${team}": } }',
}


@dataclass(slots=True)
class Classifier:
    """A classifier for the nodes of a site, of whose last runs the master keeps what `store_run` says."""

    site: Site

    def says(self, text: str) -> None:
        path = self.site.root / "enc"
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
        path.chmod(0o755)

    def store_run(self, name: str, classes: Any, environment: str = "production", **parameters: str) -> None:
        """Store the facts of a run and the node that the master made of them, as it does."""
        facts = {"fact": "of the run", "shadowed": "a fact"}
        stored = self.site.root / "var/server_data/facts" / f"{name}.json"
        stored.write_text(json.dumps({"name": name, "values": facts}))
        node = {"name": name, "environment": environment, "classes": classes, "parameters": facts | parameters}
        path = self.site.root / "var/yaml/node" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"--- !ruby/object:Puppet::Node {json.dumps(node)}\n")

    def preview(self, *words: str, code: Mapping[str, str] = CLASSIFIED) -> dict[str, Any]:
        """Return what a preview finds that adds a parameter to every notification, by its nodes."""
        self.site.write(code, "production")
        self.site.write({name: text.replace('": }', '": message => "m" }') for name, text in code.items()})
        _, result = self.site.preview(
            "--node_terminus=exec", f"--external_nodes={self.site.root}/enc", "--node_cache_terminus=write_only_yaml", *words
        )
        return result


@pytest.fixture
def classifier(site: Site) -> Classifier:
    for name in NODES:
        (site.root / "var/server_data/facts" / f"{name}.json").unlink()
    return Classifier(site)


def subjects(result: Mapping[str, Any]) -> dict[str, list[str]]:
    return {change["subject"]: change["nodes"] for change in result["changes"]}


def test_classes_and_parameters_are_those_of_the_last_run_unless_those_of_now_are_asked_for(classifier: Classifier) -> None:
    classifier.says("{classes: [new], parameters: {team: red}}")
    classifier.store_run("web1", {"old": {"text": "t"}}, team="blue")
    classifier.store_run("web2", ["old"], team="green")
    result = classifier.preview("--all")
    assert subjects(result) == {
        "Notify[old t of the run blue of the run]": ["web1"],
        "Notify[old x of the run green of the run]": ["web2"],
    }
    assert (result["classified_now"], result["elsewhere"]) == ([], [])
    result = classifier.preview("--all", "--classification", "current")
    assert subjects(result) == {"Notify[new red]": ["web1", "web2"]}
    assert result["classified_now"] == []


def test_a_classifier_that_does_not_answer_any_more_is_not_needed_for_nodes_that_have_run(classifier: Classifier) -> None:
    classifier.store_run("web1", ["old"], team="blue")
    assert subjects(classifier.preview("--all")) == {"Notify[old x of the run blue of the run]": ["web1"]}
    with pytest.raises(PuppetError, match="find web1 via exec"):
        classifier.preview("--all", "--classification", "current")


def test_a_node_of_which_no_run_is_kept_is_classified_now_and_named(classifier: Classifier) -> None:
    classifier.says("{classes: [new], parameters: {team: red}}")
    classifier.store_run("web1", ["old"], team="blue")
    classifier.store_run("web2", ["old"], team="blue")
    (classifier.site.root / "var/yaml/node/web2.yaml").write_text("--- [torn")
    for words, nodes in ((["--nodes", "web1,web2"], ["web2"]), (["--all", "--node_cache_terminus="], ["web1", "web2"])):
        result = classifier.preview(*words)
        assert result["classified_now"] == nodes
        assert subjects(result)["Notify[new red]"] == nodes
    classifier.site.run("--from", "production", "--to", "feature", "--all", "--node_terminus=plain")
    assert "classified now" not in classifier.site.capsys.readouterr().err  # nothing classifies nodes


def test_facts_of_a_file_go_over_those_of_the_run_and_not_over_what_the_classifier_said(classifier: Classifier, tmp_path: Path) -> None:
    classifier.store_run("web1", ["old"], team="blue", shadowed="a parameter")
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"fact": "of a file", "team": "a fact", "shadowed": "of a file"}))
    code = {**CLASSIFIED, "modules/old/manifests/init.pp": 'class old { notify { "${fact} ${team} ${shadowed}": } }'}
    result = classifier.preview("--all", "--facts", str(facts), code=code)
    assert subjects(result) == {"Notify[of a file blue a parameter]": ["web1"]}


def test_nodes_whose_last_run_was_in_another_environment_are_left_out_and_named(classifier: Classifier) -> None:
    classifier.says("{classes: [new], parameters: {team: red}}")
    classifier.store_run("web1", ["old"], team="blue")
    classifier.store_run("web2", ["old"], team="blue", environment="staging")
    result = classifier.preview("--all")
    assert (list(result["nodes"]), result["elsewhere"]) == (["web1"], ["web2"])
    options = ("--node_terminus=exec", "--external_nodes=/nowhere/enc", "--node_cache_terminus=write_only_yaml")
    classifier.site.run("--from", "production", "--to", "feature", "--all", *options)
    assert "1 node is left out, in another environment.\n" in classifier.site.capsys.readouterr().out
