"""Rows that need the whole master: its own termini, CA and compiler behind the rules, as raw requests over TLS."""

from __future__ import annotations

import getpass
import hashlib
import json
import ssl
import stat
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.data import plainyaml
from tests.support.kept import temporary_files
from tests.support.wired_site import CANARY, ENV, V3, WiredSite

pytestmark = pytest.mark.slow


async def test_CA_02_a_name_escaped_twice_is_refused_and_nothing_is_read_or_written(wired: WiredSite) -> None:
    client = await wired.client()
    before = wired.snapshot()
    for key in ("%252e%252e%252fetc%252fx", "%25%32%65%25%32%65", "..%252fprivate_keys%252flocalhost", "%2e%2e%2fprivate_keys%2flocalhost"):
        for target in (f"/puppet-ca/v1/certificate_request/{key}", f"/production/certificate_request/{key}"):
            for method, body in (("GET", b""), ("PUT", b"x")):
                answer = await client.ask(method, target, body, Content_Type="text/plain")
                assert answer.status in (400, 404), (method, target, answer)
                assert b"PRIVATE KEY" not in answer.body
    assert wired.snapshot() == before


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "certificate_status/{name}", b""),
        ("PUT", "certificate_status/{name}", b'{"desired_state":"revoked"}'),
        ("DELETE", "certificate_status/{name}", b""),
        ("GET", "certificate_statuses/any", b""),
        ("PUT", "clean", b'{"certnames":["agent2"]}'),
        ("POST", "sign", b'{"certnames":["agent2"]}'),
        ("POST", "sign/all", b""),
        ("PUT", "certificate_revocation_list", b"x"),
    ],
)
async def test_CA_20_an_agent_may_not_manage_certificates(wired: WiredSite, method: str, target: str, body: bytes) -> None:
    await wired.enrol("agent2")
    client = await wired.client("agent1")
    before = wired.snapshot()
    answers = []
    for name in ("agent1", "agent2", "never-seen"):
        answer = await client.ask(method, "/puppet-ca/v1/" + target.format(name=name), body, Content_Type="application/json")
        answers.append((answer.status, answer.text.replace(name, "NAME")))
    assert {status for status, _ in answers} == {403} and len(set(answers)) == 1, answers
    legacy = target.format(name="agent2")
    if legacy.startswith("certificate_status"):
        assert (await client.ask(method, f"/production/{legacy}", body, Content_Type="text/pson")).status == 403
    assert wired.snapshot() == before


