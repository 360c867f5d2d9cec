"""The page of types and providers says what the declarations say, and every provider is exercised by the tests it names."""

from __future__ import annotations

import ast
import fnmatch
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.errors import ResourceError
from shared.ral import Platform, Provider, Providers
from shared.types import KNOWN, builtin_types
from tests.support.command_line import Puppet
from tests.support.types_page import EXERCISED, MISSING, PAGE, ROOT, SOLE, page, providers

DECLARED: dict[tuple[str, str], Provider[Any]] = {
    (type_name, each.name or SOLE): each for type_name, found in providers(lambda name: name).items() for each in found
}
DEFAULTS = {("package", "apt"), ("exec", "posix")}  # what cases of a type with several providers run when they name none


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "`make types-page` writes it anew"


def test_each_provider_is_named_with_its_tests_and_nothing_else_is() -> None:
    named = {(type_name, name) for type_name, found in EXERCISED.items() for name in found}
    assert named == set(DECLARED)
    for type_name, name in sorted(named):
        exercised = EXERCISED[type_name][name]
        assert set(exercised) <= {"real", "recorded", "why"}
        assert ("real" in exercised) != ("why" in exercised), f"{type_name} {name} has a real test, or says why it has none"
        assert "real" in exercised or exercised["recorded"]


def references() -> list[Any]:
    return [
        pytest.param((type_name, name), reference, id=f"{type_name}-{name}-{reference}")
        for type_name, found in EXERCISED.items()
        for name, exercised in found.items()
        for reference in (*exercised.get("real", ()), *exercised.get("recorded", ()))
    ]


@pytest.mark.parametrize(("key", "reference"), references())
def test_a_test_that_is_named_is_there_and_runs_that_provider(key: tuple[str, str], reference: str) -> None:
    path, _, name = reference.partition("#")
    if path.endswith(".yaml"):
        cases = [manifests for case, manifests in cases_of(path).items() if fnmatch.fnmatchcase(case, name)]
        assert any(runs(key, manifests) for manifests in cases)
        return
    function, _, parameter = name.removesuffix("]").partition("[")
    functions, used, texts = python_of(path)
    assert function in functions
    if parameter:
        assert parameter in texts
    else:
        provider = DECLARED[key]
        sole = len(EXERCISED[key[0]]) == 1
        by_class = {type(provider).__name__} | ({provider.serves.__name__} if sole else set())
        assert by_class & used or any(f"{key[0]} {{" in text for text in texts)


def runs(key: tuple[str, str], manifests: str) -> bool:
    """Whether manifests have a resource of the type, with that provider by name or as the default."""
    type_name, name = key
    several = len(EXERCISED[type_name]) > 1
    there = re.search(rf"\b{type_name} *{{", manifests)
    return bool(there) and (
        not several or bool(re.search(rf"provider *=> *{name}\b", manifests)) or (key in DEFAULTS and "provider" not in manifests)
    )


@cache
def cases_of(path: str) -> dict[str, str]:
    """The manifests of a file's cases, by their ids."""
    cases = yaml.safe_load((ROOT / path).read_text())
    return {case["id"]: "\n".join([case.get("manifest", ""), *case.get("manifests", ())]) for case in cases}


@cache
def python_of(path: str) -> tuple[set[str], set[str], set[str]]:
    """The names of a file's functions, the names that it uses (not those that it only imports), and its texts."""
    nodes = list(ast.walk(ast.parse((ROOT / path).read_text())))
    functions = {each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    used = {each.id for each in nodes if isinstance(each, ast.Name)}
    return functions, used, {each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)}


@pytest.mark.slow
def test_a_resource_of_a_type_that_is_not_supported_fails_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = "".join(f"{name} {{ 'x': }}\n" for name in KNOWN) + "notify { 'the rest': }\n"
    said = Puppet(tmp_path, capsys)("apply", "--detailed-exitcodes", "-e", manifest)
    assert said.code == 6
    for name in KNOWN:
        place = f"{name.capitalize()}[x]: Could not evaluate: The type '{name}' is not supported by this agent yet (line: "
        assert f"Error: /Stage[main]/Main/{place}" in said.err
    assert "Notice: the rest\n" in said.out


@pytest.mark.parametrize(("type_name", "name"), [(type_name, name) for type_name, names in MISSING.items() for name in names])
def test_a_provider_of_another_system_is_not_functional_here_and_those_that_are_here_are_named(type_name: str, name: str) -> None:
    here = [provider for (of, _), provider in DECLARED.items() if of == type_name]
    with pytest.raises(ResourceError, match=f"Provider {name} is not functional on this host") as caught:
        Providers({type_name: lambda: here}, Platform()).for_resource(builtin_types()[type_name]("/x", {"provider": name}))
    assert all(each.name in caught.value.hint for each in here)


def test_a_resource_with_such_a_provider_fails_and_the_rest_is_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Puppet(tmp_path, capsys)("apply", "--detailed-exitcodes", "-e", "notify { 'x': } package { 'y': provider => portage }")
    assert said.code == 6
    assert "Package[y]: Provider portage is not functional on this host" in said.err
    assert "Notice: x" in said.out
