"""Whatever is asked, in either language, is answered or refused: never an error of the program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from httpd.connections.plain import PlainListener
from httpd.dispatch.admission import Admission
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.options import ServerOptions
from store.database.engine import Database
from store.endpoints.application import AccessRules, StoreApplication
from store.endpoints.queries.endpoint import QueryEndpoint
from store.queries.questions import QueryLimits
from store.queries.schema.entities import ENTITIES
from store.queries.service import QueryService
from tests.store.endpoints.conftest import FakeStore
from tests.support.examples import examples
from tests.support.generated_queries import questions
from tests.support.raw_master import RawAnswer, RawClient


class Asker:
    """A store's query API at a Unix socket, over a database, asked from outside an event loop."""

    def __init__(self, url: str, path: Path) -> None:
        self._runner = asyncio.Runner()
        self._database = Database.open(url)
        queries = QueryService(self._database, QueryLimits(timeout=5))
        fake = FakeStore()
        application = StoreApplication(Admission(4, 4, 8, 60, lambda most: most), AccessRules("m"), lambda: 0)
        application.state = "running"
        endpoints = fake.application().endpoints
        assert endpoints is not None
        application.endpoints = replace(endpoints, queries=QueryEndpoint(queries, 1 << 24))
        self._path = self._runner.run(self._start(application, path))

    async def _start(self, application: StoreApplication, path: Path) -> str:
        self._listener = PlainListener(Dispatcher(application, None, ServerOptions()).handle, ServerLimits(), 8)
        return await self._listener.start(path)

    def post(self, path: str, body: bytes) -> RawAnswer:
        return self._runner.run(self._post(path, body))

    async def _post(self, path: str, body: bytes) -> RawAnswer:
        client = RawClient(*await asyncio.open_unix_connection(self._path), timeout=60)
        try:
            return await client.ask("POST", f"/pdb/query/v4{path}", body, Content_Type="application/json")
        finally:
            await client.close()

    def close(self) -> None:
        self._runner.run(self._listener.stop(0))
        self._runner.run(self._database.close())
        self._runner.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def asker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    asker = Asker(request.getfixturevalue(f"recorded_{request.param}_url"), tmp_path_factory.mktemp("s") / "s")
    yield asker
    asker.close()


HALF = "\ud83d"
NUMBERS = (
    "0",
    "-0.0",
    "1e308",
    "-1e308",
    "1e400",
    "-1e400",
    "1e-400",
    "5e-324",
    "1" + "0" * 400,
    "-1" + "0" * 400,
    "9" * 5000,
    "1" * 4300,
    "0.1" + "0" * 5000,
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "NaN",
    "-Infinity",
    "1E+0000400",
    "123456789012345678901234567890.5",
)
TEXTS = (
    HALF,
    f"a{HALF}b",
    "\x00",
    "\x7f",
    "\u2028",
    "",
    "((((",
    "[",
    "a" * 200,
    "(" * 400,
    "'",
    '"',
    "\\",
    "٣",
    "2026-01-01T00:00:00Z",
    "9" * 400,
)
NAMES = (
    "certname",
    "value",
    "name",
    "path",
    "facts.os",
    f"facts.{HALF}",
    'facts.match("[")',
    "facts.a[99999999999]",
    "type",
    "tag",
    "timestamp",
    "report_timestamp",
    "parameters.x",
    "latest_report?",
    "node_state",
    "line",
    "deactivated",
)
WORDS = (
    "=",
    "~",
    "~>",
    "<",
    ">=",
    "and",
    "or",
    "not",
    "in",
    "array",
    "from",
    "extract",
    "select_facts",
    "subquery",
    "null?",
    "function",
    "count",
    "group_by",
    "order_by",
    "limit",
    "offset",
    "to_string",
    "fact",
    "parameter",
    "avg",
    "include_total",
    "!=",
    "select_nodes",
)


def written(value: Any) -> str:
    """Return a value as JSON, with half surrogate pairs as escapes and raw numbers as they are."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, list | tuple):
        return f"[{','.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{written(member)}" for name, member in value.items()) + "}"
    return json.dumps(value)


class Raw:
    """A number as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text[:50]


