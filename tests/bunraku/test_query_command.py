"""`puppet query`: which server is asked, how rows are shown, and how a wrong query is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bunraku.commands.query import columns_of, table_lines
from tests.support.command_line import Puppet, Said
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa

QUERY = "nodes[certname, report_timestamp, deactivated] { order by certname }"
ROWS = [
    {"deactivated": None, "report_timestamp": "2025-11-11T10:00:40.000Z", "certname": "db1.example.com"},
    {"deactivated": None, "report_timestamp": None, "certname": "web1.example.com"},
]
NAME = "node1.example.com"


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This machine's own configuration of client tools does not count."""
    monkeypatch.setattr("bunraku.stores.servers.CLIENT_TOOLS", (tmp_path / "client-tools.conf",))


def answer(ask: Ask) -> Reply:
    if ask.path == "/status/v1/simple":
        return Reply(body=b"running")
    return Reply(body=json.dumps(ROWS).encode(), headers={"Content-Type": "application/json"})


@asynccontextmanager
async def listening(
    answers: Callable[[Ask], Reply] = answer, ca: ThrowAwayCa | None = None, root: Path | None = None
) -> AsyncIterator[FakeMaster]:
    """A server in clear text, or over TLS with a certificate of the CA, whose files go to `root`."""
    server = FakeMaster(ca.serving(root) if ca is not None and root is not None else None, answers)
    async with server.running():
        yield server


async def ask(puppet: Puppet, *words: str) -> Said:
    return await asyncio.to_thread(puppet, "query", *words)


async def test_a_table_has_the_columns_in_the_order_of_the_query(puppet: Puppet) -> None:
    async with listening() as server:
        said = await ask(puppet, "--table", "--url", f"http://127.0.0.1:{server.port}", QUERY)
    assert (said.code, said.err) == (0, "2 rows\n")
    assert said.out.splitlines() == [
        "certname          report_timestamp          deactivated",
        "----------------  ------------------------  -----------",
        "db1.example.com   2025-11-11T10:00:40.000Z",
        "web1.example.com",
    ]
    assert json.loads(server.asked[-1].body) == {"query": QUERY} and server.asked[-1].target == "/pdb/query/v4"


async def test_rows_are_printed_as_json_where_nobody_reads_them_on_a_terminal(puppet: Puppet) -> None:
    async with listening() as server:
        said = await ask(puppet, "--url", f"http://127.0.0.1:{server.port}", QUERY)
    assert (said.code, said.err, json.loads(said.out)) == (0, "", ROWS)


async def test_a_wrong_query_is_shown_with_a_caret_under_the_place(puppet: Puppet) -> None:
    text = "PQL parse error at line 1, column 7:\n\nnodes{\n      ^\n\nExpected one of:\n\n}\n"
    async with listening(lambda ask: Reply(400, text.encode()) if ask.method == "POST" else answer(ask)) as server:
        said = await ask(puppet, "--url", f"http://127.0.0.1:{server.port}", "nodes{")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[:4] == ["Error: PQL parse error at line 1, column 7:", "", "nodes{", "      ^"]


async def test_the_first_server_that_runs_is_asked_over_tls_with_this_hosts_certificate(puppet: Puppet, tmp_path: Path) -> None:
    ca = ThrowAwayCa.new()
    ca.ssldir(puppet.conf / "ssl", NAME)
    async with listening(ca=ca, root=tmp_path) as server, listening(lambda ask: Reply(503, b"starting"), ca, tmp_path) as starting:
        urls = f"https://localhost:1,https://localhost:{starting.port},https://localhost:{server.port}"
        said = await ask(puppet, "--urls", urls, QUERY)
    assert (said.code, said.err, json.loads(said.out)) == (0, "", ROWS)
    assert server.asked[-1].certname == NAME and starting.asked[-1].path == "/status/v1/simple"


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "the store of this host"])
async def test_a_socket_on_this_host_is_a_server(puppet: Puppet, tmp_path: Path, is_named: bool) -> None:
    socket = tmp_path / "rundir/store.sock"
    socket.parent.mkdir()
    async with FakeMaster(None, answer, socket=socket).running():
        said = await ask(puppet, *(["--url", f"unix:{socket}"] if is_named else []), QUERY)
    assert (said.code, json.loads(said.out)) == (0, ROWS)


