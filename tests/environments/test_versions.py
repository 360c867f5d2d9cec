"""Versions of an environment: which catalogs are stale after a deployment, and which version a run uses."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from environments.directories import EnvironmentSettings
from environments.runs import RunVersions, current_versions
from environments.versions import code_id_of_version, find_version, version_behind
from language.codegen.codecache import CodeCache
from language.log import LogEntry
from master.pools.compile_worker import CompileWorker
from shared.errors import NotFound
from tests.support.compile_jobs import catalog_job

pytestmark = pytest.mark.works_with("Deployment and tools for code", "which catalogs are stale after a deployment")

CODE = {
    "manifests/site.pp": "node 'a.test' { include a } node 'b.test' { include b } node 'c.test' { notify { lookup('k'): } }",
    "hiera.yaml": "version: 5\nhierarchy: [{name: a, path: a.yaml}]\n",
    "data/a.yaml": "k: v\n",
    "modules/m/templates/t.epp": "text",
    "modules/a/manifests/init.pp": "class a { notify { epp('m/t.epp'): } }",
    "modules/b/manifests/init.pp": "class b { notify { 'b': } }",
}


class Site:
    """An environment that is a link to one of its versions, and who compiles it."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.environments = root / "environments"
        self.link = self.environments / "production"
        self.worker = CompileWorker(
            EnvironmentSettings((str(self.environments),), compiler={"strict": "warning"}, **settings), CodeCache(), memo=2**20
        )

    def version(self, name: str, files: Mapping[str, str] | None = None) -> Path:
        """Make a version, all of whose files are new ones."""
        folder = self.environments / ".versions" / "production" / name
        for path, text in {**CODE, ".puppet-deploy.json": json.dumps({"signature": name}), **(files or {})}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            os.utime(file, (1, 1))
        return folder

    def switch(self, name: str) -> None:
        new = self.environments / "new"
        new.symlink_to(f".versions/production/{name}")
        new.replace(self.link)

    def ask(self, node: str, pin: str = "") -> tuple[dict[str, Any], bool]:
        """Return a node's catalog, and whether it came from memory."""
        job = catalog_job(f"{node}.test", {}, pin=pin)
        logs: list[LogEntry] = []
        hits = self.worker.memo.hits
        catalog: dict[str, Any] = json.loads(self.worker.answer(job, logs.append).body)
        return catalog, self.worker.memo.hits > hits

    def stale(self) -> set[str]:
        """Return the nodes whose catalogs are compiled again."""
        return {node for node in "abc" if not self.ask(node)[1]}


CHANGES: Mapping[str, tuple[Mapping[str, str], set[str]]] = {
    "nothing": ({}, set()),
    "a file that no catalog reads": ({"README.md": "new"}, set()),
    "a template": ({"modules/m/templates/t.epp": "another"}, {"a"}),
    "data": ({"data/a.yaml": "k: w\n"}, {"c"}),
    "a file beside the classes of a module": ({"modules/b/files/x": "x"}, set()),
}


@pytest.mark.parametrize("timeout", [0, None], ids=["looked at each time", "unlimited"])
@pytest.mark.parametrize("change", CHANGES)
def test_only_catalogs_that_can_be_affected_are_stale(tmp_path: Path, change: str, timeout: float | None) -> None:
    site = Site(tmp_path, environment_timeout=timeout)
    site.version("v1")
    site.switch("v1")
    before = {node: site.ask(node)[0] for node in "abc"}
    assert site.stale() == set()
    files, stale = CHANGES[change]
    site.version("v2", files)
    site.switch("v2")
    assert site.stale() == stale
    for node, catalog in before.items():
        again = site.ask(node)[0]
        assert (catalog["code_id"], again["code_id"]) == ("v1", "v2")
        assert (catalog["resources"] == again["resources"]) is (node not in stale)
    site.switch("v1")
    assert site.stale() <= stale
    assert {node: site.ask(node)[0]["resources"] for node in "abc"} == {node: catalog["resources"] for node, catalog in before.items()}


@pytest.mark.parametrize(
    "files",
    [
        {"modules/b/manifests/init.pp": "class b { notify { 'new': } }"},
        {"manifests/site.pp": CODE["manifests/site.pp"].replace("include b", "notify { 'new': }")},
        {"manifests/z.pp": "notify { 'new': }"},
        {"environment.conf": "modulepath = modules:more\n", "more/c/manifests/init.pp": "class c {}"},
        {"hiera.yaml": "version: 5\nhierarchy: [{name: a, path: b.yaml}]\n", "data/b.yaml": "k: new\n"},
    ],
    ids=lambda files: next(iter(files)),
)
def test_manifests_and_configuration_that_differ_are_loaded_again(tmp_path: Path, files: Mapping[str, str]) -> None:
    site, fresh = Site(tmp_path, environment_timeout=None), Site(tmp_path)
    site.version("v1")
    site.version("v2", files)
    for name in ("v1", "v2", "v1", "v2"):
        site.switch(name)
        for node in "abc":
            catalog, expected = site.ask(node)[0], fresh.ask(node)[0]
            assert catalog["resources"] == expected["resources"] and catalog["code_id"] == name


