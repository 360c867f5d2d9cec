"""How a master gets the sealed parameters of what it collects, and that nobody else does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from httpd.connections.plain import PlainListener
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tasks import HTTP_TASKS
from master.puppetdb.own_store import SEALED_PATH, OwnStoreClient
from master.puppetdb.queries import PuppetDbQueries
from master.puppetdb.sessions import UnixSessions
from shared.errors import PuppetError
from shared.process.supervision import Supervisor
from store.endpoints.application import AccessRules
from tests.store.endpoints.conftest import FakeStore
from tests.support.raw_master import CaFolder, RawClient, running

SECRET, CALL = "#<Sensitive [value redacted]>", "Deferred({'name' => 'f'})"


def row(digest: str, value: Any) -> dict[str, Any]:
    return {"resource": digest, "type": "A", "title": digest, "tags": [], "parameters": {"pw": value}}


async def ask(folder: Path) -> list[dict[str, Any]]:
    client = OwnStoreClient(UnixSessions(folder / "s", keep_alive=False, connections=4), producer="m", max_answer=10_000, waiting=3)
    try:
        answer: list[dict[str, Any]] = json.loads(await PuppetDbQueries(client)({"of": "resources", "query": ["=", "type", "A"]}))
        return answer
    finally:
        await client.close()


async def test_a_master_gets_resources_with_what_is_sealed_of_them(store: FakeStore, client: RawClient, tmp_path: Path) -> None:
    rows = [row("1", SECRET), row("2", "plain"), row("3", [{"a": CALL}]), row("4", SECRET)]
    store.queries.rows["resources"] = list(rows)
    store.sealed = {"1": {"pw": "key:one"}, "2": {"pw": "of no use"}, "3": {"pw": "key:three"}}
    expected = [{"pw": "key:one"}, {}, {"pw": "key:three"}, {}]
    assert await ask(tmp_path) == [each | {"sealed": sealed} for each, sealed in zip(rows, expected, strict=True)]
    store.queries.rows["resources"] = [row("2", "plain")]
    assert await ask(tmp_path) == [row("2", "plain")]


@pytest.mark.parametrize(
    ("method", "body", "status"), [("GET", b"", 405), ("POST", b"{", 400), ("POST", b"{}", 400), ("POST", b"[" * 20_000, 413)]
)
async def test_a_question_that_is_none_is_refused(client: RawClient, method: str, body: bytes, status: int) -> None:
    assert (await client.ask(method, SEALED_PATH, body)).status == status


async def test_a_store_that_cannot_answer_fails_who_collects(store: FakeStore, client: RawClient, tmp_path: Path) -> None:
    store.queries.rows["resources"] = [row("1", SECRET)]

    async def away(hashes: Any) -> Any:
        raise PuppetError("no database")

    store.find = away  # type: ignore[method-assign]
    with pytest.raises(PuppetError, match="Could not retrieve resources from the PuppetDB at"):
        await ask(tmp_path)


async def test_PDB_12_only_the_unix_socket_has_what_is_sealed(tmp_path: Path, store: FakeStore) -> None:
    store.sealed = {"1": {"pw": "key:one"}}
    ca = CaFolder(tmp_path / "ca")
    ca.issue("puppet")
    listener = PlainListener(Dispatcher(store.application(), None, ServerOptions()).handle, ServerLimits(), 8, ["puppet"])
    place = await listener.start(("127.0.0.1", 0))
    plain = RawClient(*await asyncio.open_connection("127.0.0.1", int(place.split()[-1])))
    application = store.application(AccessRules("puppet", frozenset({"puppet"})))
    async with running(HttpServer(application, ServerOptions(ca.trust("puppet")), Supervisor(HTTP_TASKS)), ca) as server:
        for asking in (plain, await server.client("puppet")):
            for path in (SEALED_PATH, f"/pdb{SEALED_PATH}", f"/pdb/query/v4/..{SEALED_PATH}"):
                answer = await asking.ask("POST", path, b'["1"]', Content_Type="application/json")
                assert answer.status in (302, 400, 404) and "key:one" not in answer.text
    await plain.close()
    await listener.stop(0)
