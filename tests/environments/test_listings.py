"""What tools ask of environments, read off their files. The answers of puppetserver to the same are compared in tests/interop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from environments.listings.classes import classes
from environments.listings.environment import MAX_ENVIRONMENTS, Listings
from language.syntax.source import Source
from shared.errors import NotFound, ParseError

METADATA = {"name": "acme-meta", "version": "1.2.3"}
FILES = {
    "manifests/site.pp": "class insite ($a = 1) { class inner { } }\nnode default { }\n",
    "manifests/deep/er/more.pp": "class more { }\n",
    "manifests/.hidden.pp": "class hidden { }\n",
    "manifests/notes.txt": "class text { }\n",
    "modules/web/manifests/init.pp": "class web (Integer $port = 80) { }\n",
    "modules/web/manifests/broken.pp": "class web::broken {\n",
    "modules/meta/metadata.json": json.dumps(METADATA),
    "modules/spoilt/metadata.json": "{nothing",
    "modules/Upper/manifests/init.pp": "class upper { }\n",
    "base/web/manifests/hidden.pp": "class web::hidden { }\n",
    "environment.conf": "modulepath = modules:base\n",
}


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def listings(tmp_path: Path, said: list[str]) -> Listings:
    for name, text in FILES.items():
        path = tmp_path / "environments/production" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "environments/empty").mkdir()
    environments = Environments(EnvironmentSettings((str(tmp_path / "environments"),)))
    return Listings(environments, lambda level, finding: said.append(f"{level}: {finding}"))


def of_file(listings: Listings, name: str) -> dict[str, Any]:
    (found,) = (each for each in listings.classes("production")["files"] if each["path"].endswith(name))
    return found


def test_every_manifest_is_listed_by_path_with_its_classes(listings: Listings, tmp_path: Path) -> None:
    found = listings.classes("production")
    root = f"{tmp_path}/environments/production/"
    assert [(each["path"].removeprefix(root), [one["name"] for one in each.get("classes", [])]) for each in found["files"]] == [
        ("manifests/deep/er/more.pp", ["more"]),
        ("manifests/site.pp", ["insite::inner", "insite"]),
        ("modules/web/manifests/broken.pp", []),
        ("modules/web/manifests/init.pp", ["web"]),
    ]
    assert found["name"] == "production"


def test_a_manifest_that_is_wrong_says_so_and_hides_no_other(listings: Listings) -> None:
    broken = of_file(listings, "broken.pp")
    assert broken == {"error": f"Syntax error at end of input (file: {broken['path']})", "path": broken["path"]}


def test_a_manifest_that_is_no_text_says_so(listings: Listings, tmp_path: Path) -> None:
    (tmp_path / "environments/production/manifests/site.pp").write_bytes(b"class x { } # \xff\n")
    assert "is not valid UTF-8" in of_file(listings, "site.pp")["error"]


def test_a_file_that_changes_is_read_again(listings: Listings, tmp_path: Path) -> None:
    assert of_file(listings, "init.pp")["classes"][0]["params"][0]["default_literal"] == 80
    (tmp_path / "environments/production/modules/web/manifests/init.pp").write_text("class web (Integer $port = 81) { }\n")
    assert of_file(listings, "init.pp")["classes"][0]["params"][0]["default_literal"] == 81


def test_a_manifest_that_is_nested_too_deeply_says_so(listings: Listings, tmp_path: Path) -> None:
    depth = 3000
    (tmp_path / "environments/production/manifests/site.pp").write_text(f"class deep ($p = {'[' * depth}{']' * depth}) {{ }}\n")
    assert "Nested too deeply" in of_file(listings, "site.pp")["error"]
    assert of_file(listings, "init.pp")["classes"][0]["name"] == "web"


def test_what_was_read_of_environments_is_not_kept_without_end(listings: Listings, tmp_path: Path) -> None:
    for number in range(MAX_ENVIRONMENTS + 5):
        (tmp_path / f"environments/e{number}").mkdir()
        listings.classes(f"e{number}")
    assert len(listings._read) == MAX_ENVIRONMENTS
    listings.forget()
    assert len(listings._read) == 0


def test_an_environment_without_files_has_no_classes_and_no_modules(listings: Listings) -> None:
    assert listings.classes("empty") == {"files": [], "name": "empty"}
    assert listings.modules("empty") == {"modules": [], "name": "empty"}


def test_modules_go_by_the_name_and_version_of_their_metadata(listings: Listings, said: list[str]) -> None:
    assert listings.modules("production")["modules"] == [
        {"name": "acme/meta", "version": "1.2.3"},
        {"name": "spoilt", "version": None},
        {"name": "web", "version": None},
    ]
    assert len(said) == 1 and "spoilt/metadata.json cannot be read: Not JSON" in said[0]


@pytest.mark.parametrize("metadata", ["[]", '{"name": 5, "version": 1.0}', '"x"', "", '{"name": ""}'])
def test_metadata_of_another_shape_say_nothing(listings: Listings, tmp_path: Path, metadata: str) -> None:
    (tmp_path / "environments/production/modules/meta/metadata.json").write_text(metadata)
    assert listings.modules("production")["modules"][0] == {"name": "meta", "version": None}


def test_without_an_environment_the_modules_of_all_are_listed(listings: Listings) -> None:
    found = json.loads(listings.answer({"of": "modules", "environment": ""}))
    assert [each["name"] for each in found] == ["empty", "production"]


@pytest.mark.parametrize("of", ["classes", "modules"])
def test_an_environment_that_does_not_exist_is_not_found(listings: Listings, of: str) -> None:
    with pytest.raises(NotFound, match="Could not find environment 'nowhere'"):
        listings.answer({"of": of, "environment": "nowhere"})


PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    ("$p", {"name": "p"}),
    ("String $p", {"name": "p", "type": "String"}),
    ("$p = 'x'", {"default_literal": "x", "default_source": "'x'", "name": "p"}),
    ("$p = word", {"default_literal": "word", "default_source": "word", "name": "p"}),
    ("$p = 0x1F", {"default_literal": 31, "default_source": "0x1F", "name": "p"}),
    ("$p = undef", {"default_source": "undef", "name": "p"}),
    ("$p = -1", {"default_source": "-1", "name": "p"}),
    ("$p = (1)", {"default_source": "(1)", "name": "p"}),
    ("$p = 1 + 2", {"default_source": "1 + 2", "name": "p"}),
    ('$p = "a${b}"', {"default_source": '"a${b}"', "name": "p"}),
    ("$p = [1, undef]", {"default_literal": [1, None], "default_source": "[1, undef]", "name": "p"}),
    ("$p = [default]", {"default_source": "[default]", "name": "p"}),
    ("$p = {1 => 2}", {"default_source": "{1 => 2}", "name": "p"}),
    ("$p = {b => 1, a => 2}", {"default_literal": {"a": 2, "b": 1}, "default_source": "{b => 1, a => 2}", "name": "p"}),
    ("Integer[-1, default] $p", {"name": "p", "type": "Integer[-1]"}),
    ("Struct[{ # why\n a => Pattern[/^x/] }] $p", {"name": "p", "type": "Struct[{'a' => Pattern[/^x/]}]"}),
    ("Optional[Own::Type['x']] $p", {"name": "p", "type": "Optional[TypeReference['Own::Type[\\'x\\']']]"}),
    ("Integer[0, $x] $p", {"name": "p"}),
    ("Array[Integer[5, 1]] $p", {"name": "p"}),
]


@pytest.mark.parametrize(("parameter", "listed"), PARAMETERS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_parameter_is_listed_as_far_as_it_can_be_told_without_running(parameter: str, listed: dict[str, Any]) -> None:
    (found,) = classes(Source(f"class c ({parameter}) {{ }}"), strict="warning", log=lambda level, finding: None)
    assert json.dumps(found["params"]) == json.dumps([listed])  # the order counts, too


def test_what_the_checker_refuses_is_refused(said: list[str]) -> None:
    with pytest.raises(ParseError, match="Language validation logged 2 errors"):
        classes(Source("class c { 1 = 2\n 3 = 4 }"), strict="warning", log=lambda level, finding: said.append(level))
    assert said == ["err", "err"]
