"""Masters that DNS names, by a small DNS server on this machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.process.agent import Agent, RunOptions
from agent.servers.selection import ServerSelection
from agent.servers.sites import Site
from agent.servers.srv import SrvRecord, sites_in_order
from shared.settings import AgentSettings, Conf, load
from tests.support.dns_server import DOMAIN, Dns
from tests.support.fake_server import Reply
from tests.support.scripted_master import NAME, Scripted, reply, root_entry


def least(low: int, high: int) -> int:
    return low


def settings(**flags: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "a", "use_srv_records": "true", **flags}, conf=Conf())


# --- in which order


def test_the_smallest_priority_comes_first() -> None:
    records = [SrvRecord(20, 0, Site("c", 1)), SrvRecord(10, 0, Site("b", 1)), SrvRecord(5, 0, Site("a", 1))]
    assert [site.host for site in sites_in_order(records)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("marks", "hosts"),
    [([0, 0, 0], "abc"), ([4, 1, 0], "cba"), ([1, 0, 0], "bac"), ([3, 0, 0], "bac"), ([4, 0, 0], "cab")],
)
def test_within_a_priority_the_mark_falls_into_a_weight(marks: list[int], hosts: str) -> None:
    # Weights 0, 3 and 7, in this order: a is met by 0 alone, b by 1 to 3, c by 4 to 10.
    pending = list(marks)
    records = [SrvRecord(1, 3, Site("b", 1)), SrvRecord(1, 0, Site("a", 1)), SrvRecord(1, 7, Site("c", 1))]
    assert "".join(site.host for site in sites_in_order(records, lambda low, high: min(pending.pop(0), high))) == hosts


def test_weights_are_kept_over_many_choices() -> None:
    records = [SrvRecord(1, 10, Site("a", 1)), SrvRecord(1, 30, Site("b", 1)), SrvRecord(1, 0, Site("c", 1))]
    first = Counter(sites_in_order(records)[0].host for _ in range(4000))
    assert 2 < first["b"] / first["a"] < 4.5
    assert 0 < first["c"] < 400


# --- what is asked


async def test_records_are_found_by_service_and_those_of_the_master_count_for_what_has_none() -> None:
    server = Dns({f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, 8140, "M1.test.")], f"_x-puppet-ca._tcp.{DOMAIN}.": [(1, 0, 8141, "ca.test.")]})
    async with server.running():
        srv = server.srv()
        assert await srv.sites("puppet") == [Site("m1.test", 8140)]
        assert await srv.sites("ca") == [Site("ca.test", 8141)]
        assert await srv.sites("report") == [Site("m1.test", 8140)]
    assert server.asked == [f"{label}._tcp.{DOMAIN}." for label in ("_x-puppet", "_x-puppet-ca", "_x-puppet-report")]


async def test_an_answer_is_kept_as_long_as_it_says() -> None:
    times = iter([100.0, 100.0, 129.0, 131.0, 131.0])
    server = Dns({f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, 8140, "m1.test.")]}, ttl=30)
    async with server.running():
        srv = server.srv(clock=lambda: next(times))
        for questions in (1, 1, 2):
            await srv.sites("puppet")
            assert len(server.asked) == questions


@pytest.mark.parametrize("records", [{}, {f"_x-puppet._tcp.{DOMAIN}.": [(0, 0, 0, ".")]}], ids=["no records", "decidedly none"])
async def test_a_domain_without_masters_names_none(records: dict[str, Any]) -> None:
    async with Dns(records).running() as server:
        assert await server.srv().sites("puppet") == []


@pytest.mark.slow
async def test_nobody_who_answers_is_said_and_ends(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.servers.srv.LOOKUP_SECONDS", 0.3)
    async with Dns(silent=True).running() as server:
        assert await server.srv().sites("puppet") == []
    assert f"Could not look up the SRV records _x-puppet._tcp.{DOMAIN}." in caplog.text


# --- what is chosen


async def test_the_first_that_answers_is_used_for_each_service() -> None:
    tried: list[str] = []

    async def answers(site: Site) -> bool:
        tried.append(site.host)
        return site.host != "m1.test"

    records = {
        f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, 8140, "m1.test."), (2, 0, 8150, "m2.test.")],
        f"_x-puppet-ca._tcp.{DOMAIN}.": [(1, 0, 8141, "ca.test.")],
    }
    async with Dns(records).running() as server:
        chosen = await ServerSelection(settings(server_list="unused"), answers, srv=server.srv(chance=least)).settings_with_servers()
    assert (chosen.server, chosen.masterport) == ("m2.test", 8150)
    assert (chosen.ca_server, chosen.ca_port) == ("ca.test", 8141)
    assert (chosen.report_server, chosen.report_port) == ("m2.test", 8150)
    assert tried == ["m1.test", "m2.test", "ca.test"]


async def test_without_one_that_answers_the_settings_hold() -> None:
    async def answers(site: Site) -> bool:
        return site.host == "b"

    async with Dns({f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, 8140, "m1.test.")]}).running() as server:
        chosen = await ServerSelection(settings(server_list="a,b"), answers, srv=server.srv()).settings_with_servers()
        assert (chosen.server, chosen.ca_server) == ("b", "b")
        assert (await ServerSelection(settings(server="x"), answers, srv=server.srv()).settings_with_servers()).server == "x"


async def test_a_ca_of_dns_that_is_away_is_that_of_the_list() -> None:
    async def answers(site: Site) -> bool:
        return site.host != "ca.test"

    records = {f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, 8140, "m1.test.")], f"_x-puppet-ca._tcp.{DOMAIN}.": [(1, 0, 8141, "ca.test.")]}
    async with Dns(records).running() as server:
        chosen = await ServerSelection(settings(server_list="a"), answers, srv=server.srv()).settings_with_servers()
    assert (chosen.server, chosen.ca_server, chosen.report_server) == ("m1.test", "a", "m1.test")


async def test_without_the_setting_nobody_is_asked() -> None:
    async with Dns().running() as server:
        await ServerSelection(settings(use_srv_records="false"), _never, srv=server.srv()).settings_with_servers()
    assert server.asked == []


async def _never(site: Site) -> bool:
    raise AssertionError(site)


@pytest.mark.parametrize("away", [True, False], ids=["the first is away", "the first is there"])
async def test_a_run_goes_to_the_master_that_dns_names(tmp_path: Path, away: bool) -> None:
    site = Scripted(tmp_path, {"/status/v1/simple": Reply(body=b"running")})
    async with site.master.running():
        port = site.master.port
        records = {f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, 1 if away else port, "localhost."), (2, 0, port, "localhost.")]}
        async with Dns(records).running() as server:
            flags = site.settings(server="unused.test", use_srv_records="true", srv_domain=DOMAIN)
            assert await Agent(flags, RunOptions(), tell=lambda text: None, srv=server.srv()).run_once() == 0
    assert site.asked()[-1].startswith("PUT /puppet/v3/report/")
    labels = ("_x-puppet", "_x-puppet-ca", "_x-puppet-report", "_x-puppet-fileserver")
    assert server.asked == [f"{label}._tcp.{DOMAIN}." for label in labels]  # once each; there is nothing that the CA has to be asked


async def test_a_host_without_a_certificate_asks_the_ca_that_dns_names(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {}, certified=False)
    site.answers = {"/certificate/ca": Reply(body=site.ca.pem), "_revocation_list/": Reply(body=site.ca.crl_pem()), "_request/": Reply()}
    async with site.master.running():
        records = {f"_x-puppet-ca._tcp.{DOMAIN}.": [(1, 0, 1, "localhost."), (2, 0, site.master.port, "localhost.")]}
        async with Dns(records).running() as server:
            flags = site.settings(server="unused.test", use_srv_records="true", srv_domain=DOMAIN, waitforcert=0)
            assert await Agent(flags, RunOptions(), tell=lambda text: None, srv=server.srv()).run_once() == 1
    asked = site.asked()
    assert asked[0] == "GET /status/v1/simple" and f"PUT /puppet-ca/v1/certificate_request/{NAME}" in asked
    assert server.asked == [f"_x-puppet-ca._tcp.{DOMAIN}."]


async def test_files_come_from_the_file_server_that_dns_names(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    site = Scripted(tmp_path)
    files = Scripted(tmp_path / "files", {"/file_metadatas/": reply([root_entry()])}, ca=site.ca)
    async with site.master.running(), files.master.running():
        records = {
            f"_x-puppet._tcp.{DOMAIN}.": [(1, 0, site.master.port, "localhost.")],
            f"_x-puppet-fileserver._tcp.{DOMAIN}.": [(1, 0, files.master.port, "localhost.")],
        }
        async with Dns(records).running() as server:
            flags = site.settings(use_srv_records="true", srv_domain=DOMAIN)
            assert await Agent(flags, RunOptions(), tell=lambda text: None, srv=server.srv()).run_once() == 0
    assert [path for path in files.asked() if "file" in path] == [
        f"GET /puppet/v3/file_metadatas/{each}" for each in ("pluginfacts", "plugins")
    ]
    assert not [path for path in site.asked() if "file" in path]