SCALARS = st.one_of(
    st.sampled_from([Raw(number) for number in NUMBERS]),
    st.sampled_from(TEXTS),
    st.sampled_from(NAMES),
    st.sampled_from([None, True, False]),
    st.sampled_from(sorted(ENTITIES)),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(TEXTS), inner, max_size=2))
)
COMPARED = st.tuples(st.sampled_from(["=", "~", "~>", "<", ">=", "in", "null?"]), st.one_of(st.sampled_from(NAMES), VALUES), VALUES).map(
    list
)
TREES = st.recursive(
    st.one_of(COMPARED, VALUES),
    lambda inner: st.lists(st.one_of(st.sampled_from(WORDS), inner, SCALARS), max_size=5),
    max_leaves=8,
)
PIECES = st.one_of(
    st.sampled_from([Raw(number) for number in NUMBERS]).map(lambda each: each.text),
    st.sampled_from(TEXTS).map(lambda each: f'"{each}"'),
    st.sampled_from(TEXTS),
    st.sampled_from(NAMES),
    st.sampled_from(sorted(ENTITIES)),
    st.sampled_from(
        [
            *"{}[]()!,.",
            "=",
            "~",
            "~>",
            "<",
            ">=",
            " and ",
            " or ",
            " in ",
            "is null",
            "limit",
            "offset",
            "order by",
            "group by",
            "count()",
            "nodes { certname =",
            "facts { value >",
            "facts[value] { name ~",
            "fact_contents { path ~> [",
            " }",
            "] }",
        ]
    ),
)
EASY = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def is_answered(answer: RawAnswer) -> bool:
    return answer.status < 500 and "Incident" not in answer.text


@pytest.mark.slow
@settings(max_examples=examples(100), **EASY)
@given(entity=st.sampled_from(["", *sorted(ENTITIES)]), tree=TREES)
@example("facts", [">", "value", HALF])
@example("nodes", ["~", "certname", "(" * 3000])
@example("nodes", ["~", "certname", "(" * 400 + ")" * 400])
@example("facts", [">", "value", Raw("9" * 5000)])
@example("facts", ["=", "value", {HALF: HALF}])
@example("facts", [["=", HALF, 1], {HALF: []}])
@example("facts", ["in", "value", ["array", [Raw("1e400"), Raw("1" + "0" * 400), HALF]]])
def test_PDB_14_no_tree_is_an_error_of_the_program(asker: Asker, entity: str, tree: Any) -> None:
    path = f"/{entity.replace('_', '-')}" if entity else ""
    assert is_answered(asker.post(path, written({"query": tree}).encode()))
    assert is_answered(asker.post(path, written({"query": written(tree)}).encode()))


@pytest.mark.slow
@settings(max_examples=examples(100), **EASY)
@given(text=st.lists(PIECES, max_size=12).map("".join))
@example(f"nodes {{ certname = '{HALF}' }}")
@example(f"nodes {{ certname {HALF}")
@example(f"facts {{ value > {'9' * 5000} }}")
@example(f"facts {{ value > {'(' * 5000} }}")
@example(f"nodes {{ {'(' * 5000}certname = 'a'{')' * 5000} }}")
def test_PDB_14_no_text_is_an_error_of_the_program(asker: Asker, text: str) -> None:
    assert is_answered(asker.post("", written({"query": text}).encode()))


@pytest.mark.slow
@settings(max_examples=examples(100), **EASY)
@given(
    question=questions(),
    paging=st.dictionaries(
        st.sampled_from(
            [
                "limit",
                "offset",
                "order_by",
                "include_total",
                "pretty",
                "ast_only",
                "explain",
                "distinct_resources",
                "summarize_by",
                "counts_filter",
                HALF,
            ]
        ),
        VALUES,
        max_size=3,
    ),
)
@example(("facts", None), {"order_by": [{"field": HALF}]})
@example(("facts", None), {"limit": Raw("9" * 5000)})
@example(("facts", None), {HALF: 1})
def test_PDB_14_no_parameter_is_an_error_of_the_program(asker: Asker, question: tuple[str, Any], paging: dict[str, Any]) -> None:
    entity, query = question
    assert is_answered(asker.post(f"/{entity.replace('_', '-')}", written({"query": query, **paging}).encode()))