async def test_R_25_a_full_disk_is_507_for_what_must_be_kept_and_nothing_for_what_is_only_a_copy(
    wired: WiredSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = await wired.client("agent1")
    facts = json.dumps({"name": "agent1", "values": {"colour": "blue"}}).encode()
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", "unrenamed:agent1.yaml=enospc")
    assert (await client.ask("GET", f"{V3}/node/agent1{ENV}")).status == 200
    assert "Could not cache node for agent1" in caplog.text
    for answer in (
        await client.ask("PUT", f"{V3}/facts/agent1{ENV}", facts, Content_Type="application/json"),
        await wired.catalog(client, "agent1", {"colour": "blue"}),
    ):
        assert (answer.status, "The master's disk is full" in answer.text) == (507, True)
    assert "Incident" not in caplog.text
    monkeypatch.delenv("BUNRAKU_FAILPOINTS")
    assert (await wired.catalog(client, "agent1", {"colour": "blue"})).status == 200
    assert temporary_files(wired.root) == []


async def test_ACL_02_and_03_identity_is_the_certificates_whatever_the_facts_say(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    forged = {
        "colour": "blue", "clientcert": "agent2", "fqdn": "agent2", "hostname": "agent2", "certname": "agent2",
        "trusted": {"certname": "agent2"}, "server_facts": {"servername": "x"}, "environment": "secret", "facts": {"colour": "forged"},
    }  # fmt: skip
    wrong = await wired.catalog(client, "agent1", forged, named="agent2")
    assert wrong.status == 400 and CANARY not in wrong.text
    assert not (wired.settings.yamldir / "facts").exists()
    answer = await wired.catalog(client, "agent1", forged)
    assert answer.status == 200, answer.text
    titles = [each["title"] for each in json.loads(answer.body)["resources"] if each["type"] == "Notify"]
    assert titles == ["agent1 blue"]
    assert json.loads(answer.body)["environment"] == "production"


async def test_the_canary_is_there_for_whom_it_is_meant(wired: WiredSite) -> None:
    """So that its absence in the other rows means something."""
    answer = await wired.catalog(await wired.client("agent2"), "agent2", {})
    assert CANARY in answer.text


async def test_ACL_09_the_classifiers_environment_wins_over_the_agents(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    node = await client.ask("GET", f"{V3}/node/agent1?environment=secret")
    assert json.loads(node.body)["environment"] == "production"
    catalog = await wired.catalog(client, "agent1", {"colour": "x"}, environment="secret")
    assert catalog.status == 200 and CANARY not in catalog.text
    assert json.loads(catalog.body)["environment"] == "production"


@pytest.mark.parametrize("role", ["../../x", "::", "a b", "::..::..::outside", "/etc/passwd", "a" * 10_000, "open\n"])
async def test_ACL_11_a_fact_as_class_name_opens_no_file_elsewhere(wired: WiredSite, role: str) -> None:
    client = await wired.client("agent1")
    answer = await wired.catalog(client, "agent1", {"colour": "x", "role": role})
    assert answer.status == 500, answer.text
    assert CANARY not in answer.text and "Evaluation Error" in answer.text
    assert (await wired.catalog(client, "agent1", {"colour": "x", "role": "open"})).status == 200


@pytest.mark.parametrize(
    "key",
    [
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "file:///etc/passwd",
        "modules&/x",
        "../x",
        "%2e%2e/outside",
        "unknown/x",
        "modules/open/..%2f..%2f..%2foutside",
    ],
)
async def test_FS_02_only_mounts_are_served(wired: WiredSite, key: str) -> None:
    client = await wired.client("agent1")
    for kind in ("file_content", "file_metadata", "file_metadatas"):
        for target in (f"{V3}/{kind}/{key}{ENV}", f"/production/{kind}/{key}"):
            answer = await client.ask("GET", target)
            assert answer.status in (400, 404), (target, answer)
            assert CANARY.encode() not in answer.body and b"root:" not in answer.body


async def test_FS_01_a_name_that_merely_has_dots_is_served(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    assert (await client.ask("GET", f"{V3}/file_content/modules/open/a..b{ENV}")).body == b"dots\n"


async def test_FB_01_nothing_that_a_client_says_moves_the_bucket(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    body = b"kept"
    digest = hashlib.sha256(body).hexdigest()
    elsewhere = wired.root / "elsewhere"
    elsewhere.mkdir()
    target = f"{V3}/file_bucket_file/sha256/{digest}/etc/x{ENV}&bucket_path={elsewhere}"
    assert (await client.ask("PUT", target, body, Content_Type="application/octet-stream")).status == 200
    assert list(elsewhere.iterdir()) == []
    assert (await client.ask("GET", f"{V3}/file_bucket_file/sha256/{digest}{ENV}&bucket_path=/etc")).body == body
    refused = await client.ask("GET", f"{V3}/file_bucket_file/https://127.0.0.1:1/x{ENV}")
    assert refused.status == 400


def report(host: str = "agent1", **changes: object) -> bytes:
    data = {
        "host": host, "time": "2026-11-21T00:00:00.000000000+00:00", "configuration_version": 1, "report_format": 12,
        "puppet_version": "7.23.0",
        "status": "unchanged", "environment": "production", "logs": [], "metrics": {}, "resource_statuses": {},
        "transaction_completed": True,
        "noop": False, "noop_pending": False, "corrective_change": False,
    }  # fmt: skip
    return json.dumps({**data, **changes}).encode()


async def test_RPT_02_what_is_stored_of_nodes_is_not_for_everybody(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    assert (await client.ask("PUT", f"{V3}/report/agent1{ENV}", report(), Content_Type="application/json")).status == 200
    assert (await wired.catalog(client, "agent1", {"colour": "x"})).status == 200
    stored = [p for root in (wired.settings.reportdir, wired.settings.yamldir) for p in [root, *root.rglob("*")]]
    assert len([p for p in stored if p.is_file()]) >= 3
    for path in stored:
        assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0, path


@pytest.mark.parametrize(
    "changes",
    [
        {"time": "9999-12-31T23:59:59Z"}, {"time": "1970-01-01T00:00:00Z"}, {"time": "not a time"}, {"status": "unheard-of"}, {"status": 5},
        {"report_format": 99}, {"report_format": "x"},
        {"metrics": {"time": {"name": "time", "label": "Time", "values": [["total", "Total", -5]]}}},
        {"metrics": []}, {"logs": "x"}, {"unknown_field": {"a": 1}}, {"resource_statuses": {"File[/x]": {"title": "/x"}}}, {"host": None},
        {"resource_statuses": {f"Notify[{i}]": {} for i in range(5000)}},
    ],
)  # fmt: skip
async def test_RPT_03_an_odd_report_is_stored_or_refused_and_named_by_our_clock(wired: WiredSite, changes: dict[str, object]) -> None:
    client = await wired.client("agent1")
    answer = await client.ask("PUT", f"{V3}/report/agent1{ENV}", report(**changes), Content_Type="application/json")
    assert answer.status in (200, 400), answer.text
    folder = wired.settings.reportdir / "agent1"
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    assert len(names) == (1 if answer.status == 200 else 0)
    assert all(not name.startswith(("9999", "1970")) for name in names)
    assert (await client.ask("GET", "/status/v1/simple/status-service")).text == "running"


async def test_RPT_04_messages_are_stored_as_they_were_sent(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    text = "<script>alert(1)</script> \x1b[31mred =cmd()|' \u202eright to left\nsecond line"
    line = {
        "level": "notice",
        "message": text,
        "source": "Puppet",
        "tags": ["notice"],
        "time": "2026-11-21T00:00:00Z",
        "file": None,
        "line": None,
    }
    assert (await client.ask("PUT", f"{V3}/report/agent1{ENV}", report(logs=[line]), Content_Type="application/json")).status == 200
    (path,) = (wired.settings.reportdir / "agent1").iterdir()
    assert plainyaml.loads(path.read_bytes())["logs"][0]["message"] == text


async def test_HTTP_18_an_anonymous_status_names_no_host(wired: WiredSite) -> None:
    client = await wired.client()
    for target in ("/status/v1/simple", "/status/v1/services", "/status/v1/services?level=debug"):
        answer = await client.ask("GET", target)
        assert "localhost" not in answer.text and str(wired.root) not in answer.text
        assert "aiohttp" not in json.dumps(answer.headers).lower() and "python" not in json.dumps(answer.headers).lower()


async def test_TLS_02_a_revoked_agent_is_refused_on_the_connection_it_has(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    assert (await client.ask("GET", f"{V3}/node/agent1{ENV}")).status == 200
    status = wired.master.indirector.certificate_status
    wish = status.indirection.model.from_data({"desired_state": "revoked"}).model_copy(update={"name": "agent1"})
    await status.save(wish)
    assert (await client.ask("GET", f"{V3}/node/agent1{ENV}")).status == 403
    assert await client.ended()
    with pytest.raises((ssl.SSLError, OSError, EOFError)):
        again = await wired.client("agent1")
        await again.ask("GET", f"{V3}/node/agent1{ENV}")


async def test_R_43_a_master_that_cannot_compile_says_so_and_when_it_can_again(wired: WiredSite, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await wired.client("agent1")
    health = wired.master.health
    compiling = health.conditions["compiling"]
    assert (await wired.catalog(client, "agent1", {})).status == 200
    assert (await client.ask("GET", "/status/v1/simple")).text == "running"
    monkeypatch.setattr("master.pools.worker_process.COMMAND", ("/bin/false",))
    wired.master.compile_pool.processes.renew()  # those that run have opened it already
    assert (await wired.catalog(client, "agent1", {"colour": "red"})).status == 500
    for path in ("/status/v1/simple", "/status/v1/simple/server", "/status/v1/simple/master"):
        answer = await client.ask("GET", path)
        assert (answer.status, answer.text) == (503, "error")
    for path in ("/status/v1/simple/ca", "/status/v1/simple/status-service"):
        assert (await client.ask("GET", path)).text == "running"
    answer = await client.ask("GET", "/status/v1/services")
    services = json.loads(answer.body)
    assert (answer.status, services["server"]["state"], services["ca"]["state"]) == (503, "error", "running")
    assert services["server"]["active_alerts"] == [{"severity": "error", "message": "No catalog can be compiled"}]
    assert str(wired.root) not in answer.text
    for _ in range(20):  # statuses are read, not found out
        await client.ask("GET", "/status/v1/simple")
    assert wired.master.compile_pool.processes.alive == 0
    await health.check(compiling)
    assert health.state("server") == "error"
    monkeypatch.undo()
    await health.check(compiling)
    assert (await client.ask("GET", "/status/v1/simple")).text == "running"
    assert (await wired.catalog(client, "agent1", {"colour": "red"})).status == 200


async def test_R_44_a_code_cache_that_cannot_be_used_costs_one_warning_and_no_answer(
    wired: WiredSite, caplog: pytest.LogCaptureFixture
) -> None:
    client = await wired.client("agent1")
    assert (await wired.catalog(client, "agent1", {})).status == 200
    wired.settings.code_cache.chmod(0o755)
    for number in range(3):
        wired.master.compile_pool.processes.renew()
        assert (await wired.catalog(client, "agent1", {"colour": str(number)})).status == 200
    (warning,) = [each.getMessage() for each in caplog.records if "code_cache" in each.getMessage()]
    assert f"belongs to {getpass.getuser()}, with mode 0755" in warning and f"rm -rf {wired.settings.code_cache}" in warning


async def test_R_43_a_ca_that_cannot_write_is_in_error_and_catalogs_are_not(wired: WiredSite, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await wired.client("agent1")
    health, folder = wired.master.health, str(wired.settings.cadir)
    assert (await wired.catalog(client, "agent1", {})).status == 200
    monkeypatch.setattr(
        "master.service.conditions.write_problem", lambda path: f"{path} is read-only" if str(path).startswith(folder) else ""
    )
    await health.check(health.conditions["ca-folder"])
    states = {name: (await client.ask("GET", f"/status/v1/simple/{name}")).text for name in ("ca", "server")}
    assert states == {"ca": "error", "server": "running"}
    assert (await client.ask("GET", "/status/v1/simple")).status == 503
    monkeypatch.undo()
    await health.check(health.conditions["ca-folder"])
    assert (await client.ask("GET", "/status/v1/simple")).text == "running"


async def test_R_43_an_ended_revocation_list_is_an_error_of_what_agents_ask_for(wired: WiredSite, monkeypatch: pytest.MonkeyPatch) -> None:
    health = wired.master.health
    client = await wired.client("agent1")
    assert (await wired.catalog(client, "agent1", {})).status == 200
    tls = wired.master.http.tls
    monkeypatch.setattr(tls, "_trust", replace(tls.trust, next_update=datetime(2000, 1, 1, tzinfo=UTC)))
    await health.check(health.conditions["revocation-lists"])
    assert [health.state(each) for each in ("ca", "server", "status-service")] == ["error", "error", "running"]
