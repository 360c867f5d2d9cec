"""Tasks and plans of modules. The answers of puppetserver to the same are compared in tests/interop."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from environments.listings.environment import Listings
from shared.errors import NotFound

DESCRIBED = {"description": "does it", "private": True, "parameters": {"b": {"type": "String"}, "a": {"type": "Integer"}}}
IMPLEMENTED = {
    "implementations": [{"name": "linux.sh", "requirements": ["shell"]}, {"name": "windows.ps1", "files": ["m/files/a.txt"]}],
    "files": ["m/files/a.txt", "m/lib/"],
}
FILES = {
    "m/tasks/init.sh": "i", "m/tasks/noext": "n", "m/tasks/Upper.sh": "x", "m/tasks/readme.md": "x", "m/tasks/x.conf": "x",
    "m/tasks/folder/x.sh": "x", "m/tasks/described.sh": "d", "m/tasks/described.json": json.dumps(DESCRIBED),
    "m/tasks/linux.sh": "l", "m/tasks/windows.ps1": "w", "m/tasks/many.json": json.dumps(IMPLEMENTED),
    "m/tasks/empty.sh": "e", "m/tasks/empty.json": "",
    "m/files/a.txt": "a", "m/files/.hidden": "h", "m/lib/deep/b.rb": "b", "m/lib/c.rb": "c", "m/manifests/init.pp": "",
    "m/plans/init.pp": "plan m() { }", "m/plans/one.pp": "plan {", "m/plans/one.yaml": "", "m/plans/two.yaml": "", "m/plans/class.pp": "",
    "m/plans/Up.pp": "", "m/plans/x.txt": "", "other/files/x": "", "other/plans/p.pp": "",
}  # fmt: skip


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "environments/production/modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "environments/production/modules"


@pytest.fixture
def listings(modules: Path, said: list[str]) -> Listings:
    environments = Environments(EnvironmentSettings((str(modules.parent.parent),)))
    return Listings(environments, lambda level, finding: said.append(f"{level}: {finding}"))


def ask(listings: Listings, of: str, module: str = "", name: str = "") -> Any:
    return json.loads(listings.answer({"of": of, "environment": "production", "module": module, "name": name}))


def test_tasks_are_listed_with_what_their_metadata_say(listings: Listings) -> None:
    found = ask(listings, "tasks")
    assert [each["name"] for each in found] == ["m::described", "m::empty", "m", "m::linux", "m::many", "m::noext", "m::windows"]
    where = [{"name": "production", "code_id": None}]
    assert json.dumps(found[0]) == json.dumps({"name": "m::described", "private": True, "description": "does it", "environment": where})
    assert found[1] == {"name": "m::empty", "private": False, "description": "", "environment": where}


def test_a_task_is_described_with_its_file(listings: Listings) -> None:
    found = ask(listings, "task", "m", "described")
    assert json.dumps(found["metadata"]) == json.dumps(
        {"description": "does it", "parameters": {"a": {"type": "Integer"}, "b": {"type": "String"}}, "private": True}
    )
    digest = hashlib.sha256(b"d").hexdigest()
    assert found["name"] == "m::described"
    assert found["files"] == [
        {"filename": "described.sh", "sha256": digest, "size_bytes": 1, "place": ["modules", "m", "tasks", "described.sh"]}
    ]
    assert ask(listings, "task", "m", "init")["name"] == "m"


def test_a_task_brings_its_implementations_and_files_each_once(listings: Listings) -> None:
    found = ask(listings, "task", "m", "many")["files"]
    assert [(each["filename"], each["place"]) for each in found] == [
        ("linux.sh", ["modules", "m", "tasks", "linux.sh"]),
        ("windows.ps1", ["modules", "m", "tasks", "windows.ps1"]),
        ("m/files/a.txt", ["modules", "m", "files", "a.txt"]),
        ("m/lib/c.rb", ["modules", "m", "lib", "c.rb"]),
        ("m/lib/deep/b.rb", ["modules", "m", "lib", "deep/b.rb"]),
    ]


WRONG: list[tuple[dict[str, Any] | list[Any] | str, str, str]] = [
    ("{nothing", "unparseable-metadata", "Not JSON"),
    ([], "invalid-metadata", "is not an object"),
    ({"files": "x"}, "invalid-metadata", "The 'files' task metadata expects an array, got x."),
    ({"files": {"a": 1}}, "invalid-metadata", "The 'files' task metadata expects an array, got {"),
    ({"files": [5]}, "invalid-metadata", "The 'files' task metadata expects an array"),
    ({"files": ["nomod/files/x"]}, "invalid-metadata", "Could not find module nomod containing task file x"),
    ({"files": ["../files/x"]}, "invalid-metadata", "Could not find module .. containing task file x"),
    ({"files": [""]}, "invalid-metadata", "Could not find module  containing task file"),
    ({"files": ["m/manifests/init.pp"]}, "invalid-metadata", "Files must be saved in module directories that Puppet makes available"),
    ({"files": ["m/files/../../../environment.conf"]}, "invalid-metadata", "File pathnames cannot include relative paths"),
    ({"files": ["m/files/./a.txt"]}, "invalid-metadata", "File pathnames cannot include relative paths"),
    ({"files": ["m/files/a\0.txt"]}, "invalid-metadata", "File pathnames cannot include relative paths"),
    ({"files": ["m/files/missing"]}, "invalid-file", "m/files/missing on disk"),
    ({"files": ["m/files/a.txt/"]}, "invalid-file", "m/files/a.txt/ on disk"),
    ({"files": ["m/lib"]}, "invalid-metadata", "Directories specified in task metadata must include a trailing slash: m/lib"),
    ({"implementations": "x"}, "invalid-metadata", "does not specify implementations as an array"),
    ({"implementations": [5]}, "invalid-metadata", "does not specify implementations as an array"),
    ({"implementations": [{"name": "linux.sh", "requirements": "x"}]}, "invalid-metadata", "does not specify requirements as an array"),
    ({"implementations": [{"name": "nope.sh"}]}, "missing-implementation", "specifies missing implementation nope.sh"),
    ({"implementations": [{}]}, "missing-implementation", "specifies missing implementation None"),
    ({"implementations": [{"name": "linux.sh", "files": "x"}]}, "invalid-metadata", "expects an array, got x."),
]


@pytest.mark.parametrize(("metadata", "kind", "message"), WRONG, ids=lambda each: str(each)[:60])
def test_what_is_wrong_with_a_task_is_said_and_hides_no_other(
    listings: Listings, modules: Path, said: list[str], metadata: Any, kind: str, message: str
) -> None:
    (modules / "m/tasks/noext.json").write_text(metadata if isinstance(metadata, str) else json.dumps(metadata))
    error = ask(listings, "task", "m", "noext")["error"]
    assert (error["kind"], message in error["msg"]) == (f"puppet.tasks/{kind}", True), error
    assert len(ask(listings, "tasks")) == 6
    assert len(said) == 1 and "The task m::noext of environment production is not listed" in said[0]


def test_a_task_without_a_program_and_one_with_two_say_so(listings: Listings, modules: Path) -> None:
    (modules / "m/tasks/alone.json").write_text("{}")
    (modules / "m/tasks/noext.py").write_text("x")
    assert ask(listings, "task", "m", "alone")["error"]["kind"] == "puppet.tasks/no-implementation"
    assert ask(listings, "task", "m", "noext")["error"]["kind"] == "puppet.tasks/multiple-implementations"


def test_plans_are_listed_by_names_that_may_be(listings: Listings) -> None:
    where = [{"name": "production", "code_id": None}]
    names = ["m", "m::one", "m::two", "other::p"]
    assert ask(listings, "plans") == [{"name": name, "environment": where} for name in names]
    assert ask(listings, "plan", "m", "two") == {"metadata": {}, "name": "m::two"}


@pytest.mark.parametrize(
    ("of", "module", "name", "message"),
    [
        ("task", "nomod", "x", "Could not find module 'nomod'"),
        ("task", "..", "x", "Could not find module '..'"),
        ("task", "M", "x", "Could not find module 'M'"),
        ("task", "m", "nope", "Could not find task 'nope'"),
        ("task", "m", "Upper", "Could not find task 'Upper'"),
        ("task", "m", "../tasks/init", "Could not find task '../tasks/init'"),
        ("task", "other", "init", "Could not find task 'init'"),
        ("plan", "nomod", "x", "Could not find module 'nomod'"),
        ("plan", "m", "class", "Could not find plan 'class'"),
    ],
)
def test_what_is_not_there_is_named(listings: Listings, of: str, module: str, name: str, message: str) -> None:
    with pytest.raises(NotFound) as caught:
        ask(listings, of, module, name)
    assert str(caught.value) == message
