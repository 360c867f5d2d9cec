"""The store's API under the master's own port."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from httpd.application import HttpApplication
from httpd.connections.connection import HttpRequest
from httpd.connections.plain import PlainListener
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.messages.bodies import packed_chunks
from httpd.messages.responses import Response, text_response
from httpd.options import ServerOptions
from master.endpoints.store import StoreProxy
from shared.client import NO_SUBQUERIES
from tests.support.raw_master import RunningMaster

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]
RULES = """
authorization: {
  version: 1
  rules: [
    { name: "own rows", match-request: { path: "^/pdb/query/v4/(?:nodes|factsets)/([^/]+)", type: regex },
      allow: ["$1", "admin"], sort-order: 1 }
    { name: "own commands", allow: "agent1", sort-order: 1,
      match-request: { path: "/pdb/cmd/v1", type: path, query-params: { certname: ["agent1"], command: ["replace_facts"] } } }
    { name: "commands of m2", allow: "m2", sort-order: 2,
      match-request: { path: "/pdb/cmd", type: path, query-params: { producer: ["m2"] } } }
    { name: "queries", match-request: { path: "/pdb/query", type: path }, allow: "admin", sort-order: 1 }
  ]
}
"""


class FakeStore(HttpApplication):
    """Tells what it is asked, as it was sent."""

    async def handle(self, request: HttpRequest) -> Response:
        body = b"".join([chunk async for chunk in packed_chunks(request, 10_000)])
        if request.sent_path.endswith("/long"):
            return Response(200, b"", "application/json", {"X-Records": "7"}, chunks=_pieces, compress_chunks=True)
        if request.sent_path.endswith("/moved"):
            return Response(302, headers={"Location": "/elsewhere"})
        names = ["Accept", "Content-Type", "Content-Encoding", "X-Client-Verify", "Cookie", NO_SUBQUERIES]
        sent = " ".join(f"{name}={request.headers[name]}" for name in names if name in request.headers)
        return text_response(200, f"{request.method} {request.raw_path} {sent} {body!r}")


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(100):
        yield b"x" * 10_000


@asynccontextmanager
async def store_at(path: Path) -> AsyncIterator[StoreProxy]:
    listener = PlainListener(Dispatcher(FakeStore(), None, ServerOptions()).handle, ServerLimits(), 8)
    await listener.start(path)
    try:
        async with StoreProxy(path, 5000, 4000, 5) as proxy:
            yield proxy
    finally:
        await listener.stop(0)


@pytest.fixture
async def master(serve: Serve, tmp_path: Path) -> AsyncIterator[RunningMaster]:
    """A master with a store, which `admin` may query."""
    rules = tmp_path / "auth.conf"
    rules.write_text(RULES)
    async with store_at(tmp_path / "s") as proxy, serve(parts=[proxy], auth_conf=rules) as master:
        yield master


async def test_PDB_07_a_request_is_passed_on_as_it_was_sent_without_what_claims_an_identity(master: RunningMaster) -> None:
    admin = await master.client("admin")
    answer = await admin.ask("GET", "/pdb/query/v4/resources/File/%2Fa%20b?query=%5B%22x%22%5D", X_Client_Verify="SUCCESS", Cookie="a=b")
    assert answer.text == "GET /pdb/query/v4/resources/File/%2Fa%20b?query=%5B%22x%22%5D Accept=*/* b''"
    posted = await admin.ask("POST", "/pdb/query/v4", b"packed", Content_Type="application/json", Content_Encoding="gzip")
    assert posted.text == "POST /pdb/query/v4 Accept=*/* Content-Type=application/json Content-Encoding=gzip b'packed'"
    assert (await admin.ask("POST", "/pdb/query/v4", b"x" * 6000)).status == 413


async def test_an_answer_is_passed_on_as_it_was_sent(master: RunningMaster) -> None:
    admin = await master.client("admin")
    plain = await admin.ask("GET", "/pdb/query/long")
    assert plain.body == b"x" * 1_000_000 and plain.headers["x-records"] == "7"
    packed = await admin.ask("GET", "/pdb/query/long", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < 10_000
    moved = await admin.ask("GET", "/pdb/query/moved")
    assert (moved.status, moved.headers["location"]) == (302, "/elsewhere")


async def test_PDB_07_only_whom_a_rule_names_reaches_the_store(master: RunningMaster) -> None:
    agent, admin, stranger = await master.client("agent1"), await master.client("admin"), await master.client()
    for client in (agent, stranger):
        assert (await client.ask("GET", "/pdb/query/v4/nodes")).status == 403
    assert (await admin.ask("POST", "/pdb/cmd/v1", b"{}")).status == 403
    for path in ("/pdb/query/../cmd/v1", "/pdb/query/%2e%2e/cmd/v1", "/pdb/query/%zz", "/pdb/query/a%0ab"):
        assert (await admin.ask("GET", path)).status == 400


async def test_a_store_that_is_away_is_said(serve: Serve, tmp_path: Path) -> None:
    rules = tmp_path / "auth.conf"
    rules.write_text(RULES)
    async with StoreProxy(tmp_path / "s", 5000, 4000, 5) as proxy, serve(parts=[proxy], auth_conf=rules) as master:
        admin = await master.client("admin")
        answer = await admin.ask("GET", "/pdb/query/v4/nodes")
        assert answer.status == 503 and answer.headers["retry-after"] == "5"


async def test_without_a_store_there_is_no_such_path(serve: Serve) -> None:
    async with serve() as master:
        agent = await master.client("agent1")
        assert (await agent.ask("GET", "/pdb/query/v4/nodes")).status in (403, 404)


async def test_PDB_13_who_may_not_ask_for_everything_asks_without_subqueries(master: RunningMaster) -> None:
    agent, admin = await master.client("agent1"), await master.client("admin")
    for path in ("/pdb/query/v4/nodes/agent1/facts", "/pdb/query/v4/factsets/agent1?query=%5B%22x%22%5D", "/pdb/query/v4/nodes/%61gent1"):
        assert f" {NO_SUBQUERIES}=true " in (await agent.ask("GET", path, X_No_Subqueries="")).text
        assert f" {NO_SUBQUERIES}=true " in (await agent.ask("POST", path, b"{}")).text
        assert NO_SUBQUERIES not in (await admin.ask("GET", path)).text
    assert (await agent.ask("GET", "/pdb/query/v4/nodes/agent2/facts")).status == 403


FACTS = "/pdb/cmd/v1?command=replace_facts&version=5&certname=agent1"
OWN = b'{"certname": "agent1", "values": {}}'
OTHER = b'{"certname": "agent2", "values": {}}'
OLD = b'{"command": "replace facts", "version": 5, "payload": {"certname": "agent1"}}'


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        (FACTS, OWN, 200),
        (FACTS, OTHER, 403),
        (FACTS.replace("agent1", "agent2"), OWN, 403),
        (f"{FACTS}&certname=agent1", OWN, 400),
        (f"{FACTS}&certname=agent2", OWN, 400),
        (f"{FACTS}&command=deactivate_node", OWN, 400),
        (f"{FACTS}&command=replace_facts", OWN, 400),
        (FACTS.replace("replace_facts", "deactivate_node"), OWN, 403),
        (FACTS.replace("replace_facts", "replace%20facts"), OWN, 403),
        (FACTS, b'{"certname": "agent2", "certname": "agent1"}', 400),
        (FACTS, b'{"certname": "agent1", "certname": "agent2"}', 400),
        (FACTS, b'{"certname": ["agent1"]}', 400),
        (FACTS, b'{"certname": "agent1\\u0000"}', 403),
        (FACTS, b"{}", 400),
        (FACTS, b"", 400),
        (FACTS, b"[]", 400),
        (FACTS, b"{" * 5000, 413),
        ("/pdb/cmd/v1?certname=agent1&version=5", OLD, 403),
        ("/pdb/cmd/v1/batch?certname=agent1&command=replace_facts", OWN, 404),
        ("/pdb/%63md/v1/batch?certname=agent1&command=replace_facts", OWN, 404),
        ("/pdb/%63md/v1?command=replace_facts&certname=agent1", OTHER, 403),
    ],
)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_PDB_14_a_rule_about_a_certname_is_about_that_of_the_payload(
    master: RunningMaster, target: str, body: bytes, status: int, coding: str
) -> None:
    agent = await master.client("agent1")
    sent = gzip.compress(body * (20 if status == 413 else 1)) if coding == "gzip" else body
    answer = await agent.ask("POST", target, sent, Content_Type="application/json", Content_Encoding=coding)
    assert answer.status == status
    if status == 200:
        assert answer.text == f"POST {target} Accept=*/* Content-Type=application/json {body!r}"


async def test_PDB_14_a_rule_may_be_about_the_producer_of_the_payload(master: RunningMaster) -> None:
    client = await master.client("m2")
    target = "/pdb/cmd/v1?command=replace_facts&version=5&certname=n&producer=m2"
    assert (await client.ask("POST", target, b'{"certname": "n", "producer": "m2"}')).status == 200
    assert (await client.ask("POST", target, b'{"certname": "n", "producer": "m1"}')).status == 403
    assert (await client.ask("POST", target, b'{"certname": "n"}')).status == 403
    old = b'{"command": "replace facts", "version": 5, "payload": {"certname": "n", "producer": "%b"}}'
    assert (await client.ask("POST", "/pdb/cmd/v1?producer=m2", old % b"m2")).status == 200
    assert (await client.ask("POST", "/pdb/cmd/v1?producer=m2", old % b"m1")).status == 403
