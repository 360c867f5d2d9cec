"""
The names of our libraries that are not public and that we use nevertheless, all in one place.

Each is a reason for the upper bound of the library in pyproject.toml: before the bound is raised, this file and the tests of
`httpd` run with the new version.
"""

from __future__ import annotations

import ast
import inspect
import tomllib
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from cryptography import x509
from cryptography.x509 import name as x509_name
from packaging.requirements import Requirement

from httpd.connections.connection import Connection, ConnectionServer, HttpRequest

ROOT = Path(__file__).parents[2]

PRIVATE_NAMES: dict[type, tuple[type, set[str]]] = {
    Connection: (
        RequestHandler,
        {"_drain_helper", "_loop", "_messages", "_request_count", "_task_handler", "_waiter"},
    ),
    ConnectionServer: (web.Server, {"_loop"}),
    HttpRequest: (web.BaseRequest, {"_loop", "_prepare_hook", "_protocol"}),
}
OWN_NAMES = {"_answered", "_deadline", "_deadline_part", "_incoming", "_request", "_start_deadline", "_stop_deadline", "_too_slow"}


def private_names(source: str) -> set[str]:
    """Every `something._name` and every method `_name` of the source, without those with two underscores."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def names_in(library: type) -> set[str]:
    """What the class and those above it define: as a method, in slots, or by an assignment to self."""
    names: set[str] = set()
    for above in library.__mro__[:-1]:
        names |= set(vars(above)) | set(getattr(above, "__slots__", ()))
        if above.__module__.startswith("aiohttp"):
            names |= private_names(inspect.getsource(above))
    return names


@pytest.mark.parametrize("ours", PRIVATE_NAMES, ids=lambda ours: ours.__name__)
def test_aiohttp_has_the_private_names_that_we_use(ours: type) -> None:
    library, names = PRIVATE_NAMES[ours]
    assert issubclass(ours, library)
    assert names <= names_in(library)


def test_no_other_private_name_of_aiohttp_is_used() -> None:
    source = (ROOT / "httpd/connections/connection.py").read_text("utf-8")
    listed = set[str]().union(*(names for _, names in PRIVATE_NAMES.values()))
    assert private_names(source) - OWN_NAMES - {"_replace"} == listed  # _replace is a named tuple's, and public


@pytest.mark.parametrize(
    "path",
    [
        *sorted((ROOT / "httpd").rglob("*.py")),
        *sorted((ROOT / "master/endpoints").glob("*.py")),
        ROOT / "agent/servers/http.py",
        ROOT / "agent/servers/websources.py",
    ],
    ids=str,
)
def test_outside_connection_nothing_private_is_asked_of_another_object(path: Path) -> None:
    if path.name == "connection.py":
        return
    foreign = [
        f"{ast.unparse(node)}, line {node.lineno}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr != "_replace"  # a named tuple's, and public
        and not (isinstance(node.value, ast.Name) and (node.value.id in ("self", "cls") or node.value.id[0].isupper()))
    ]
    assert foreign == []


def test_cryptography_has_the_private_names_that_we_use() -> None:
    assert {"UTF8String", "PrintableString"} <= set(x509_name._ASN1Type.__members__)
    assert "_tag" in inspect.signature(x509.CertificateSigningRequestBuilder.add_attribute).parameters


@pytest.mark.parametrize("library", ["aiohttp", "cryptography"])
def test_a_library_whose_private_names_we_use_has_an_upper_bound(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirement = next(each for text in project["dependencies"] if (each := Requirement(text)).name == library)
    assert any(bound.operator == "<" for bound in requirement.specifier)
