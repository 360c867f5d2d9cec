"""What an environment's manifests define, read off the syntax tree; and the terminus in front of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from environments.listings.resource_types import ResourceTypes, check_name, definitions
from language.syntax.source import Source
from master.pools.jobs import DefinitionsQuery
from master.termini.resource_type import NotManaged, Parser
from shared.errors import BadRequest, NotFound, Unsupported
from shared.indirector import Binding
from shared.models.resource import RESOURCE
from shared.models.resource_type import RESOURCE_TYPE
from shared.wire.dialects import LEGACY, MODERN

SITE = """
node default { }
node 'web1.example.com', /^db\\d+$/ { }
# Given by the site.
class everywhere { }
"""
INIT = """# A web server.
#
# It serves.
class web (
  Integer $port = 8000 + 80,
  $root,
  $names = [ 'a', "${facts['b']}" ],
  $deep = $port ? { 80 => ($root), default => undef },
) inherits web::params {
  define inner { }
}
"""
FILES = {
    "manifests/site.pp": SITE,
    "modules/web/manifests/init.pp": INIT,
    "modules/web/manifests/params.pp": "class web::params { }",
    "modules/web/manifests/a/b.pp": "define web::a::b ($x = undef) { }",
    "modules/web/manifests/broken.pp": "class web::broken {",
    "modules/web/manifests/stray.pp": "class db { }\nnode stray { }",
    "base/web/manifests/hidden.pp": "class web::hidden { }",
    "base/db/manifests/init.pp": "class db { }",
    "environment.conf": "modulepath = modules:base\n",
}
ALL = ["db", "everywhere", "web", "web::params", "web::a::b", "web::inner", "__node_regexp__dbd", "default", "web1.example.com"]


@pytest.fixture
def log() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def types(tmp_path: Path, log: list[tuple[str, str]]) -> ResourceTypes:
    for name, text in FILES.items():
        path = tmp_path / "environments" / "production" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "exploit.pp").write_text("class tmp::exploit { }")
    environments = Environments(EnvironmentSettings((str(tmp_path / "environments"),)))
    return ResourceTypes(environments, lambda level, text: log.append((level, text)))


def test_a_class_is_described_with_its_parameters_as_they_are_written() -> None:
    inner, web = definitions(Source(INIT, "/init.pp"))
    assert web == {
        "name": "web",
        "kind": "class",
        "parameters": {
            "port": "8000 + 80",
            "root": None,
            "names": "[ 'a', \"${facts['b']}\" ]",
            "deep": "$port ? { 80 => ($root), default => undef }",
        },
        "doc": "A web server.\n\nIt serves.",
        "file": "/init.pp",
        "line": 4,
        "parent": "web::params",
    }
    assert (inner["name"], inner["kind"], inner["line"]) == ("web::inner", "defined_type", 10)


def test_a_search_gives_everything_by_kind_and_name_and_logs_what_is_broken(types: ResourceTypes, log: list[tuple[str, str]]) -> None:
    assert [each["name"] for each in types.search("production", "*", "")] == ALL
    assert len(log) == 1
    assert log[0][0] == "err"
    assert "broken.pp" in log[0][1]


@pytest.mark.parametrize(
    ("pattern", "kind", "found"),
    [
        ("^web::", "", ["web::params", "web::a::b", "web::inner"]),
        ("^web", "class", ["web", "web::params"]),
        ("*", "defined_type", ["web::a::b", "web::inner"]),
        ("*", "node", ["__node_regexp__dbd", "default", "web1.example.com"]),
        ("hidden|stray|broken", "", []),
    ],
)
def test_a_search_is_narrowed_by_pattern_and_kind(types: ResourceTypes, pattern: str, kind: str, found: list[str]) -> None:
    assert [each["name"] for each in types.search("production", pattern, kind)] == found


@pytest.mark.parametrize("name", ALL)
def test_whatever_a_search_gives_is_found_by_its_name(types: ResourceTypes, name: str) -> None:
    found = types.find("production", name)
    assert found is not None
    assert found["name"] == name


@pytest.mark.parametrize("name", ["nope", "web::nope", "web::hidden", "web::broken", "stray"])
def test_what_is_not_defined_is_not_found(types: ResourceTypes, name: str) -> None:
    assert types.find("production", name) is None


def test_a_leading_colon_and_capitals_do_not_matter(types: ResourceTypes) -> None:
    found = types.find("production", "::Web::Params")
    assert found is not None
    assert found["name"] == "web::params"


def test_a_changed_manifest_is_read_again(types: ResourceTypes, tmp_path: Path) -> None:
    assert types.find("production", "web::params") is not None
    (tmp_path / "environments/production/modules/web/manifests/params.pp").write_text("class web::params ($new = 1) { }")
    found = types.find("production", "web::params")
    assert found is not None
    assert found["parameters"] == {"new": "1"}


@pytest.mark.parametrize(
    "name",
    ["::..::..::tmp::exploit", "..::x", "../../x", "web::../x", "::", "a b", "x" * 10_000, "web\0", "web::/etc/passwd", ".x", "a..b"],
)
def test_ACL_11_a_name_that_could_be_a_path_is_refused(types: ResourceTypes, name: str) -> None:
    with pytest.raises(BadRequest, match="Not the name"):
        types.find("production", name)


@pytest.mark.parametrize(("pattern", "kind"), [("(", ""), ("[a", ""), ("x" * 2000, ""), ("*", "klass"), ("*", "hostclass")])
def test_a_pattern_or_kind_that_is_none_is_refused(types: ResourceTypes, pattern: str, kind: str) -> None:
    with pytest.raises(BadRequest):
        types.search("production", pattern, kind)


def test_an_environment_that_is_not_there_is_named(types: ResourceTypes) -> None:
    with pytest.raises(NotFound, match="nope"):
        types.search("nope", "*", "")


def test_names_are_given_back_as_they_are_looked_up() -> None:
    assert check_name("::Web::Params") == "web::params"


# --- the termini


def answering(*found: dict[str, Any]) -> tuple[list[DefinitionsQuery], Callable[..., Any]]:
    asked: list[DefinitionsQuery] = []

    async def ask(wanted: DefinitionsQuery) -> list[dict[str, Any]]:
        asked.append(wanted)
        return list(found)

    return asked, ask


async def test_the_parser_terminus_asks_and_leaves_out_what_is_absent() -> None:
    asked, ask = answering({"name": "a", "kind": "class", "parameters": {}, "doc": "", "file": "/a.pp", "line": 1, "parent": None})
    binding = Binding(RESOURCE_TYPE, Parser(ask))
    found = await binding.find("a", environment="other")
    assert found is not None
    assert found.to_data(LEGACY) == {"name": "a", "kind": "class", "parameters": {}, "file": "/a.pp", "line": 1}
    assert found.to_data(MODERN) == {"name": "a", "kind": "class", "file": "/a.pp", "line": 1}
    assert await binding.search("x.*", kind="class") == [found]
    assert asked == [DefinitionsQuery("other", name="a"), DefinitionsQuery("production", pattern="x.*", kind="class")]


async def test_the_parser_terminus_has_nothing_where_nothing_is_defined() -> None:
    _, ask = answering()
    binding = Binding(RESOURCE_TYPE, Parser(ask))
    assert await binding.find("a") is None
    assert await binding.search("*") is None


async def test_a_master_says_what_live_resources_would_need() -> None:
    binding = Binding(RESOURCE, NotManaged())
    for asked in (binding.find("user/root"), binding.search("user")):
        with pytest.raises(Unsupported, match="an agent's providers, which a master does not load"):
            await asked