def test_two_versions_are_served_at_the_same_time_and_none_is_loaded_anew(tmp_path: Path) -> None:
    site = Site(tmp_path)
    folders = [site.version("v1"), site.version("v2", {"modules/b/manifests/init.pp": "class b { notify { 'new': } }"})]
    site.switch("v2")
    titles = []
    for folder in folders * 3:
        catalog, _ = site.ask("b", str(folder))
        titles.append(catalog["resources"][-1]["title"])
    assert titles == ["b", "new"] * 3
    loaded = list(site.worker.environments._loaded["production"])
    for folder in folders:
        site.ask("b", str(folder))
    assert {id(each) for each in loaded} == {id(each) for each in site.worker.environments._loaded["production"]}


def test_a_class_that_is_loaded_in_one_version_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    site = Site(tmp_path, environment_timeout=None)
    one = site.version("v1")
    two = site.version("v2", {"modules/b/manifests/init.pp": "class b { notify { 'new': } }"})
    site.switch("v1")
    assert [site.ask("a", str(folder))[0]["code_id"] for folder in (one, two)] == ["v1", "v2"]  # neither has loaded class b
    for folder, title in ((one, "b"), (two, "new"), (one, "b")):
        assert site.ask("b", str(folder))[0]["resources"][-1]["title"] == title


def test_resources_name_their_files_as_the_environment_has_them(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.version("v1")
    site.switch("v1")
    (resource,) = (resource for resource in site.ask("b")[0]["resources"] if resource["type"] == "Notify")
    assert resource["file"] == str(site.link / "modules/b/manifests/init.pp")


def test_config_version_is_that_of_each_version_and_in_catalogs_from_memory(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for name in ("v1", "v2"):
        folder = site.version(name, {"environment.conf": "config_version = version.sh\n", "version.sh": "#!/bin/sh\nbasename $(pwd -P)\n"})
        (folder / "version.sh").chmod(0o755)
    for name, is_known in (("v1", False), ("v2", True), ("v1", True)):
        site.switch(name)
        catalog, from_memory = site.ask("b")
        assert (catalog["version"], catalog["code_id"], from_memory) == (name, name, is_known)


def test_a_version_is_found_by_its_code_id_only_where_it_was_deployed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    folder = site.version("v1")
    site.switch("v1")
    (folder.parent / "v3").mkdir()
    site.version("v4", {".puppet-deploy.json": '{"signature": "v5"}'})
    root = str(site.link)
    assert version_behind(root) == str(folder) and code_id_of_version(str(folder)) == "v1"
    assert find_version(root, "v1") == str(folder)
    assert [find_version(root, code_id) for code_id in ("v2", "v3", "v4", "v5", "..", ".", "", "v1/data")] == [None] * 8
    assert version_behind(str(folder)) == "" and version_behind(str(tmp_path / "none")) == ""


class Runs:
    """Runs of clients, a clock, and the version that the environment is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 0.0
        self.versions = RunVersions(current_versions(self.root_of), lifetime=100, clock=lambda: self.now)

    def root_of(self, name: str) -> str:
        if name == "none":
            raise NotFound(name)
        return str(self.root / name)

    def switch(self, name: str) -> None:
        (self.root / name).mkdir(exist_ok=True)
        (self.root / "new").symlink_to(name)
        (self.root / "new").replace(self.root / "production")

    def ask(self, what: str, client: str = "a") -> str:
        name = {
            "catalog": lambda: self.versions.for_catalog(client, "production"),
            "file": lambda: self.versions.for_file(client, "production"),
        }.get(what, lambda: self.versions.for_listing(client, "production", what))()
        return Path(name).name


@pytest.mark.parametrize(
    ("steps", "versions"),
    [
        ("probe pluginfacts plugins | file catalog file", "1 1 1 1 1 1"),
        ("plugins catalog | file catalog file", "1 1 1 2 2"),
        ("plugins catalog | pluginfacts catalog", "1 1 2 2"),
        ("plugins | plugins catalog", "1 2 2"),
        ("probe plugins | probe plugins", "1 1 2 2"),
        ("file | file", "1 2"),
        ("catalog | file | file catalog", "1 1 1 3"),
    ],
)
def test_a_run_begins_where_something_is_asked_that_a_run_asks_once(tmp_path: Path, steps: str, versions: str) -> None:
    runs = Runs(tmp_path)
    runs.switch("1")
    number, answers = 1, []
    for step in steps.split():
        if step == "|":
            number += 1
            runs.switch(str(number))
        else:
            answers.append(runs.ask(step))
    assert answers == versions.split()


def test_a_catalog_that_comes_again_within_its_transaction_belongs_to_the_same_run(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.switch("1")
    first = runs.versions.for_catalog("a", "production", "x")
    runs.switch("2")
    assert runs.versions.for_catalog("a", "production", "x") == first
    assert Path(runs.versions.for_catalog("a", "production", "y")).name == "2"


def test_runs_end_by_time_and_with_their_version_and_are_of_one_client(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.switch("1")
    assert runs.ask("plugins") == "1"
    runs.switch("2")
    assert (runs.ask("file"), runs.ask("file", "b"), runs.ask("catalog", "b")) == ("1", "2", "2")
    runs.now = 101
    assert runs.ask("file") == "2"
    assert runs.ask("plugins", "c") == "2"
    runs.switch("3")
    (tmp_path / "2").rmdir()
    assert runs.ask("catalog", "c") == "3"


def test_an_environment_that_is_no_link_has_no_versions(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    (tmp_path / "production").mkdir()
    assert [runs.ask(what) for what in ("plugins", "catalog", "file")] == ["", "", ""]
    assert runs.versions.for_catalog("a", "none") == ""
