"""Both URL schemes over TLS, with shelves as termini."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from shared.errors import CompileError, ConfigError, Location, NotFound, Unavailable
from shared.models.node import Node
from shared.testing import Shelf
from tests.support.fakes import KnownEnvironments
from tests.support.raw_master import RunningMaster

Termini = dict[str, Shelf[Any]]
Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]


async def test_scheme_a_gives_the_node_wrapped_as_pson(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/production/node/agent1?fail_on_404=true", Accept="pson, yaml, b64_zlib_yaml, raw")
    assert (answer.status, answer.headers["content-type"], answer.headers["x-puppet-version"]) == (200, "text/pson", "3.8.7")
    assert json.loads(answer.body) == {
        "document_type": "Node",
        "data": {"name": "agent1", "environment": "production", "parameters": {"role": "web"}},
    }


async def test_scheme_b_gives_the_node_bare_as_json(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/puppet/v3/node/agent1?environment=production", Accept="application/json, text/pson")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json;charset=utf-8")
    assert answer.headers["x-puppet-version"] == "7.23.0"
    assert json.loads(answer.body)["parameters"] == {"role": "web"}


async def test_a_connection_serves_both_schemes_one_after_the_other(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    for _ in range(3):
        assert (await agent.ask("GET", "/production/node/agent1?")).status == 200
        assert (await agent.ask("GET", "/puppet/v3/node/agent1?environment=production")).status == 200


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        ("/prod-x/node/agent1", 400, "The environment must be purely alphanumeric, not 'prod-x'"),
        ("/nowhere/node/agent1", 404, "Not Found: Could not find environment 'nowhere'"),
        ("/nowhere/node/agent2", 404, "Not Found: Could not find environment 'nowhere'"),
        ("/production/catalog/agent1x", 403, "Forbidden request: agent1(127.0.0.1) access to /catalog/agent1x [find] authenticated  at :"),
        ("/production/node/", 400, "No request key specified in /production/node/"),
        ("/production/status/x", 200, None),
        ("/production/file_content/modules/m/b", 404, "Not Found: Could not find file_content modules/m/b"),
    ],
)
async def test_scheme_a_speaks_as_3_8_does(master: RunningMaster, target: str, status: int, body: str | None) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", target)
    assert answer.status == status, answer
    if body is not None:
        assert (answer.text, answer.headers["content-type"]) == (body, "text/plain")


@pytest.mark.parametrize(
    ("method", "target", "status", "message", "kind"),
    [
        ("GET", "/puppet/v3/node/agent1", 400, "Bad Request: An environment parameter must be specified", "RUNTIME_ERROR"),
        ("GET", "/puppet/v3/node/agent1?environment=no", 404, "Not Found: Could not find environment 'no'", "RUNTIME_ERROR"),
        (
            "GET",
            "/puppet/v3/file_content/modules/m/b?environment=production",
            404,
            "Not Found: Could not find file_content modules/m/b",
            "RESOURCE_NOT_FOUND",
        ),
        ("DELETE", "/puppet/v3/node/agent1", 405, "Method Not Allowed: DELETE is not supported for node", "UNSUPPORTED_METHOD"),
        ("POST", "/puppet/v3/environments", 405, "Method Not Allowed: Only GET is allowed here", "UNSUPPORTED_METHOD"),
    ],
)
async def test_scheme_b_speaks_json(master: RunningMaster, method: str, target: str, status: int, message: str, kind: str) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask(method, target)
    told = json.loads(answer.body)
    assert (answer.status, told["message"], told["issue_kind"]) == (status, message, kind)
    assert ("hint" in told) == ("environment" in message and status == 404)


async def test_scheme_b_denies_without_a_content_type(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/puppet/v3/catalog/agent2?environment=production")
    assert answer.status == 403
    assert "content-type" not in answer.headers
    assert answer.text == "Forbidden request: /puppet/v3/catalog/agent2 (method :get). Please see the server logs for details."


async def test_what_is_not_routed_is_a_page_or_json_as_asked(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    page = await agent.ask("GET", "/puppet/v3/bogus/x?environment=production", Accept="text/html")
    assert (page.status, page.headers["content-type"]) == (404, "text/html;charset=utf-8")
    data = await agent.ask("GET", "/puppet/v3/bogus/x", Accept="application/json")
    assert (data.status, json.loads(data.body)) == (404, {"message": "Not Found", "url": "/puppet/v3/bogus/x", "status": "404"})


@pytest.mark.parametrize(
    ("target", "accept", "status", "text"),
    [
        ("/production/node/agent1", "", 406, "Not Acceptable: Missing required Accept header"),
        ("/production/node/agent1", "json", 406, "Not Acceptable: No supported formats are acceptable (Accept: json)"),
        ("/puppet/v3/node/agent1?environment=production", "", 400, "Missing required Accept header"),
        ("/puppet/v3/node/agent1?environment=production", "text/x-nothing", 406, "UNSUPPORTED_FORMAT"),
    ],
)
async def test_a_find_needs_a_format_both_know(master: RunningMaster, target: str, accept: str, status: int, text: str) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", target, Accept=accept)
    assert answer.status == status
    assert text in answer.text


async def test_compile_errors_are_400_text_in_a_and_500_json_in_b(master: RunningMaster, termini: Termini) -> None:
    termini["catalog"].fail = CompileError("Evaluation Error:\nno")
    agent = await master.client("agent1")
    old = await agent.ask("GET", "/production/catalog/agent1")
    assert (old.status, old.text) == (400, "Evaluation Error: no")
    new = await agent.ask("POST", "/puppet/v3/catalog/agent1?environment=production")
    assert (new.status, json.loads(new.body)["message"]) == (500, "Server Error: Evaluation Error: no")


async def test_a_compile_error_is_one_line_of_the_log_and_its_hint_goes_to_the_agent(
    master: RunningMaster, termini: Termini, caplog: pytest.LogCaptureFixture
) -> None:
    termini["catalog"].fail = CompileError("Syntax error at 'x'", where=Location("/site.pp", 2), hint="The '{' at line 1 is never closed.")
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/puppet/v3/catalog/agent1?environment=production")
    assert json.loads(answer.body)["hint"] == "The '{' at line 1 is never closed."
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["127.0.0.1 agent1: Syntax error at 'x' (file: /site.pp, line: 2) (The '{' at line 1 is never closed.)"]
    termini["catalog"].fail = ConfigError("no", hint="See /etc/puppet/secret.conf")
    answer = await agent.ask("GET", "/puppet/v3/catalog/agent1?environment=production")
    assert b"secret.conf" not in answer.body  # what is for the master's administrator stays there


async def test_who_compiled_is_said_with_a_catalog_that_was_asked_for_by_post(serve: Serve, termini: Termini) -> None:
    async with serve(certname="compiler1.test") as master:
        agent = await master.client("agent1")

        async def told(method: str, target: str) -> str | None:
            return (await agent.ask(method, f"{target}?environment=production")).headers.get("x-puppet-compiler-name")

        assert await told("POST", "/puppet/v3/catalog/agent1") == "compiler1.test"
        assert [await told("GET", f"/puppet/v3/{name}/agent1") for name in ("catalog", "node")] == [None, None]
        assert await told("GET", "/production/catalog/agent1") is None
        termini["catalog"].fail = CompileError("no")
        assert await told("POST", "/puppet/v3/catalog/agent1") == "compiler1.test"


async def test_an_unforeseen_error_gives_a_number_and_nothing_else(
    master: RunningMaster, termini: Termini, caplog: pytest.LogCaptureFixture
) -> None:
    termini["node"].fail = ZeroDivisionError("secret place")
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/puppet/v3/node/agent1?environment=production")
    assert answer.status == 500
    assert "secret" not in answer.text
    number = json.loads(answer.body)["message"].removeprefix("Server Error: incident ")
    logged = next(record for record in caplog.records if number in record.getMessage())
    assert logged.exc_info is not None


async def test_a_catalog_is_found_by_form_with_its_parameters(master: RunningMaster, termini: Termini) -> None:
    agent = await master.client("agent1")
    form = b"facts_format=pson&facts=%257B%257D&transaction_uuid=u&node=agent2&ip=1.2.3.4&environment=production"
    answer = await agent.ask("POST", "/puppet/v3/catalog/agent1", form, Content_Type="application/x-www-form-urlencoded")
    assert answer.status == 200
    request = termini["catalog"].requests[0]
    assert request.options == {"facts_format": "pson", "facts": "%7B%7D", "transaction_uuid": "u"}
    assert request.environment == "production"
    assert request.client is not None
    assert request.client.name == "agent1"


@pytest.mark.parametrize(
    ("target", "accept", "kind", "body"),
    [
        ("/production/facts/agent1", "pson", "text/pson", b'"/var/facts/agent1.yaml"'),
        (
            "/puppet/v3/facts/agent1?environment=production",
            "application/json",
            "application/json;charset=utf-8",
            b'"/var/facts/agent1.yaml"',
        ),
    ],
)
async def test_a_save_answers_with_what_the_terminus_gave(
    master: RunningMaster, termini: Termini, tmp_path: Any, target: str, accept: str, kind: str, body: bytes
) -> None:
    agent = await master.client("agent1")
    if target.startswith("/production"):
        answer = await agent.ask("PUT", target, b'{"name":"agent1","values":{}}', Content_Type="text/pson", Accept=accept)
        assert answer.status == 403  # 3.8's own rules let nobody save facts
        return
    answer = await agent.ask("PUT", target, b'{"name":"agent1","values":{"a":1}}', Content_Type="application/json", Accept=accept)
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, kind, body)
    assert termini["facts"].instances["agent1"].values == {"a": 1}


async def test_a_save_under_another_name_is_a_bad_request(master: RunningMaster, termini: Termini) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask(
        "PUT", "/puppet/v3/facts/agent1?environment=production", b'{"name":"agent2","values":{}}', Content_Type="application/json"
    )
    assert answer.status == 400
    assert termini["facts"].instances == {}


async def test_streams_go_both_ways_with_their_lengths(master: RunningMaster, termini: Termini) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/production/file_content/modules/m/a.txt", Accept="raw")
    assert (answer.headers["content-type"], answer.headers["content-length"], answer.body) == ("application/x-raw", "6", b"abcdef")
    key = "/production/file_bucket_file/md5/900150983cd24fb0d6963f7d28e17f72/etc/x"
    answer = await agent.ask("PUT", key, b"abc", Content_Type="text/plain", Accept="s, pson")
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "text/plain", b"")
    assert termini["file_bucket_file"].streams == {"md5/900150983cd24fb0d6963f7d28e17f72/etc/x": b"abc"}
    packed = gzip.compress(b"abcd" * 1000)
    answer = await agent.ask("PUT", key, packed, Content_Type="text/plain", Content_Encoding="gzip")
    assert answer.status == 200
    assert set(termini["file_bucket_file"].streams.values()) == {b"abcd" * 1000}


async def test_answers_are_packed_when_asked_and_long(master: RunningMaster, termini: Termini) -> None:
    termini["node"].instances["agent1"] = Node(name="agent1", parameters={"a": "b" * 5000})
    agent = await master.client("agent1")
    for asked, unpack in (("gzip;q=1.0,deflate;q=0.6,identity;q=0.3", gzip.decompress), ("deflate", zlib.decompress)):
        answer = await agent.ask("GET", "/puppet/v3/node/agent1?environment=production", Accept_Encoding=asked)
        assert answer.headers["content-encoding"] == asked.partition(";")[0]
        assert json.loads(unpack(answer.body))["parameters"]["a"] == "b" * 5000
    plain = await agent.ask("GET", "/puppet/v3/node/agent1?environment=production", Accept_Encoding="gzip;q=0, br")
    assert "content-encoding" not in plain.headers


async def test_head_says_whether_it_is_there_and_sends_no_body(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    assert (await agent.ask("HEAD", "/puppet/v3/file_bucket_file/md5/00?environment=production")).status == 404
    assert (await agent.ask("HEAD", "/puppet/v3/file_content/modules/m/a.txt?environment=production")).status == 200
    assert (await agent.ask("GET", "/status/v1/simple")).text == "running"


async def test_status_is_open_and_says_nothing_of_the_host(master: RunningMaster) -> None:
    stranger = await master.client()
    for target in ("/status/v1/simple/server", "/status/v1/simple/master"):
        assert (await stranger.ask("GET", target)).text == "running"
    missing = await stranger.ask("GET", "/status/v1/simple/x")
    assert (missing.status, missing.text) == (404, "not found: x")
    services = json.loads((await stranger.ask("GET", "/status/v1/services")).body)
    assert services["ca"]["state"] == "running"
    assert (await stranger.ask("GET", "/status/v1/services/nothing")).status == 404


async def test_environments_are_listed_under_both_names_for_agents_only(master: RunningMaster) -> None:
    agent, stranger = await master.client("agent1"), await master.client()
    for target, version in (("/v2.0/environments", "3.8.7"), ("/puppet/v3/environments", "7.23.0")):
        answer = await agent.ask("GET", target)
        assert json.loads(answer.body)["environments"] == {"production": {"settings": {}}}
        assert (answer.headers["content-type"], answer.headers["x-puppet-version"]) == ("application/json", version)
        assert (await stranger.ask("GET", target)).status == 403


async def test_unavailable_says_when_to_come_back(master: RunningMaster, termini: Termini) -> None:
    termini["catalog"].fail = Unavailable("busy", retry_after=7)
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/puppet/v3/catalog/agent1?environment=production")
    assert (answer.status, answer.headers["retry-after"]) == (503, "7")


async def test_the_access_log_has_one_escaped_line_a_request(master: RunningMaster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "puppet.access")
    agent = await master.client("agent1")
    await agent.ask("GET", "/production/node/agent1?secret=1")
    await agent.send(b'GET /production/no"de/\xe9 HTTP/1.1\r\nHost: x\r\n\r\n')
    await agent.answer()
    lines = [record.getMessage() for record in caplog.records if record.name == "puppet.access"]
    assert lines[0].startswith('127.0.0.1 agent1 "GET /production/node/agent1" 200 ')
    assert len(lines) == 1 or "\\x22" in lines[1]


async def test_the_environment_cache_is_forgotten_for_whom_a_rule_allows_it(serve: Serve, tmp_path: Path) -> None:
    rules = tmp_path / "auth.conf"
    rules.write_text("path /puppet-admin-api/v1/environment-cache\nmethod destroy\nallow ops\n")
    environments = KnownEnvironments(["production", "test"])
    async with serve(auth_conf=rules, environments=environments) as master:
        ops, agent = await master.client("ops"), await master.client("agent1")
        target = "/puppet-admin-api/v1/environment-cache"
        assert (await agent.ask("DELETE", target)).status == 403
        for query, status in (("", 204), ("?environment=test", 204), ("?environment=no", 404), ("?environment=../x", 400)):
            assert (await ops.ask("DELETE", target + query)).status == status
        assert environments.expired == [None, "test"]


@pytest.mark.parametrize("target", ["/production/node/agent1", "/puppet/v3/node/agent1?environment=production", "/nothing"])
async def test_who_asks_for_the_end_of_the_connection_gets_it(master: RunningMaster, target: str) -> None:
    agent = await master.client("agent1")
    answer = await agent.ask("GET", target, Connection="close")
    assert answer.headers["connection"] == "close"
    assert await agent.ended()


async def test_what_belongs_to_the_ca_is_not_served_below_puppet_v3(master: RunningMaster) -> None:
    agent = await master.client("agent1")
    assert (await agent.ask("GET", "/puppet/v3/certificate/ca?environment=production")).status == 404
    assert (await agent.ask("GET", "/puppet-ca/v1/certificate/ca")).text == "Not Found"


async def test_pson_carries_bytes_that_are_not_utf_8(master: RunningMaster, termini: Termini) -> None:
    termini["node"].instances["agent1"] = Node(name="agent1", parameters={"bytes": "\udcff"})
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/production/node/agent1", Accept="pson")
    assert (answer.status, b'"bytes":"\xff"' in answer.body) == (200, True)


async def test_a_stream_that_cannot_begin_is_an_error_and_not_a_cut(master: RunningMaster, termini: Termini) -> None:
    async def broken() -> AsyncIterator[bytes]:
        raise NotFound("Could not find file_content modules/m/a.txt")
        yield b""

    content = termini["file_content"].instances["modules/m/a.txt"]
    termini["file_content"].instances["modules/m/a.txt"] = content.model_copy(update={"chunks": broken})
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/production/file_content/modules/m/a.txt")
    assert (answer.status, answer.text) == (404, "Not Found: Could not find file_content modules/m/a.txt")


async def test_a_stream_that_breaks_off_closes_its_source(master: RunningMaster, termini: Termini) -> None:
    closed = []

    async def breaking() -> AsyncIterator[bytes]:
        try:
            yield b"abc"
            raise OSError("disk")
        finally:
            closed.append(True)

    content = termini["file_content"].instances["modules/m/a.txt"]
    termini["file_content"].instances["modules/m/a.txt"] = content.model_copy(update={"chunks": breaking})
    agent = await master.client("agent1")
    with pytest.raises((EOFError, OSError)):
        await agent.ask("GET", "/production/file_content/modules/m/a.txt")
    assert closed == [True]


async def test_a_lost_connection_to_somebody_else_is_an_incident(master: RunningMaster, termini: Termini) -> None:
    termini["node"].fail = ConnectionRefusedError("the classifier's database")
    agent = await master.client("agent1")
    answer = await agent.ask("GET", "/production/node/agent1")
    assert answer.status == 500
    assert "database" not in answer.text


async def test_who_was_refused_is_told_by_name_and_what_was_asked(serve: Serve) -> None:
    refused: list[dict[str, Any]] = []
    async with serve(on_refused=refused.append) as master:
        agent, stranger = await master.client("agent1"), await master.client()
        assert (await agent.ask("GET", "/puppet/v3/catalog/agent2?environment=production&secret=x")).status == 403
        assert (await agent.ask("GET", "/puppet/v3/catalog/agent1?environment=production")).status == 200
        assert (await stranger.ask("DELETE", "/puppet-admin-api/v1/environment-cache")).status == 403
    assert refused[0] == {
        "action": "request",
        "name": "agent1",
        "result": "refused",
        "method": "GET",
        "path": "/puppet/v3/catalog/agent2",
        "status": 403,
    }
    assert [(each["name"], each["method"]) for each in refused[1:]] == [("127.0.0.1", "DELETE")]


async def test_who_is_revoked_on_an_open_connection_is_refused_by_name(serve: Serve) -> None:
    refused: list[dict[str, Any]] = []
    async with serve(on_refused=refused.append) as master:
        agent = await master.client("agent1")
        assert (await agent.ask("GET", "/production/node/agent1?")).status == 200
        master.ca.revoke(x509.load_pem_x509_certificate(master.ca.certificate_of("agent1").read_bytes()))
        await master.server.tls.reload()
        assert (await agent.ask("GET", "/production/node/agent1?")).status == 403
    assert [(each["name"], each["path"]) for each in refused] == [("agent1", "/production/node/agent1")]
