"""The HTTP rows of the attack table, as raw bytes over TLS."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from shared.testing import Shelf
from tests.support.fakes import KnownEnvironments
from tests.support.master_site import still_alive
from tests.support.raw_master import RawClient, RunningMaster
from tests.support.waiting import until

V3 = "/puppet/v3"
ENV = "?environment=production"
Shelves = Any
Start = Any


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", f"{V3}/catalog/agent1%2f..%2fagent2{ENV}"),
        ("PUT", f"{V3}/report/..%2fagent2{ENV}"),
        ("GET", f"{V3}/node/%2e%2e{ENV}"),
        ("GET", f"{V3}/node/agent1%5c..%5cagent2{ENV}"),
        ("GET", "/production/catalog/agent1%2f..%2fagent2"),
        ("GET", "/production/node/%2E%2E"),
        ("GET", "/production/node/../agent2"),
    ],
)
async def test_HTTP_01_encoded_separators_are_refused_before_the_rules(
    agent1: RawClient, shelves: Shelves, method: str, target: str
) -> None:
    answer = await agent1.ask(method, target)
    assert answer.status == 400
    assert "Forbidden" not in answer.text
    assert shelves.asked == []


@pytest.mark.parametrize("key", ["%2561gent2", "agent1%252f..%252fagent2", "agent+2", "agent%31+", "agent1%00", "agent1%0a"])
async def test_HTTP_02_rule_and_terminus_see_the_same_key(agent1: RawClient, shelves: Shelves, key: str) -> None:
    for target in (f"{V3}/catalog/{key}{ENV}", f"/production/catalog/{key}"):
        answer = await agent1.ask("GET", target)
        assert answer.status in (400, 403), answer
        assert "canary" not in answer.text
    assert shelves.asked == []


@pytest.mark.parametrize("bad", [b"%c0%ae%c0%ae", b"%e0%80%ae", b"%ff", b"%u002e", b"%", b"%zz", b"\x80\xff", b"\xc3\xa9"])
async def test_HTTP_03_overlong_and_broken_escapes_are_400(master: RunningMaster, shelves: Shelves, bad: bytes) -> None:
    for path in (
        b"/puppet/v3/node/" + bad,
        b"/production/node/" + bad,
        b"/" + bad + b"/node/x",
        b"/status/v1/" + bad,
        b"/puppet-ca/v1/" + bad,
    ):
        client = await master.client()
        await client.send(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n")
        assert (await client.answer()).status in (400, 404), path
        await client.close()
    assert shelves.asked == []


@pytest.mark.parametrize(
    "target",
    [
        f"/{V3}/catalog/agent1{ENV}",
        f"{V3}/catalog/agent1/{ENV}",
        f"{V3}/catalog/agent1;x=1{ENV}",
        f"{V3}/catalog/agent1%3Fenvironment=x",
        f"{V3}/catalog\\agent1{ENV}",
        f"{V3}/CATALOG/agent1{ENV}",
        f"{V3}//catalog/agent1{ENV}",
        f"/PUPPET/v3/catalog/agent1{ENV}",
        f"/puppet/v4/catalog/agent1{ENV}",
        f"/./puppet/v3/catalog/agent1{ENV}",
    ],
)
async def test_HTTP_04_only_the_canonical_path_is_served(agent1: RawClient, shelves: Shelves, target: str) -> None:
    assert (await agent1.ask("GET", target)).status in (400, 404)
    assert shelves.asked == []


@pytest.mark.parametrize(
    ("head", "statuses"),
    [
        (b"GET http://evil/puppet/v3/node/agent1?environment=production HTTP/1.1\r\nHost: x\r\n", (400,)),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n", (400, 405)),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n", (400, 405)),
        (b"TRACE / HTTP/1.1\r\nHost: x\r\n", (400, 405)),
        (b"GET /status/v1/simple HTTP/1.1\r\nHost: a\r\nHost: b\r\n", (400,)),
        (b"GET /status/v1/simple HTTP/1.1\r\n", (400,)),
        (b"GET /status/v1/simple HTTP/1.1\r\nHost: evil\r\n", (200,)),
    ],
)
async def test_HTTP_05_no_authority_comes_from_the_request(master: RunningMaster, head: bytes, statuses: tuple[int, ...]) -> None:
    client = await master.client("agent1")
    await client.send(head + b"Accept: */*\r\n\r\n")
    answer = await client.answer()
    assert answer.status in statuses
    assert "evil" not in answer.text + str(answer.headers)


@pytest.mark.slow
async def test_HTTP_06_07_08_hold_with_the_parser_in_python(request: pytest.FixtureRequest) -> None:
    if os.environ.get("AIOHTTP_NO_EXTENSIONS"):
        pytest.skip("this is already the run with the parser in Python")
    here = str(request.path)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-k", "HTTP_06 or HTTP_07 or HTTP_08", here),
        env={**os.environ, "AIOHTTP_NO_EXTENSIONS": "1"},
        cwd=request.config.rootpath,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-3000:]


SMUGGLED = b"GET /production/node/agent1 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"Content-Length: +5\r\n\r\nabcde",
        b"Content-Length: 0x5\r\n\r\nabcde",
        b"Content-Length: 5, 5\r\n\r\nabcde",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n12345678901234567\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
    ],
)
async def test_HTTP_06_doubtful_framing_ends_the_connection(start: Start, shelves: Shelves, framing: bytes) -> None:
    async with start({"header_timeout": 0.5, "body_timeout": 0.5, "body_rate": 10**6}) as master:
        await _send_doubtful(master, shelves, framing)


async def _send_doubtful(master: RunningMaster, shelves: Shelves, framing: bytes) -> None:
    client = await master.client("agent1")
    head = f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
    await client.send(head + framing + SMUGGLED)
    # aiohttp's parser in Python takes a huge chunk size for what it is, and waits for the chunk.
    assert (await client.answer()).status in (400, 408)
    assert await client.ended()
    assert ("node", "find", "agent1") not in shelves.asked
    await still_alive(master)


@pytest.mark.parametrize(
    "line", [b"GET /status/v1/simple\r\n", b"GET /status/v1/simple HTTP/1.9\r\n", b"GET /status/v1/simple HTTP/2.0\r\n"]
)
async def test_HTTP_07_other_versions_are_refused(master: RunningMaster, line: bytes) -> None:
    client = await master.client()
    await client.send(line + b"Host: x\r\n\r\n")
    try:
        answer = await client.answer()
    except EOFError as err:
        assert b"running" not in err.args[0]
    else:
        assert answer.status in (400, 505)
        assert "running" not in answer.text
    assert await client.ended()


async def test_HTTP_07_the_preface_of_http_2_is_refused(master: RunningMaster) -> None:
    client = await master.client()
    await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert await client.ended()


@pytest.mark.parametrize("keep", [b"", b"Connection: keep-alive\r\n"])
async def test_HTTP_07_http_1_0_is_served_unchunked_and_closed(master: RunningMaster, shelves: Shelves, keep: bytes) -> None:
    content = shelves["file_content"].instances["modules/m/a"]
    shelves["file_content"].instances["modules/m/a"] = content.model_copy(update={"size": None})
    for path, expected in ((b"/status/v1/simple", b"running"), (b"/production/file_content/modules/m/a", b"abc")):
        client = await master.client("agent1")
        await client.send(b"GET " + path + b" HTTP/1.0\r\nAccept: */*\r\n" + keep + b"\r\n")
        answer = await client.answer()
        assert (answer.status, answer.body) == (200, expected)
        assert "transfer-encoding" not in answer.headers
        assert await client.ended()


@pytest.mark.parametrize(
    "headers",
    [
        b"".join(b"X-%d: y\r\n" % number for number in range(300)),
        b"X-Long: " + b"y" * 65536 + b"\r\n",
        b"X-Nul: a\x00b\r\n",
        b"X-Cr: a\rb\r\n",
        b"".join(b"X-%d: %s\r\n" % (number, b"y" * 7000) for number in range(6)),
    ],
)
async def test_HTTP_08_too_many_long_or_dirty_headers_are_refused(master: RunningMaster, headers: bytes) -> None:
    client = await master.client()
    await client.send(b"GET /status/v1/simple HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    assert (await client.answer()).status in (400, 431)
    assert await client.ended()
    await still_alive(master)


async def test_HTTP_08_a_request_line_of_64_kb_in_pieces_is_refused(master: RunningMaster) -> None:
    client = await master.client()
    await client.send(b"GET /")
    with pytest.raises((EOFError, OSError)):
        for _ in range(655):
            await client.send(b"a" * 100)
            await asyncio.sleep(0)
        answer = await client.answer()
        assert answer.status in (400, 431)
        raise EOFError
    await still_alive(master)


QUICK = {"header_timeout": 0.2, "body_timeout": 0.2, "body_rate": 1_000_000, "write_timeout": 0.3, "handshake_timeout": 0.5}


@pytest.mark.slow
async def test_HTTP_09_who_sends_nothing_or_drips_is_cut(start: Start) -> None:
    async with start(QUICK) as master:
        silent = await master.client()
        dripping = await master.client()
        slow = await master.client("agent1")
        head = f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        await slow.send(head.encode())

        async def drip(client: RawClient) -> None:
            for _ in range(100):
                await client.send(b"a")
                await asyncio.sleep(0.05)

        drips = [asyncio.create_task(drip(client)) for client in (dripping, slow)]
        assert await silent.ended()
        assert await dripping.ended()
        assert (await slow.answer()).status == 408
        await asyncio.gather(*(task for task in drips if task.cancel()), return_exceptions=True)
        await still_alive(master)


@pytest.mark.slow
async def test_HTTP_09_silent_and_dripping_clients_do_not_stop_an_agent(start: Start) -> None:
    async with start({"header_timeout": 3, "max_connections": 100}) as master:
        for number in range(150):
            client = await master.client()
            if number % 2:
                await client.send(b"GET /status")
        agent = await master.client("agent1")
        assert (await agent.ask("GET", f"{V3}/node/agent1{ENV}")).status == 200
        assert master.server.listener.open_count <= 101


@pytest.mark.slow
async def test_HTTP_09_who_does_not_read_is_cut(start: Start, shelves: Shelves) -> None:
    begun = asyncio.Event()

    async def endless() -> Any:
        begun.set()
        for _ in range(10_000):
            yield b"x" * 65536

    content = shelves["file_content"].instances["modules/m/a"]
    shelves["file_content"].instances["modules/m/a"] = content.model_copy(update={"chunks": endless, "size": None})
    async with start(QUICK) as master:
        client = await master.client("agent1")
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(b"GET /production/file_content/modules/m/a HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n")
        await begun.wait()
        await until(lambda: master.server.listener.server.open_connections == [])


async def test_HTTP_09_a_thousand_pipelined_requests_are_answered_in_turn(master: RunningMaster) -> None:
    client = await master.client()
    await client.send(b"GET /status/v1/simple HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
    for _ in range(1000):
        assert (await client.answer()).status == 200


@pytest.mark.parametrize("query", ["instance=---+%21ruby%2Fobject:X", "facts=---+a", "transaction_uuid=---+%5B1%5D"])
async def test_HTTP_15_values_stay_plain_text(agent1: RawClient, shelves: Shelves, query: str) -> None:
    assert (await agent1.ask("GET", f"/production/catalog/agent1?{query}")).status == 200
    assert all(isinstance(value, str) for value in shelves["catalog"].requests[0].options.values())
    assert "instance" not in shelves["catalog"].requests[0].options


@pytest.mark.parametrize("accept", ["../../x", "text/marshal", "application/x-msgpack"])
async def test_HTTP_16_unknown_types_of_answers_are_406(agent1: RawClient, accept: str) -> None:
    assert (await agent1.ask("GET", f"{V3}/node/agent1{ENV}", Accept=accept)).status == 406


@pytest.mark.parametrize("verb", ["find", "save"])
async def test_HTTP_18_an_exception_tells_nothing_but_a_number(master: RunningMaster, shelves: Shelves, verb: str) -> None:
    for shelf in shelves.values():
        shelf.fail = RuntimeError("/very/secret/path")
    client = await master.client("agent1")
    for target in (f"{V3}/catalog/agent1{ENV}", "/production/node/agent1"):
        answer = await client.ask("GET", target)
        client = await master.client("agent1")
        assert answer.status == 500
        shown = answer.text + str(answer.headers)
        assert all(word not in shown for word in ("secret", "Traceback", "RuntimeError", "aiohttp", "Python", ".py"))


async def test_HTTP_18_no_answer_names_the_software(stranger: RawClient) -> None:
    for target in ("/", "/x/y/z", "/metrics", "/metrics/v2/list", "/status/v1/simple", "/status/v1/services", "/puppet/v3/x"):
        answer = await stranger.ask("GET", target)
        assert "server" not in answer.headers
        assert all(word not in answer.text.lower() for word in ("aiohttp", "python", os.uname().nodename.lower()))
    assert (await stranger.ask("GET", "/metrics/v2/list")).status in (403, 404)


@pytest.mark.parametrize("key", ["x%0d%0aSet-Cookie:%20a=b", "%1b[31mred", "a%0ab", "x" * 6000])
async def test_HTTP_19_nothing_is_injected_into_headers_or_logs(agent1: RawClient, caplog: pytest.LogCaptureFixture, key: str) -> None:
    caplog.set_level("INFO")
    for target in (f"{V3}/file_content/modules/{key}{ENV}", f"/production/file_content/modules/{key}", f"/production/node/{key}"):
        answer = await agent1.ask("GET", target)
        assert answer.status in (400, 404)
        assert "set-cookie" not in answer.headers
        assert "\x1b" not in answer.text
    for record in caplog.records:
        line = record.getMessage()
        assert line.isprintable(), line
        assert len(line) < 1000


async def test_HTTP_20_no_parameter_carries_authority(agent1: RawClient, shelves: Shelves) -> None:
    query = "node=agent2&ip=127.0.0.1&authenticated=true&use_node=x&certname=agent2&bucket_path=/etc&fail_on_404=true"
    assert (await agent1.ask("GET", f"{V3}/catalog/agent1{ENV}&{query}")).status == 200
    request = shelves["catalog"].requests[0]
    assert request.options == {"fail_on_404": "true"}
    assert request.client is not None
    assert (request.client.name, request.client.authenticated) == ("agent1", True)


@pytest.mark.parametrize("name", ["../../tmp", "prod;id", "%00", "%EF%BD%81", "x" * 10_000, ""])
async def test_HTTP_20_environments_are_plain_words_that_exist(agent1: RawClient, shelves: Shelves, name: str) -> None:
    assert (await agent1.ask("GET", f"{V3}/node/agent1?environment={name}")).status in (400, 404, 431)
    assert shelves.asked == []


async def test_HTTP_20_the_environment_of_the_path_wins(agent1: RawClient, shelves: Shelves) -> None:
    assert (await agent1.ask("GET", "/production/node/agent1?environment=secret")).status == 200
    form = b"environment=secret"
    kind = "application/x-www-form-urlencoded"
    assert (await agent1.ask("POST", "/production/node/agent1", form, Content_Type=kind)).status == 200
    assert [request.environment for request in shelves["node"].requests] == ["production"] * 2


FORM = "application/x-www-form-urlencoded"
ONCE = {"catalog": ("facts", "facts_format", "transaction_uuid", "static_catalog"), "node": ("configured_environment",)}
ONCE |= {"file_bucket_file": ("diff_with",), "file_content": ("links",)}


@pytest.mark.parametrize("scheme", [V3, "/production"])
@pytest.mark.parametrize(("indirection", "name"), [(kind, name) for kind, names in ONCE.items() for name in (*names, "environment")])
async def test_HTTP_22_a_parameter_that_may_stand_once_is_refused_twice(
    agent1: RawClient, shelves: Shelves, scheme: str, indirection: str, name: str
) -> None:
    key = {"file_bucket_file": "md5/" + "0" * 32, "file_content": "modules/m/a"}.get(indirection, "agent1")
    target, own = f"{scheme}/{indirection}/{key}", ENV if scheme == V3 and name != "environment" else "?x=y"
    for twice in (f"{name}=production&{name}=production", f"{name}=production&{name}[]=other", f"{name}=&{name}="):
        answer = await agent1.ask("GET", f"{target}{own}&{twice}")
        assert (answer.status, f"The parameter {name} appears more than once" in answer.text) == (400, True), answer
        answer = await agent1.ask("POST", f"{target}{own}", twice.encode(), Content_Type=FORM)
        assert answer.status == 400, answer
    if name != "environment":
        assert (await agent1.ask("POST", f"{target}{own}&{name}=a", f"{name}=b".encode(), Content_Type=FORM)).status == 400
    assert shelves.asked == []


async def test_HTTP_22_query_and_form_may_name_the_same_environment_as_agents_do_and_no_other(agent1: RawClient, shelves: Shelves) -> None:
    for form, status in ((b"environment=production", 200), (b"environment=secret", 400)):
        assert (await agent1.ask("POST", f"{V3}/node/agent1{ENV}", form, Content_Type=FORM)).status == status
    assert (await agent1.ask("POST", f"{V3}/node/agent1", b"environment=secret", Content_Type=FORM)).status == 200
    assert [request.environment for request in shelves["node"].requests] == ["production", "secret"]


@pytest.mark.parametrize("name", ["puppet", "status", "metrics"])
async def test_HTTP_23_reserved_words_are_environments_in_neither_scheme(start: Start, shelves: Shelves, name: str) -> None:
    async with start(environments=KnownEnvironments([name, "production"])) as master:
        client = await master.client("agent1")
        for method, target, body in (
            ("GET", f"{V3}/node/agent1?environment={name}", b""),
            ("POST", f"{V3}/node/agent1", f"environment={name}".encode()),
            ("GET", f"/{name}/node/agent1", b""),
        ):
            answer = await client.ask(method, target, body, **({"Content_Type": FORM} if body else {}))
            assert answer.status == (400 if target.startswith(V3) else 404), answer
    assert shelves.asked == []


async def test_R_18_beyond_the_queue_503_with_a_random_delay(start: Start, shelves: Shelves) -> None:
    gate = asyncio.Event()

    class Slow(Shelf[Any]):
        async def find(self, request: Any) -> Any:
            await gate.wait()
            return await super().find(request)

    slow = Slow()
    slow.instances = shelves["catalog"].instances
    shelves["catalog"] = slow
    delays = iter(range(100, 200))
    async with start({"max_active_requests": 1, "max_queued_requests": 1}, retry_delay=lambda most: min(most, next(delays))) as master:
        clients = [await master.client("agent1") for _ in range(4)]
        asked = [asyncio.create_task(client.ask("GET", f"{V3}/catalog/agent1{ENV}")) for client in clients]
        await until(lambda: sum(task.done() for task in asked) == 2)
        refused = [task.result() for task in asked if task.done()]
        assert [answer.status for answer in refused] == [503, 503]
        assert sorted(answer.headers["retry-after"] for answer in refused) == ["100", "101"]
        fresh = await master.client()
        assert (await fresh.ask("GET", "/status/v1/simple")).text == "running"
        gate.set()
        assert sorted(answer.status for answer in await asyncio.gather(*asked)) == [200, 200, 503, 503]
        assert json.loads(next(a for a in await asyncio.gather(*asked) if a.status == 200).body)["name"] == "agent1"


async def test_R_18_one_client_cannot_take_all_slots(start: Start, shelves: Shelves) -> None:
    async with start({"max_client_requests": 2, "body_timeout": 5}) as master:
        head = f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        for _ in range(2):
            slow = await master.client("agent1")
            await slow.send(head.encode())
        await until(lambda: master.server.application.admission.active == 2)
        third = await master.client("agent1")
        answer = await third.ask("GET", f"{V3}/node/agent1{ENV}")
        assert answer.status == 503
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        other = await master.client("agent2")
        assert (await other.ask("GET", f"{V3}/node/agent2{ENV}")).status == 200
