"""The store's other endpoints: who may use them, status, version, commands, administration, metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tasks import HTTP_TASKS
from shared.process.supervision import Supervisor
from store.endpoints.application import AccessRules
from store.endpoints.metrics import Meter, StoreMetrics, Timer
from store.retention.retention import STEPS
from tests.store.endpoints.conftest import UUID, FakeReceipt, FakeStore
from tests.support.raw_master import CaFolder, RawClient, running

RECORDED = Path(__file__).parents[2] / "conformance" / "puppetdb"
COMMAND = "/pdb/cmd/v1?command=replace_facts&version=5&certname=a"


def recorded(name: str) -> list[dict[str, Any]]:
    pairs: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return pairs


def shape(value: Any) -> Any:
    """The body without what differs from one second to the next."""
    return {key: "@RECEIVED@" if key == "server_time" else shape(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("pair", recorded("meta"), ids=lambda pair: pair["id"])
async def test_version_status_and_redirections_are_the_recorded_ones(client: RawClient, pair: dict[str, Any]) -> None:
    answer, expected = await client.ask("GET", pair["request"]["path"], Accept="application/json"), pair["answer"]
    assert (answer.status, answer.headers.get("content-type", "")) == (expected["status"], expected["content_type"])
    body = shape(json.loads(answer.body)) if "json" in expected["content_type"] else answer.text
    assert body == expected["body"]
    if answer.status == 302:
        assert answer.headers["location"] == "/pdb/dashboard/index.html"


async def test_the_page_that_redirections_lead_to_exists(client: RawClient) -> None:
    page = await client.ask("GET", "/pdb/dashboard/index.html")
    assert page.status == 200 and "<!DOCTYPE html>" in page.text


SUBMISSIONS = [
    pair
    for pair in recorded("commands")
    if "bug" not in pair and "processed" not in str(pair["answer"]["body"]) and not pair["request"]["path"].startswith("/pdb/query")
]


@pytest.mark.parametrize("pair", SUBMISSIONS, ids=lambda pair: pair["id"])
async def test_submissions_are_taken_and_refused_as_recorded(client: RawClient, pair: dict[str, Any]) -> None:
    request, expected = pair["request"], pair["answer"]
    query = "&".join(f"{name}={value.replace(' ', '%20')}" for name, value in request.get("params", {}).items())
    headers = {"Content-Type": "application/json", "Accept": "application/json"} | request.get("headers", {})
    target = request["path"] + (f"?{query}" if query else "")
    answer = await client.ask(request["method"], target, request.get("raw_body", "").encode(), **headers)
    assert (answer.status, answer.headers.get("content-type", "")) == (expected["status"], expected["content_type"])
    body = json.loads(answer.body) if "json" in expected["content_type"] else answer.text
    assert body == json.loads(json.dumps(expected["body"]).replace("@UUID@", UUID))


async def test_a_client_that_takes_no_json_submits_nothing(store: FakeStore, client: RawClient) -> None:
    refused = await client.ask("POST", COMMAND, b"{}", Accept="text/html, application/json;q=0")
    assert (refused.status, refused.text) == (406, "must accept application/json")
    assert not store.intake.submissions


async def test_who_waits_hears_what_became_of_the_command(store: FakeStore, client: RawClient) -> None:
    async def wait(receipt: FakeReceipt) -> tuple[int, Any]:
        store.intake.receipt = receipt
        answer = await client.ask("POST", f"{COMMAND}&secondsToWaitForCompletion=2.5", b"{}")
        return answer.status, json.loads(answer.body)

    assert await wait(FakeReceipt()) == (200, {"uuid": UUID, "processed": True, "timed_out": False})
    assert store.intake.submissions[-1].seconds_to_wait == 2.5
    assert await wait(FakeReceipt(is_processed=False)) == (503, {"uuid": UUID, "processed": False, "timed_out": True})
    rejected = FakeReceipt(error="no facts")
    assert await wait(rejected) == (503, {"uuid": UUID, "processed": True, "timed_out": False, "error": "no facts"})


async def test_commands_are_bounded_and_only_posted(store: FakeStore, client: RawClient) -> None:
    assert (await client.ask("POST", COMMAND, b"x" * 20_000)).status == 413
    assert store.intake.submissions == []


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_commands_come_by_no_other_method(store: FakeStore, client: RawClient, method: str) -> None:
    assert (await client.ask(method, COMMAND, b"{}")).status == 405
    assert store.intake.submissions == []


async def test_until_the_database_is_open_clients_are_told_to_come_back(tmp_path: Path) -> None:
    async with FakeStore(is_open=False).serving(tmp_path) as client:
        for path in ("/pdb/query/v4/nodes", "/pdb/meta/v1/version", COMMAND):
            answer = await client.ask("GET", path)
            assert (answer.status, answer.text) == (503, "PuppetDB is currently down. Try again later.")
        simple = await client.ask("GET", "/status/v1/simple")
        assert (simple.status, simple.text) == (503, "starting")
        assert json.loads((await client.ask("GET", "/status/v1/services")).body)["puppetdb-status"]["state"] == "starting"


async def test_a_database_that_is_away_is_an_error_of_the_service(store: FakeStore, client: RawClient) -> None:
    store.is_up = False
    simple = await client.ask("GET", "/status/v1/simple")
    assert (simple.status, simple.text) == (503, "error")
    service = await client.ask("GET", "/status/v1/services/puppetdb-status?level=critical")
    assert service.status == 503 and json.loads(service.body)["status"] == {}
    assert (await client.ask("GET", "/status/v1/services/other")).status == 404


async def test_PDB_06_over_tls_a_certificate_is_needed_and_a_list_protects_pdb(tmp_path: Path, store: FakeStore) -> None:
    ca = CaFolder(tmp_path / "ca")
    ca.issue("puppet")
    application = store.application(AccessRules("puppet", frozenset({"master1"})))
    async with running(HttpServer(application, ServerOptions(ca.trust("puppet")), Supervisor(HTTP_TASKS)), ca) as server:
        listed, other, stranger = await server.client("master1"), await server.client("web1"), await server.client()
        assert (await listed.ask("GET", "/pdb/query/v4/nodes")).status == 200
        assert (await listed.ask("POST", COMMAND, b"{}")).status == 200
        denied = await other.ask("GET", "/pdb/query/v4/nodes")
        assert denied.status == 403 and denied.text.startswith("Permission denied: The client certificate name web1 doesnt appear in")
        assert (await other.ask("GET", "/status/v1/simple")).text == "running"
        assert (await other.ask("GET", "/metrics/v2/version")).status == 200
        for path in ("/pdb/query/v4/nodes", "/pdb/meta/v1/version", "/metrics", "/metrics/v2/list", "/status/v1/services/puppetdb-status"):
            assert (await stranger.ask("GET", path)).status == (200 if path.startswith("/status") else 403)


CHANGES = [
    ("POST", COMMAND, b"{}"),
    ("POST", "/pdb/cmd/v1?command=deactivate_node&version=3&certname=web1", b"{}"),
    ("POST", "/pdb/cmd/v1", b'{"command": "replace facts", "version": 5, "payload": {"certname": "web1"}}'),
    ("POST", "/pdb/cmd/v1/batch", b""),
    ("POST", "/pdb/admin/v1/cmd", b'{"command": "delete", "version": 1, "payload": {"certname": "web1"}}'),
    ("POST", "/pdb/admin/v1/archive", b""),
    ("GET", "/pdb/admin/v1/archive", b""),
    ("GET", "/pdb/admin/v1/summary-stats", b""),
    ("POST", "/pdb/%63md/v1?command=replace_facts&version=5&certname=web1", b"{}"),
]


@pytest.mark.parametrize(("method", "target", "body"), CHANGES, ids=str)
async def test_PDB_06_without_a_list_a_node_may_ask_and_change_nothing_even_about_itself(
    tmp_path: Path, store: FakeStore, method: str, target: str, body: bytes
) -> None:
    ca = CaFolder(tmp_path / "ca")
    ca.issue("puppet")
    claims = {"X-Client-DN": "CN=puppet", "X-Client-Verify": "SUCCESS", "X-Authentication": "puppet"}
    async with running(
        HttpServer(store.application(AccessRules("puppet")), ServerOptions(ca.trust("puppet")), Supervisor(HTTP_TASKS)), ca
    ) as server:
        node = await server.client("web1")
        assert (await node.ask("GET", "/pdb/query/v4/nodes")).status == 200
        denied = await node.ask(method, target, body, **claims)
        assert denied.status == 403 and "name web1 may ask, but" in denied.text
        assert store.intake.submissions == [] and store.administration.done == []


async def test_without_a_list_the_hosts_own_certificate_may_change_things(tmp_path: Path, store: FakeStore) -> None:
    ca = CaFolder(tmp_path / "ca")
    ca.issue("puppet")
    async with running(
        HttpServer(store.application(AccessRules("puppet")), ServerOptions(ca.trust("puppet")), Supervisor(HTTP_TASKS)), ca
    ) as server:
        own = await server.client("puppet")
        assert (await own.ask("POST", COMMAND, b"{}")).status == 200
        assert (await own.ask("GET", "/pdb/admin/v1/summary-stats")).status == 200


CLEANING = [
    ([], (list(STEPS), None)),
    (["expire_nodes", "other"], (["expire_nodes", "other"], None)),
    ([["purge_nodes", {"batch_limit": 5}]], (["purge_nodes"], 5)),
]


@pytest.mark.parametrize(("payload", "done"), CLEANING, ids=str)
async def test_administrators_clean_up(store: FakeStore, client: RawClient, payload: list[object], done: object) -> None:
    body = json.dumps({"command": "clean", "version": 1, "payload": payload}).encode()
    assert json.loads((await client.ask("POST", "/pdb/admin/v1/cmd", body)).body) == {"ok": True}
    assert store.administration.done == [done]
    store.administration.is_busy = True
    busy = await client.ask("POST", "/pdb/admin/v1/cmd", body)
    assert (busy.status, json.loads(busy.body)["kind"]) == (409, "conflict")


async def test_administrators_delete_nodes(store: FakeStore, client: RawClient) -> None:
    body = b'{"command": "delete", "version": 1, "payload": {"certname": "x"}}'
    assert json.loads((await client.ask("POST", "/pdb/admin/v1/cmd", body)).body) == {"deleted": "x"}
    assert store.administration.done == ["x"]


INVALID = [
    b"no json",
    b'{"command": "clean", "version": 2, "payload": []}',
    b'{"command": "clean", "version": 1, "payload": ["everything"]}',
    b'{"command": "clean", "version": 1, "payload": [["purge_nodes", {"batch_limit": 0}]]}',
    b'{"command": "clean", "version": 1, "payload": [["purge_nodes", {"batch_limit": true}]]}',
    b'{"command": "delete", "version": 1, "payload": {"certname": ""}}',
]


@pytest.mark.parametrize("body", INVALID)
async def test_other_commands_of_administrators_are_refused(store: FakeStore, client: RawClient, body: bytes) -> None:
    answer = await client.ask("POST", "/pdb/admin/v1/cmd", body)
    assert answer.status == 400 and json.loads(answer.body)["error"].startswith('Invalid command "')
    assert store.administration.done == []


async def test_archives_are_exported_and_imported(store: FakeStore, client: RawClient) -> None:
    export = await client.ask("GET", "/pdb/admin/v1/archive")
    assert (export.body, export.headers["content-type"]) == (b"one two", "application/octet-stream")
    assert export.headers["content-disposition"].startswith("attachment; filename=puppetdb-export-")
    part = b'--xx\r\nContent-Disposition: form-data; name="archive"; filename="a.tgz"\r\n\r\ndata\r\n--xx--\r\n'
    answer = await client.ask("POST", "/pdb/admin/v1/archive", part, Content_Type="multipart/form-data; boundary=xx")
    assert json.loads(answer.body) == {"ok": True}
    assert (await client.ask("POST", "/pdb/admin/v1/archive", b"plain data", Content_Type="application/gzip")).status == 200
    assert store.administration.done == [b"data", b"plain data"]
    assert (await client.ask("POST", "/pdb/admin/v1/archive", b"bad")).status == 400
    empty = await client.ask("POST", "/pdb/admin/v1/archive", b"--xx--\r\n", Content_Type="multipart/form-data; boundary=xx")
    assert (empty.status, empty.text) == (400, "The form has no field 'archive'")
    broken = await client.ask("POST", "/pdb/admin/v1/archive", b"no form\r\n", Content_Type="multipart/form-data; boundary=xx")
    assert broken.status == 400 and broken.text.startswith("The form cannot be read: ")
    assert (await client.ask("POST", "/pdb/admin/v1/cmd", b"{}", Content_Type="text/plain")).status == 415


async def test_metrics_are_read_as_jolokia_shows_them(client: RawClient) -> None:
    async def read(path: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((await client.ask("GET", f"/metrics/v2/{path}")).body)
        return answer

    name = "puppetlabs.puppetdb.population:name=num-nodes"
    assert await read("read/puppetlabs.puppetdb.population%3Aname%3Dnum-nodes") == {
        "request": {"mbean": name, "type": "read"},
        "value": {"Value": 7},
        "timestamp": 1_700_000_000,
        "status": 200,
    }
    assert (await read(f"read/{name}/Value"))["value"] == 7
    missing = await read("read/no.such:name=x")
    assert missing["status"] == 404 and missing["error"] == "javax.management.InstanceNotFoundException : no.such:name=x"
    listing = (await read("list"))["value"]
    assert set(listing) == {"puppetlabs.puppetdb.population", "puppetlabs.puppetdb.mq"}
    for domain, beans in listing.items():
        for properties in beans:
            assert (await read(f"read/{domain}:{properties}"))["status"] == 200
    assert (await read("search/puppetlabs.puppetdb.mq:*"))["value"][0] == "puppetlabs.puppetdb.mq:name=global.depth"
    assert (await client.ask("POST", "/metrics/v2/read", b"{}")).status == 405
    assert (await client.ask("GET", "/metrics/v1/mbeans")).status == 404


async def test_prometheus_reads_the_same_numbers(store: FakeStore, client: RawClient) -> None:
    answer = await client.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "puppet_store_num_nodes 7\n" in answer.text
    assert 'puppet_store_commands_total{result="processed"} 2\n' in answer.text


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_rates_follow_the_events_and_fade_without_them() -> None:
    clock = Clock()
    meter = Meter(clock)
    for _ in range(60):
        clock.now += 10
        for _ in range(20):
            meter.mark()
    busy = meter.attributes()
    assert busy["Count"] == 1200 and busy["MeanRate"] == pytest.approx(2)
    assert busy["OneMinuteRate"] == pytest.approx(2, rel=0.1) and busy["FifteenMinuteRate"] < 1.5
    clock.now += 600
    assert meter.attributes()["OneMinuteRate"] < 0.05 < meter.attributes()["FifteenMinuteRate"]


def test_a_timer_keeps_the_last_durations() -> None:
    timer = Timer(Clock())
    for number in range(1, 1001):
        timer.add(number / 1000)
    found = timer.attributes()
    assert (found["Count"], found["Min"], found["Max"]) == (1000, 489.0, 1000.0)
    assert found["50thPercentile"] == pytest.approx(745, abs=2) and found["DurationUnit"] == "milliseconds"


async def test_the_population_is_counted_seldom() -> None:
    asked = []

    async def population() -> dict[str, float]:
        asked.append(1)
        return {"num-nodes": len(asked)}

    clock = Clock()
    metrics = StoreMetrics(population, dict, clock)
    metrics.count_answer("/pdb/cmd/v1", "POST", 200, 0.5)
    assert 'puppet_store_request_seconds_sum{endpoint="/pdb/cmd/v1"} 0.500000' in await metrics.exposition()
    await metrics.beans()
    assert len(asked) == 1
    clock.now += 31
    assert (await metrics.population()) == {"num-nodes": 2}
