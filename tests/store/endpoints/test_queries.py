"""Queries over HTTP: what is asked of the service, and how its rows and refusals are written."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from shared.client import NO_SUBQUERIES
from shared.errors import BadRequest
from store.endpoints.queries.querytext import read_query
from store.jsontext import Json
from store.queries.questions import Paging, QueryRefused, Question
from tests.store.endpoints.conftest import FakeStore
from tests.support.raw_master import RawClient

V4 = "/pdb/query/v4"
NODES: list[Json] = [{"certname": "a", "n": 2**70}, {"certname": "ů"}, {"certname": "c"}]


def target(path: str, **parameters: object) -> str:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    return f"{V4}{path}?" + "&".join(f"{name}={quote(value)}" for name, value in texts.items())


async def test_rows_are_an_array_in_json_with_all_digits(store: FakeStore, client: RawClient) -> None:
    store.queries.rows["nodes"] = NODES
    answer = await client.ask("GET", f"{V4}/nodes")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json;charset=utf-8")
    assert answer.body == '[{"certname":"a","n":1180591620717411303424},{"certname":"ů"},{"certname":"c"}]'.encode()
    assert "x-records" not in answer.headers
    pretty = await client.ask("GET", f"{V4}/nodes?pretty=true&limit=2")
    assert pretty.text.startswith('[ {\n  "certname" : "a",\n  "n" : 1180591620717411303424\n}, {')
    store.queries.rows["nodes"] = []
    assert (await client.ask("GET", f"{V4}/nodes")).body == b"[]"
    assert (await client.ask("GET", f"{V4}/nodes?pretty=true")).body == b"[ ]"
    assert store.queries.all_closed.is_set()


async def test_the_total_is_a_header(store: FakeStore, client: RawClient) -> None:
    store.queries.total = 12
    assert (await client.ask("GET", target("/nodes", include_total="true"))).headers["x-records"] == "12"
    assert store.queries.questions[-1].paging == Paging(include_total=True)


async def test_long_answers_are_streamed_and_compressed(store: FakeStore, client: RawClient) -> None:
    store.queries.rows["facts"] = [{"value": "x" * 1000, "number": number} for number in range(300)]
    plain = await client.ask("GET", f"{V4}/facts")
    assert plain.headers["transfer-encoding"] == "chunked" and json.loads(plain.body) == store.queries.rows["facts"]
    packed = await client.ask("GET", f"{V4}/facts", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < 20_000
    assert gzip.decompress(packed.body) == plain.body


async def test_a_question_that_says_something_twice_is_refused(store: FakeStore, client: RawClient) -> None:
    answer = await client.ask("POST", f"{V4}/nodes", b'{"query": ["=", "certname", "a"], "query": ["=", "certname", "b"]}')
    assert (answer.status, answer.text) == (400, "Malformed JSON for query: The key 'query' appears twice in one object")
    assert store.queries.questions == []


async def test_PDB_13_an_answer_that_breaks_off_is_cut_and_the_log_says_why(
    store: FakeStore, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    store.queries.rows["facts"] = [{"value": "x" * 10_000} for _ in range(100)]
    store.queries.late_refusal = QueryRefused("A regular expression of the query takes too long")
    with pytest.raises((EOFError, OSError)):
        await client.ask("GET", f"{V4}/facts")
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert lines == ["Broke off the answer to the socket: A regular expression of the query takes too long"]


async def test_a_client_that_leaves_frees_the_connection_of_its_query(store: FakeStore, tmp_path: Path) -> None:
    store.queries.rows["facts"] = [{"value": "x" * 10_000} for _ in range(5000)]
    async with store.serving(tmp_path) as client:
        await client.send(f"GET {V4}/facts HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await client.reader.readexactly(100)
        assert not store.queries.all_closed.is_set()
        await client.close()
        await asyncio.wait_for(store.queries.all_closed.wait(), 5)


QUERY: Json = ["=", "certname", "a"]
ORDER = [{"field": "certname", "order": "DESC"}, {"field": "x"}]
PAGING = Paging(limit=2, offset=1, order_by=(("certname", True), ("x", False)), include_total=True)
QUESTIONS = [
    ("GET", target("/nodes"), None, Question("nodes")),
    ("GET", target("/nodes", query=""), None, Question("nodes")),
    ("GET", target("/nodes", query="null"), None, Question("nodes")),
    ("GET", target("/nodes", query=QUERY, limit=2, offset=1, order_by=ORDER, include_total=True), None, Question("nodes", QUERY, PAGING)),
    (
        "POST",
        f"{V4}/nodes",
        {"query": QUERY, "limit": 2, "offset": 1, "order_by": ORDER, "include_total": True},
        Question("nodes", QUERY, PAGING),
    ),
    ("POST", f"{V4}/nodes", {"query": json.dumps(QUERY)}, Question("nodes", QUERY)),
    ("GET", target("", query="nodes{ }"), None, Question(None, "nodes{ }")),
    ("GET", target("", query=' ["from","nodes"]'), None, Question(None, ["from", "nodes"])),
    ("POST", V4, {"query": ["from", "nodes"]}, Question(None, ["from", "nodes"])),
    ("POST", V4, {"query": "nodes{ }", "limit": 3}, Question(None, "nodes{ }", Paging(limit=3))),
    (
        "GET",
        target("/event-counts", summarize_by="certname", counts_filter=[">", "failures", 0]),
        None,
        Question("event_counts", None, Paging(), {"summarize_by": "certname", "counts_filter": '[">", "failures", 0]'}),
    ),
    ("GET", target("/resources/File/%2Fsrv%2Fa"), None, Question("resources", ["and", ["=", "type", "File"], ["=", "title", "/srv/a"]])),
]


@pytest.mark.parametrize(("method", "path", "body", "question"), QUESTIONS, ids=lambda value: str(value)[:60])
async def test_a_request_becomes_a_question(
    store: FakeStore, client: RawClient, method: str, path: str, body: Json, question: Question
) -> None:
    assert (await client.ask(method, path, json.dumps(body).encode() if body else b"")).status == 200
    assert store.queries.questions == [question]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_PDB_13_a_master_may_have_subqueries_refused(store: FakeStore, client: RawClient, method: str) -> None:
    body = b'{"query": ["=", "certname", "a"]}' if method == "POST" else b""
    await client.ask(method, "/pdb/query/v4/facts", body)
    await client.ask(method, "/pdb/query/v4/facts", body, **{NO_SUBQUERIES: "true"})
    assert [question.subqueries for question in store.queries.questions] == [True, False]


async def test_one_thing_is_an_object_or_not_known(store: FakeStore, client: RawClient) -> None:
    missing = await client.ask("GET", f"{V4}/nodes/a")
    assert (missing.status, missing.text) == (404, '{\n  "error" : "No information is known about node a"\n}')
    assert (await client.ask("GET", f"{V4}/nodes/a/facts")).status == 404
    store.queries.rows["nodes"] = [{"certname": "a"}]
    assert (await client.ask("GET", f"{V4}/nodes/a")).text == '{\n  "certname" : "a"\n}'
    assert (await client.ask("GET", f"{V4}/nodes/a/facts")).text == "[]"
    store.queries.rows["reports"] = [{"hash": "h", "logs": {"data": [{"level": "info"}], "href": "x"}, "metrics": {"data": None}}]
    assert (await client.ask("GET", f"{V4}/reports/h/logs")).text == '[{"level":"info"}]'
    assert (await client.ask("GET", f"{V4}/reports/h/metrics")).text == "[]"


async def test_the_tree_of_a_query_is_shown_without_asking(store: FakeStore, client: RawClient) -> None:
    answer = await client.ask("GET", target("", query="nodes[certname]{}", ast_only="true"))
    assert answer.text == '[ "from", "nodes", [ "extract", [ "certname" ] ] ]'


async def test_the_plan_of_a_query_is_shown_in_place_of_its_answer(store: FakeStore, client: RawClient) -> None:
    assert (await client.ask("GET", target("/nodes", explain="analyze"))).text == '[{"query plan":[]}]'
    assert (await client.ask("GET", target("/nodes", explain="analyze", pretty="true"))).text == '[ {\n  "query plan" : [ ]\n} ]'
    assert (await client.ask("POST", V4, b'{"query": "nodes{}", "explain": "analyze"}')).text == '[{"query plan":[]}]'
    assert (await client.ask("GET", target("/nodes/a", explain="analyze"))).text == '{\n  "query plan" : [ ]\n}'
    assert (await client.ask("GET", target("/nodes/a/facts", explain="analyze"))).status == 404
    assert (await client.ask("GET", target("/event-counts", explain="analyze", summarize_by="certname"))).text == "[]"


REFUSALS = [
    ("GET", target("/nodes", foo="bar"), 400, "Unsupported query parameter 'foo'"),
    ("GET", target("/environments/e", limit="1"), 400, "Unsupported query parameter 'limit'"),
    ("GET", target("/aggregate-event-counts", limit="1"), 400, "Unsupported query parameter 'limit'"),
    ("GET", target("/nodes", limit="0"), 400, "Illegal value '0' for :limit; expected a positive non-zero integer."),
    ("GET", target("/nodes", offset="x"), 400, "Illegal value 'x' for :offset; expected a non-negative integer."),
    ("GET", target("/nodes", order_by="x"), 400, "Illegal value 'x' for :order_by; expected a JSON array of maps."),
    ("GET", target("/nodes", order_by='"x"'), 400, "Illegal value 'x' for :order_by; expected an array of maps."),
    ("GET", target("/nodes", order_by=["x"]), 400, "Illegal value '[\"x\"]' for :order_by; expected an array of maps."),
    ("GET", target("/nodes", explain="nope"), 400, "Illegal value 'nope' for :explain; expected `analyze`."),
    ("GET", V4, 400, "Missing required query parameter 'query'"),
    ("PUT", f"{V4}/nodes", 400, "PuppetDB queries must be made via GET/POST"),
    ("GET", "/pdb/query/v3/nodes", 404, "The v3 API has been retired; please use v4"),
]


@pytest.mark.parametrize(("method", "path", "status", "text"), REFUSALS, ids=[text for *_, text in REFUSALS])
async def test_what_cannot_be_asked_is_refused_in_puppetdbs_words(
    store: FakeStore, client: RawClient, method: str, path: str, status: int, text: str
) -> None:
    answer = await client.ask(method, path)
    assert (answer.status, answer.text, answer.headers["content-type"]) == (status, text, "text/plain;charset=utf-8")
    assert store.queries.questions == []


async def test_a_refusal_of_the_service_is_passed_on(store: FakeStore, client: RawClient) -> None:
    store.queries.refusal = QueryRefused("PQL parse error at line 1, column 2:\n\nx\n ^")
    answer = await client.ask("GET", target("", query="x"))
    assert (answer.status, answer.text) == (400, "PQL parse error at line 1, column 2:\n\nx\n ^")


async def test_clients_must_take_and_send_json(client: RawClient) -> None:
    refused = await client.ask("GET", f"{V4}/nodes", Accept="text/html")
    assert (refused.status, refused.text) == (406, "must accept application/json")
    form = await client.ask("POST", f"{V4}/nodes", b"query=x", Content_Type="application/x-www-form-urlencoded")
    assert (form.status, form.text) == (415, "content type application/x-www-form-urlencoded not supported")
    for body in (b"{", b"[]", b"\xff"):
        assert (await client.ask("POST", f"{V4}/nodes", body)).status == 400
    assert (await client.ask("POST", f"{V4}/nodes", b"x" * 20_000)).status == 413


MARKED = [
    (
        '["=", "certname"',
        'line 1, column 17:\n\n["=", "certname"\n               ^\n\nUnexpected end-of-input: expected close marker for Array',
    ),
    ("nodes{}", "line 1, column 6:\n\nnodes{}\n    ^\n\nUnrecognized token 'nodes'"),
    ('["=",\n nope]', "line 2, column 6:\n\n nope]\n    ^\n\nUnrecognized token 'nope'"),
    ('["=" "a"]', "line 1, column 6"),
    ("[NaN]", "NaN is not JSON"),
]


@pytest.mark.parametrize(("text", "complaint"), MARKED, ids=[text for text, _ in MARKED])
def test_a_text_that_is_no_json_is_shown_with_a_mark(text: str, complaint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_query(text)
    assert complaint in str(caught.value) and str(caught.value).startswith("Json parse error")


def test_two_queries_and_deep_ones_are_refused() -> None:
    with pytest.raises(BadRequest, match=r'Found JSON \(\["x"\]\) after the query \["=" "certname" "a"\]'):
        read_query('["=","certname","a"] ["x"]')
    with pytest.raises(BadRequest, match="nested too deeply"):
        read_query("[" * 100_000)
