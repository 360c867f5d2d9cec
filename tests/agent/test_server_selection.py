"""`server_list`: which of several masters a run talks to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.selection import selected, sites
from agent.sites import Site
from agent.testing import Reply
from shared.errors import ConfigError, PeerError
from shared.settings import AgentSettings, Conf, load
from tests.scripted_master import Scripted


def settings(**flags: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "a", **flags}, conf=Conf())


def test_servers_may_name_their_port() -> None:
    assert sites(["a", "b:8141", "[::1]:8142", "[::2]"], 8140) == [Site("a", 8140), Site("b", 8141), Site("::1", 8142), Site("::2", 8140)]


@pytest.mark.parametrize("entry", ["a:", ":8140", "a:x", "a:70000"])
def test_what_is_no_server_is_named(entry: str) -> None:
    with pytest.raises(ConfigError, match="is not a server"):
        sites([entry], 8140)


async def test_the_first_that_answers_is_used_for_all_that_follows_the_server() -> None:
    asked: list[str] = []

    async def answers(site: Site) -> bool:
        asked.append(str(site))
        return site.host == "b"

    chosen = await selected(settings(server_list="a,b:8141,c", report_server="reports"), answers)
    assert asked == ["a:8140", "b:8141"]
    assert (chosen.server, chosen.masterport, chosen.ca_server, chosen.ca_port) == ("b", 8141, "b", 8141)
    assert (chosen.report_server, chosen.report_port) == ("reports", 8140)


async def test_without_a_list_nobody_is_asked() -> None:
    async def never(site: Site) -> bool:
        raise AssertionError(site)

    assert (await selected(settings(server="x"), never)).server == "x"


async def test_none_that_answers_is_an_error() -> None:
    async def no(site: Site) -> bool:
        return False

    with pytest.raises(PeerError, match="Could not select a functional puppet server from server_list: 'a,b'"):
        await selected(settings(server_list="a,b"), no)


async def test_a_run_skips_a_master_that_is_away(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/status/v1/simple": Reply(body=b"running")})
    async with site.master.running():
        agent = site.agent(server="unused.test", server_list=f"localhost:1,localhost:{site.master.port}")
        assert await agent.once() == 0
    assert site.asked()[0] == "GET /status/v1/simple"
    assert site.asked()[-1].startswith("PUT /puppet/v3/report/")
