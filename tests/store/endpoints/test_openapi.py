"""The description of the store's interface says what a store answers, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.endpoints.queries.paths import BELOW, ENTITIES, target_of
from tests.store.endpoints.conftest import FakeStore
from tests.support.examples import examples
from tests.support.raw_master import RawClient
from tests.support.store_openapi import document, query_paths, text

DOCUMENT = document()
PATHS: dict[str, dict[str, Any]] = DOCUMENT["paths"]
METHODS = ("get", "post", "put", "delete", "patch")
FILLED = {"{service}": "puppetdb-status", "{metric}": "puppetlabs.puppetdb.population:name=num-nodes", "{attribute}": "Value"}


def test_the_document_is_that_of_the_code() -> None:
    stored = Path(__file__).parents[3] / "docs" / "api" / "store.yaml"
    assert stored.read_text() == text(), "run make openapi"


def all_paths() -> Iterator[list[str]]:
    """All paths of up to two segments, and all that begin with a name and go on with up to three more; `x` is no name of anything."""
    words = [*ENTITIES, "logs", "metrics", "x"]
    yield from ([word] for word in words)
    yield from (list(pair) for pair in itertools.product(words, words))
    for first, third in itertools.product(words, words):
        yield from ([first, "x", third, *["x"] * more] for more in range(4))


def test_the_document_has_exactly_the_paths_of_queries_that_are_answered() -> None:
    documented = [path.split("/") for path in query_paths()]

    def is_documented(segments: list[str]) -> bool:
        return any(
            len(path) == len(segments) and all(part.startswith("{") or part == word for part, word in zip(path, segments, strict=True))
            for path in documented
        )

    assert [path for path in all_paths() if (target_of(path) is not None) != is_documented(path)] == []
    assert target_of([]) is not None and [""] in documented
    assert {f"/pdb/query/v4/{name}" for name in BELOW} <= PATHS.keys()


def target_for(path: str) -> str:
    return "/".join(FILLED.get(part, "x") if part.startswith("{") else part for part in path.split("/"))


def is_answered(answer: Any) -> bool:
    """Whether there is such an endpoint: what is not is led to the dashboard, or not found by a text that is no answer of a query."""
    return answer.status not in (302, 405) and not (answer.status == 404 and "No information is known" not in answer.text)


async def test_each_method_of_the_document_is_answered_and_no_other(client: RawClient) -> None:
    wrong = []
    for path, operations in PATHS.items():
        for method in METHODS:
            answer = await client.ask(method.upper(), target_for(path), b"{}" if method != "get" else b"", Accept="*/*")
            takes = is_answered(answer) and "must be made via GET/POST" not in answer.text
            if takes != (method in operations):
                wrong.append((method, path, answer.status, answer.text))
    assert wrong == []


async def test_each_parameter_of_the_document_is_taken_and_no_other(client: RawClient) -> None:
    names = sorted(DOCUMENT["components"]["parameters"])
    wrong = []
    for path, operations in PATHS.items():
        if not path.startswith("/pdb/query"):
            continue
        documented = {parameter["$ref"].rpartition("/")[2] for parameter in operations["parameters"] if "$ref" in parameter}
        for name in names:
            answer = await client.ask("GET", f"{target_for(path)}?{name}=true")
            if (f"Unsupported query parameter '{name}'" in answer.text) == (name in documented):
                wrong.append((path, name, answer.text))
    assert wrong == []


WORDS = st.one_of(
    st.sampled_from(
        ["x", "true", "-1", "0", "99999999999999999999", "certname", "%", "..", "a/b", '["=","certname","x"]', "nodes{}", "[", "\0"]
    ),
    st.text(max_size=20),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """Method, target, body and headers of a request that the document describes, more or less."""
    path = draw(st.sampled_from(sorted(PATHS)))
    method = draw(st.sampled_from([name for name in PATHS[path] if name != "parameters"]))
    parts = [quote(draw(WORDS), safe="") or "x" if part.startswith("{") else part for part in path.split("/")]
    names = [parameter["$ref"].rpartition("/")[2] for parameter in PATHS[path]["parameters"] if "$ref" in parameter]
    query = {name: draw(WORDS) for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True))} if names else {}
    target = "/".join(parts) + "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    body = draw(st.sampled_from([b"", b"{}", b"[]", b'{"query": ["="]}', b'{"limit": true}', b"\xff", b"{" * 2000, b"null"]))
    headers = {"Accept": draw(st.sampled_from(["*/*", "application/json", "x/y"])), "Content-Type": "application/json"}
    return method.upper(), target, body if method == "post" else b"", headers


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(request=requests())
async def test_requests_made_up_from_the_document_never_end_in_an_incident(
    client: RawClient, store: FakeStore, request: tuple[str, str, bytes, dict[str, str]]
) -> None:
    method, target, body, headers = request
    answer = await client.ask(method, target, body, **headers)
    assert answer.status < 500 and "Traceback" not in answer.text, (request, answer)
    assert store.queries.open_answers == 0
