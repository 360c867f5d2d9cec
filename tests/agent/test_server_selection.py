"""`server_list`: which of several masters a run talks to."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from agent.servers.selection import ServerSelection, locate_ca, parse_server_list
from agent.servers.sites import Site
from shared.errors import ConfigError, PeerError
from shared.settings import AgentSettings, Conf, load
from tests.support.fake_server import Reply
from tests.support.scripted_master import NAME, Scripted


def settings(**flags: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "a", **flags}, conf=Conf())


def test_servers_may_name_their_port() -> None:
    assert parse_server_list(["a", "b:8141", "[::1]:8142", "[::2]"], 8140) == [
        Site("a", 8140),
        Site("b", 8141),
        Site("::1", 8142),
        Site("::2", 8140),
    ]


@pytest.mark.parametrize("entry", ["a:", ":8140", "a:x", "a:70000"])
def test_what_is_no_server_is_named(entry: str) -> None:
    with pytest.raises(ConfigError, match="is not a server"):
        parse_server_list([entry], 8140)


async def test_the_first_that_answers_is_used_for_all_that_follows_the_server() -> None:
    asked: list[str] = []

    async def answers(site: Site) -> bool:
        asked.append(str(site))
        return site.host == "b"

    chosen = await ServerSelection(settings(server_list="a,b:8141,c", report_server="reports"), answers).settings_with_servers()
    assert asked == ["a:8140", "b:8141"]
    assert (chosen.server, chosen.masterport, chosen.ca_server, chosen.ca_port) == ("b", 8141, "b", 8141)
    assert (chosen.report_server, chosen.report_port) == ("reports", 8140)


async def test_a_server_that_somebody_has_set_is_not_of_the_list_even_if_it_is_the_default() -> None:
    async def answers(site: Site) -> bool:
        return site.host == "b"

    chosen = await ServerSelection(settings(server_list="b", ca_server="puppet"), answers).settings_with_servers()
    assert (chosen.server, chosen.ca_server, chosen.report_server) == ("b", "puppet", "b")


async def test_who_needs_no_server_of_the_list_does_not_fail_by_it() -> None:
    async def no(site: Site) -> bool:
        raise AssertionError(site)

    selection = ServerSelection(settings(server_list="a,b", report_server="reports", report_port="8150"), no)
    assert await selection.site("report") == Site("reports", 8150)


async def test_without_a_list_nobody_is_asked() -> None:
    async def never(site: Site) -> bool:
        raise AssertionError(site)

    assert (await ServerSelection(settings(server="x"), never).settings_with_servers()).server == "x"


async def test_none_that_answers_is_an_error() -> None:
    async def no(site: Site) -> bool:
        return False

    with pytest.raises(PeerError, match="Could not select a functional puppet server from server_list: 'a,b'"):
        await ServerSelection(settings(server_list="a,b"), no).settings_with_servers()


async def test_a_run_skips_a_master_that_is_away(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/status/v1/simple": Reply(body=b"running")})
    async with site.master.running():
        agent = site.agent(server="unused.test", server_list=f"localhost:1,localhost:{site.master.port}")
        assert await agent.run_once() == 0
    assert site.asked()[0] == "GET /status/v1/simple/server"
    assert site.asked()[-1].startswith("PUT /puppet/v3/report/")


VERSION = {"X-Puppet-Version": "5.5.22"}
READINESS = {
    "7 and later": ({"/simple/server": Reply(body=b"running")}, ["server"], True),
    "7 and later, whose CA alone is ill": ({"/simple/server": Reply(body=b"running"), "/status/": Reply(503, b"error")}, ["server"], True),
    "7 and later, starting": ({"/simple/server": Reply(503, b"starting", VERSION), "/status/": Reply(body=b"running")}, ["server"], False),
    "a puppetserver before 7": ({"/simple/master": Reply(body=b"running")}, ["server", "master"], True),
    "a puppetserver before 7, starting": ({"/simple/master": Reply(503, b"starting")}, ["server", "master"], False),
    "a master in Ruby": ({"/status/": Reply(404, b"not here", VERSION)}, ["server", "master"], True),
    "no Puppet server": ({}, ["server", "master"], False),
}


@pytest.mark.parametrize(("answers", "pages", "is_chosen"), READINESS.values(), ids=READINESS.keys())
async def test_a_server_of_the_list_is_asked_whether_it_can_serve_agents(
    tmp_path: Path, answers: dict[str, Reply], pages: list[str], is_chosen: bool
) -> None:
    site = Scripted(tmp_path, dict(answers))
    async with site.master.running():
        code = await site.agent(server="unused.test", server_list=f"localhost:{site.master.port}", usecacheonfailure=False).run_once()
    probes = [f"GET /status/v1/simple/{page}" for page in pages]
    assert site.asked()[: len(probes)] == probes
    assert (len(site.asked()) > len(probes)) == is_chosen == (code == 0)


async def test_a_first_contact_skips_a_master_that_says_it_is_not_running(tmp_path: Path) -> None:
    (tmp_path / "starting").mkdir()
    site = Scripted(tmp_path, certified=False)
    site.answers = {
        "/status/": Reply(body=b"running"),
        "/certificate/ca": Reply(body=site.ca.pem),
        "_revocation_list/": Reply(body=site.ca.crl_pem()),
        "_request/": Reply(),
    }
    starting = Scripted(tmp_path / "starting", {"/status/": Reply(503, b"starting", {"X-Puppet-Version": "7.23.0"})}, ca=site.ca)
    async with site.master.running(), starting.master.running():
        servers = f"localhost:{starting.master.port},localhost:{site.master.port}"
        assert await site.agent(server="unused.test", server_list=servers, waitforcert=0).run_once() == 1  # nobody has signed it
    assert starting.asked() == ["GET /status/v1/simple/server"]
    assert f"PUT /puppet-ca/v1/certificate_request/{NAME}" in site.asked()


async def test_a_refresh_of_the_revocations_goes_to_the_server_of_the_list(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/status/": Reply(body=b"running")})
    site.answers["_revocation_list/"] = Reply(body=site.ca.crl_pem())
    crl = site.agent_root / "ssl/crl.pem"
    os.utime(crl, (0, 0))
    async with site.master.running():
        agent = site.agent(server="unused.test", server_list=f"localhost:{site.master.port}", crl_refresh_interval="1d")
        assert await agent.run_once() == 0
    assert "GET /puppet-ca/v1/certificate_revocation_list/ca" in site.asked()
    assert crl.stat().st_mtime > 0


async def test_without_a_server_that_answers_the_cached_catalog_is_applied_however_old_the_revocations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Scripted(tmp_path)
    assert await site.run() == 0
    os.utime(site.agent_root / "ssl/crl.pem", (0, 0))
    assert await site.agent(server_list="localhost:1", crl_refresh_interval="1d").run_once() == 0
    assert "Nothing was refreshed: Could not select a functional puppet server" in caplog.text


async def test_whether_a_server_is_there_is_asked_through_the_proxy(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    site = Scripted(tmp_path, certified=False)
    given = site.settings(masterport=8141, server_list="master.test", http_proxy_host="127.0.0.1", http_proxy_port=port)
    async with server:
        with pytest.raises(PeerError):
            await locate_ca(given)
    assert set(asked) == {b"CONNECT master.test:8141 HTTP/1.1\r\n"}
