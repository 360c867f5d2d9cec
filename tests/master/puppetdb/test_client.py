"""Which servers of a PuppetDB get a query or a command, and what becomes of their answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from master.puppetdb.client import SubmissionFailed
from master.puppetdb.commands import PuppetDbCommand
from master.puppetdb.queries import PuppetDbQueries
from master.puppetdb.termini import PuppetDbCatalogs, PuppetDbFacts, PuppetDbNodes, StorableCatalog
from shared.client import Client
from shared.errors import BadRequest, NotFound, PuppetError, TooLarge
from shared.indirector import Binding, Request
from shared.models.catalog import CATALOG
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE
from shared.wire.packed_catalogs import PackedCatalog
from tests.support.fake_puppetdb import ROWS, TAKEN, UUID, FakePuppetDb, body_of
from tests.support.fake_server import Ask, Reply

pytestmark = pytest.mark.works_with("PuppetDB behind this master", "fail-over")

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "puppetdb" / "terminus.json").read_text())
WHEN = datetime(2026, 11, 22, 12, 59, 0, 670_000, UTC)
COMMAND = PuppetDbCommand.create("replace facts", 5, "n", b'{"certname":"n"}', WHEN)
TARGET = COMMAND.target(COMMAND.unpacked())
SILENCE = 1.0  # seconds until a server that says nothing is given up; others answer in less, however busy the machine is
OVER = "Failing over to the next PuppetDB server_url in the 'server_urls' list"


@pytest.fixture
def puppetdb(tmp_path: Path) -> FakePuppetDb:
    return FakePuppetDb(tmp_path)


def counts(puppetdb: FakePuppetDb) -> list[int]:
    return [len(server.asked) for server in puppetdb.servers]


async def test_a_command_goes_to_the_wire_as_the_reference_sends_it(puppetdb: FakePuppetDb, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "puppet")
    async with puppetdb.serving(["ok"]) as urls:
        client = puppetdb.client(urls)
        assert await client.submit(COMMAND) == UUID
        await client.close()
    (ask,) = puppetdb.servers[0].asked
    assert (ask.method, ask.target, ask.certname) == ("POST", TARGET, "master.example.com")
    recorded = {name.lower(): value for name, value in RECORDED["facts"]["headers"].items()}
    for name in ("content-encoding", "content-type", "accept"):
        assert ask.headers[name] == recorded[name]
    assert ask.headers["x-uncompressed-length"] == "16" and body_of(ask) == {"certname": "n"}
    assert caplog.messages == [f"'replace_facts' command for n submitted to PuppetDB with UUID {UUID}"]


# The behaviour of each server; whether commands are broadcast, to how many at least; how often each is asked; the error.
SUBMISSIONS = [
    (["ok", "ok"], False, 1, [1, 0], ""),
    (["503", "ok"], False, 1, [1, 1], ""),
    (["404", "ok"], False, 1, [1, 1], ""),
    (["404 of it", "ok"], False, 1, [1, 1], ""),
    (["refused", "ok"], False, 1, [0, 1], ""),
    pytest.param(["silent", "ok"], False, 1, [1, 1], "", marks=pytest.mark.slow),
    (["400", "ok"], False, 1, [1, 0], "[400 X] Can't parsethat"),
    (["503", "refused"], False, 1, [1, 0], "Failed to execute 'TARGET' on at least 1 of the following 'server_urls': URLS"),
    (["404 of it", "refused"], False, 1, [1, 0], "Failed to find 'TARGET' on any of the following 'server_urls': URLS"),
    (["ok", "ok"], True, 1, [1, 1], ""),
    (["503", "ok"], True, 1, [1, 1], ""),
    (["ok", "503"], True, 2, [1, 1], "Failed to execute 'TARGET' on at least 2 of the following 'server_urls': URLS"),
    (["ok", "ok", "refused"], True, 2, [1, 1, 0], ""),
]


@pytest.mark.parametrize(("servers", "broadcast", "least", "asked", "error"), SUBMISSIONS)
async def test_commands_fail_over(
    puppetdb: FakePuppetDb, servers: list[str], broadcast: bool, least: int, asked: list[int], error: str
) -> None:
    async with puppetdb.serving(servers) as urls:
        timeout = SILENCE if "silent" in servers else 30.0
        client = puppetdb.client(urls, command_broadcast=broadcast, min_successful_submissions=least, server_url_timeout=timeout)
        if error:
            with pytest.raises(SubmissionFailed) as failed:
                await client.submit(COMMAND)
            assert failed.value.message == error.replace("TARGET", TARGET).replace("URLS", ", ".join(urls))
        else:
            assert await client.submit(COMMAND) == UUID
        await client.close()
    assert counts(puppetdb) == asked


@pytest.mark.parametrize("server", ["503", "400", "refused"])
async def test_a_soft_failure_is_logged_and_passes(puppetdb: FakePuppetDb, server: str, caplog: pytest.LogCaptureFixture) -> None:
    async with puppetdb.serving([server]) as urls:
        client = puppetdb.client(urls, soft_write_failure=True)
        assert await client.submit(COMMAND) is None
        with pytest.raises(PuppetError):
            await PuppetDbQueries(client)({"query": "nodes{}"})
        await client.close()
    assert [record.levelname for record in caplog.records].count("ERROR") == 1


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("503", f"Error connecting to HOST at route ROUTE, error message received was 'X'. {OVER}"),
        ("404", f"Error connecting to HOST at route ROUTE, error message received was 'X'. {OVER}"),
        pytest.param("silent", f"Request to HOST at route ROUTE timed out after 1 seconds. {OVER}", marks=pytest.mark.slow),
    ],
)
async def test_each_server_that_fails_is_warned_about(
    puppetdb: FakePuppetDb, server: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with puppetdb.serving([server, "ok"]) as urls:
        client = puppetdb.client(urls, server_url_timeout=SILENCE)
        await client.submit(COMMAND)
        await client.close()
    expected = message.replace("HOST", f"localhost on {puppetdb.servers[0].port}").replace("ROUTE", f"{urls[0]}{TARGET}")
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [expected]


@pytest.mark.slow
async def test_servers_for_commands_only_get_no_query_and_are_dropped_when_silent_twice(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving(["ok", "silent"]) as urls:
        client = puppetdb.client(urls[:1], submit_only_server_urls=tuple(urls[1:]), command_broadcast=True, server_url_timeout=SILENCE)
        for _ in range(4):
            await client.submit(COMMAND)
        await client.get("/pdb/query/v4/nodes")
        await client.close()
    assert counts(puppetdb) == [5, 2]


@pytest.mark.parametrize(("is_sticky", "asked"), [(False, [3, 3]), (True, [1, 3])])
async def test_queries_stay_with_the_server_that_answered(puppetdb: FakePuppetDb, is_sticky: bool, asked: list[int]) -> None:
    async with puppetdb.serving(["503", lambda ask: ROWS]) as urls:
        client = puppetdb.client(urls, sticky_read_failover=is_sticky)
        for _ in range(3):
            await client.post_query("nodes{}")
        await client.close()
    assert counts(puppetdb) == asked


async def test_an_answer_beyond_the_limit_is_an_error(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving([lambda ask: Reply(body=b"[" + b" " * 5000 + b"]")]) as urls:
        client = puppetdb.client(urls, max_answer=5000)
        with pytest.raises(TooLarge, match="is over the limit of 5000 bytes"):
            await client.get("/pdb/query/v4/nodes")
        await client.close()


async def test_the_masters_certificate_is_shown_unless_it_is_not_to_be(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving(["ok"]) as urls:
        for shown in (True, False):
            client = puppetdb.client(urls, verify_client_certificate=shown)
            await client.submit(COMMAND)
            await client.close()
    assert [ask.certname for ask in puppetdb.servers[0].asked] == ["master.example.com", None]


async def test_a_server_of_another_ca_gets_nothing(puppetdb: FakePuppetDb, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with FakePuppetDb(tmp_path / "other").serving(["ok"]) as urls:
        client = puppetdb.client(urls)
        with pytest.raises(SubmissionFailed):
            await client.submit(COMMAND)
        await client.close()
    assert puppetdb.paths == []


async def test_connections_are_used_again_until_the_certificate_is_renewed(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving(["ok"]) as urls:
        client = puppetdb.client(urls)
        for _ in range(3):
            await client.submit(COMMAND)
        puppetdb.trust()  # a new certificate
        await client.submit(COMMAND)
        await client.close()
        alone = puppetdb.client(urls, keep_alive=False)
        await alone.submit(COMMAND)
    assert [ask.connection for ask in puppetdb.servers[0].asked] == [1, 1, 1, 2, 3]


async def test_a_deprecation_is_passed_on(puppetdb: FakePuppetDb, caplog: pytest.LogCaptureFixture) -> None:
    async with puppetdb.serving([lambda ask: Reply(body=TAKEN.body, headers={"X-Deprecation": "old"})]) as urls:
        client = puppetdb.client(urls)
        await client.submit(COMMAND)
        await client.close()
    assert "Deprecation from PuppetDB: old" in caplog.messages


def answering(rows: Any) -> Callable[[Ask], Reply]:
    return lambda ask: Reply(body=json.dumps(rows).encode())


@pytest.mark.parametrize("pair", RECORDED["answers"], ids=lambda pair: json.dumps(pair["question"]["query"])[:60])
async def test_a_compilations_question_is_asked_as_the_reference_asks_it(puppetdb: FakePuppetDb, pair: dict[str, Any]) -> None:
    async with puppetdb.serving([answering(pair["answer"])]) as urls:
        client = puppetdb.client(urls)
        assert json.loads(await PuppetDbQueries(client)(pair["question"])) == pair["answer"]
        await client.close()
    (ask,) = puppetdb.servers[0].asked
    query = pair["question"]["query"]
    if "of" in pair["question"]:
        assert (ask.method, ask.path) == ("GET", "/pdb/query/v4/resources")
        assert json.loads(unquote_plus(ask.query.removeprefix("query="))) == query
    else:
        assert (ask.method, ask.target, body_of(ask)) == ("POST", "/pdb/query/v4", {"query": query})


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"query": "nodes"}, "[400 X] Can't parsethat"),
        (
            {"of": "resources", "query": []},
            "Could not retrieve resources from the PuppetDB at https://localhost:PORT: [400 X] Can't parsethat",
        ),
    ],
)
async def test_a_query_that_is_refused_is_an_error(puppetdb: FakePuppetDb, question: dict[str, Any], message: str) -> None:
    async with puppetdb.serving(["400"]) as urls:
        client = puppetdb.client(urls)
        with pytest.raises(PuppetError) as failed:
            await PuppetDbQueries(client)(question)
        await client.close()
    assert failed.value.message == message.replace("PORT", str(puppetdb.servers[0].port))


async def test_facts_are_found_saved_and_searched(puppetdb: FakePuppetDb) -> None:
    def answer(ask: Ask) -> Reply:
        rows = {
            "/pdb/query/v4/nodes/n/facts": [{"certname": "n", "environment": "e", "name": "a", "value": {"b": 1}}],
            "/pdb/query/v4/nodes": [{"certname": "n"}],
        }
        if ask.path in rows:
            return Reply(body=json.dumps(rows[ask.path]).encode())
        return TAKEN if ask.method == "POST" else Reply(404, b'{"error" : "No information is known about node x"}')

    async with puppetdb.serving([answer]) as urls:
        client = puppetdb.client(urls)
        facts = Binding(FACTS, PuppetDbFacts(client, now=lambda: WHEN))
        found = await facts.find("n")
        assert found is not None and found.values == {"a": {"b": 1}}
        assert await facts.find("x") is None
        remote = Client("n", "127.0.0.1", True, extensions={"pp_role": "web"})
        await facts.save(Facts(name="n", values={"a": 1}), environment="test", client=remote)
        names: Any = await facts.search("", **{"facts.os.ne": "Debian", "facts.cpus.ge": "2"})
        with pytest.raises(BadRequest, match="Fact search against keys of type 'meta' is unsupported"):
            await facts.search("", **{"meta.timestamp": "x"})
        await client.close()
    saved = body_of(next(ask for ask in puppetdb.servers[0].asked if ask.method == "POST"))
    assert saved["values"]["trusted"]["extensions"] == {"pp_role": "web"} and saved["environment"] == "test"
    assert [node.name for node in names] == ["n"]
    query = json.loads(unquote_plus(puppetdb.servers[0].asked[-1].query.removeprefix("query=")))
    assert query == ["and", [">=", ["fact", "cpus"], "2"], ["not", ["=", ["fact", "os"], "Debian"]]]


async def test_facts_that_cannot_be_asked_for_are_an_error(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving(["503"]) as urls:
        client = puppetdb.client(urls)
        with pytest.raises(PuppetError, match="Failed to find facts from PuppetDB at Failed to execute"):
            await Binding(FACTS, PuppetDbFacts(client)).find("n")
        with pytest.raises(NotFound):
            async with puppetdb.serving(["404 of it"]) as others:
                await puppetdb.client(others, keep_alive=False).get("/pdb/query/v4/nodes/n")
        await client.close()


async def test_a_node_is_deactivated_as_the_reference_does_it(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving(["ok"]) as urls:
        client = puppetdb.client(urls)
        nodes = Binding(NODE, PuppetDbNodes(client, now=lambda: datetime(2026, 11, 22, 13, 5, 35, 602_000, UTC)))
        assert await nodes.destroy("plain.example.com") == UUID
        assert await nodes.find("plain.example.com") is None
        await client.close()
    (ask,) = puppetdb.servers[0].asked
    sent, recorded = body_of(ask), dict(RECORDED["deactivation"]["body"])
    assert datetime.fromisoformat(sent.pop("producer_timestamp")) == datetime.fromisoformat(recorded.pop("producer_timestamp"))
    assert sent == recorded
    without_checksum = [part for part in ask.query.split("&") if not part.startswith("checksum=")]
    assert without_checksum == RECORDED["deactivation"]["path"].partition("?")[2].split("&")[1:]


async def test_a_catalog_is_sent_with_what_its_request_said_and_one_that_is_not_compiled_is_not(puppetdb: FakePuppetDb) -> None:
    async with puppetdb.serving(["ok"]) as urls:
        client = puppetdb.client(urls)
        catalogs = Binding(CATALOG, PuppetDbCatalogs(client, now=lambda: WHEN))
        await catalogs.save(StorableCatalog(name="n", environment="test"))
        catalog = StorableCatalog(
            name="n", environment="test", stored=PackedCatalog.of({"certname": "n", "resources": [], "edges": []}).pack()
        )
        await catalogs.save(Request("n", "asked", body=catalog, options={"transaction_uuid": "t", "job_id": "7"}))
        assert await catalogs.find("n") is None
        await client.close()
    (ask,) = puppetdb.servers[0].asked
    sent = body_of(ask)
    assert sent.pop("producer_timestamp").startswith("2026-11-22T")
    assert (sent.pop("resources"), sent.pop("edges")) == ([], [])
    assert sent == {"certname": "n", "environment": "test", "job_id": "7", "transaction_uuid": "t", "producer": "master.example.com"}