async def test_a_server_of_another_ca_gets_no_query(puppet: Puppet, tmp_path: Path) -> None:
    ThrowAwayCa.new().ssldir(puppet.conf / "ssl", NAME)
    async with listening(ca=ThrowAwayCa.new("another"), root=tmp_path) as server:
        said = await ask(puppet, "--url", f"https://localhost:{server.port}", QUERY)
    assert said.code == 1 and "certificate verify failed" in said.err and not server.asked


async def test_the_servers_of_puppetdb_conf_are_asked_where_nothing_else_names_any(puppet: Puppet, tmp_path: Path) -> None:
    ca = ThrowAwayCa.new()
    ca.ssldir(puppet.conf / "ssl", NAME)
    async with listening(ca=ca, root=tmp_path) as server:
        (puppet.conf / "puppetdb.conf").write_text(f"[main]\nserver_urls = https://localhost:{server.port}\n")
        said = await ask(puppet, QUERY)
    assert (said.code, json.loads(said.out), server.asked[-1].certname) == (0, ROWS, NAME)


@pytest.mark.parametrize("urls", ["http://127.0.0.1:PORT", ["http://127.0.0.1:PORT/"]], ids=["a text", "a list"])
async def test_the_configuration_of_the_client_tools_comes_first(puppet: Puppet, tmp_path: Path, urls: Any) -> None:
    (puppet.conf / "puppetdb.conf").write_text("[main]\nserver_urls = https://unused.test\n")
    async with listening() as server:
        text = json.dumps({"puppetdb": {"server_urls": urls}}).replace("PORT", str(server.port))
        (tmp_path / "client-tools.conf").write_text(text)
        said = await ask(puppet, QUERY)
    assert (said.code, json.loads(said.out)) == (0, ROWS)


WRONG = {
    "no query": ([], "takes one query"),
    "a query without quotes": (["nodes", "{}"], "takes one query"),
    "no URL": (["--url", "ftp://x", "nodes{}"], "is no URL of a server"),
    "a path in a URL": (["--url", "https://x/pdb", "nodes{}"], "is no URL of a server"),
    "nobody there": (["--url", "http://127.0.0.1:1", "nodes{}"], "Could not connect to http://127.0.0.1:1"),
    "no store and no rights": (["nodes{}"], "store.sock that this account may use, and neither puppetdb.conf nor --url names a server"),
    "no socket": (["--url", "unix:/nonexistent", "nodes{}"], "Could not connect to unix:/nonexistent"),
}


@pytest.mark.parametrize("words, message", WRONG.values(), ids=WRONG)
def test_a_call_that_cannot_succeed_is_an_error(puppet: Puppet, words: list[str], message: str) -> None:
    said = puppet("query", *words)
    assert said.code == 1 and message in said.err and "Traceback" not in said.err


@pytest.mark.parametrize("text", ["{", "[]", '{"puppetdb": 1}'])
def test_a_configuration_that_cannot_be_read_is_an_error(puppet: Puppet, tmp_path: Path, text: str) -> None:
    (tmp_path / "client-tools.conf").write_text(text)
    said = puppet("query", "nodes{}")
    assert said.code == 1 and "client-tools.conf" in said.err


COLUMNS = {
    "nodes{}": [],
    "nodes[certname, report_timestamp]{}": ["certname", "report_timestamp"],
    "nodes[count(), latest_report_status]{ group by latest_report_status }": ["count", "latest_report_status"],
    '["from", "nodes"]': [],
    "no query": [],
}


@pytest.mark.parametrize("query", COLUMNS)
def test_the_columns_of_a_query(query: str) -> None:
    assert columns_of(query) == COLUMNS[query]


def test_a_table_cuts_long_values_and_shows_structures_as_json() -> None:
    rows: list[dict[str, Any]] = [{"name": "os", "value": {"family": "Debian"}, "text": "a\x1b[1m\nb"}, {"name": "x" * 70, "value": True}]
    assert table_lines(rows, ["name", "value", "text"])[2:] == [
        f'{"os":<60}  {{"family":"Debian"}}  a\\x1b[1m\\nb',
        f"{'x' * 59}…  true",
    ]
