"""
Rollouts of two masters: a node gets the version of its wave at either of them, and each of them may be killed. Four nodes that enrol, and
a fleet of 1,000.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from master.reports.database import DatabaseReports
from master.rollouts.waves import place_of
from master.termini.database import DatabaseTerminus
from shared.indirector import Request
from shared.models.facts import FACTS, Facts
from shared.state.database import StateDatabase
from shared.state.tables import facts
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.processes import MasterProcess, master
from tests.support.simulated_agents import CATALOG, JSON, Record, Server, SimulatedAgent, report_of, with_certificates
from tests.support.waiting import until

pytestmark = [
    needs_git,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.works_with("Deployment and tools for code", "rollouts of two masters, each of which is killed meanwhile"),
]
SITE = "file { '/tmp/motd': content => 'TEXT' }\n"
FIRST = [name for number in range(40) if place_of(name := f"agent{number}") < 50][:2]
SECOND = [name for number in range(40) if place_of(name := f"agent{number}") >= 50][:2]


class Node(SimulatedAgent):
    """A node whose run is a catalog and a report, as an old agent sends it: without the version."""

    async def get(self, at: MasterProcess, *, fails: bool = False, attribute: str = "content") -> str:
        """Do a run at a master, which changes or fails to change an attribute of the file; return the content in its catalog."""
        self.server = Server(at.port, ca_port=at.port, timeout=60)
        target, number = f"{self.certname}?environment=production", str(uuid4())
        answer = await self._ask("catalog", "POST", f"/puppet/v3/catalog/{target}", self._asked(number), CATALOG)
        catalog = orjson.loads(answer.body)
        report = report_of(catalog, self.certname, number)
        event = {"property": attribute, "status": "failure" if fails else "success", "message": "read-only file system"}
        report["resource_statuses"]["File[/tmp/motd]"] |= {"failed": fails, "changed": not fails, "events": [event]}
        report["status"] = "failed" if fails else "changed"
        await self._ask("report", "PUT", f"/puppet/v3/report/{target}", orjson.dumps(report), kind=JSON)
        await self.close()
        file = next(each for each in catalog["resources"] if each["type"] == "File")
        return str(file["parameters"]["content"])


@dataclass
class Site:
    """Two masters whose production is a version, and nodes that have run with it."""

    repository: ControlRepository
    masters: list[MasterProcess]
    agents: Path = Path()
    nodes: dict[str, Node] = field(default_factory=dict)

    def node(self, name: str) -> Node:
        if name not in self.nodes:
            self.nodes[name] = Node(name, self.agents, Server(self.masters[0].port, ca_port=self.masters[0].port), Record())
        return self.nodes[name]

    async def run(self, names: list[str], *, at: MasterProcess, fails: bool = False) -> list[str]:
        return [await self.node(name).get(at, fails=fails) for name in names]

    def start(self, text: str, at: MasterProcess, waves: str = "50%; 100%") -> None:
        self.repository.commit({"manifests/site.pp": SITE.replace("TEXT", text)})
        started = at.puppet("rollout", "start", "production", f"--waves={waves}", "--wait=0")
        assert started.code == 0 and "is progressing, wave " in started, started.text

    def status(self, at: MasterProcess) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(at.puppet("rollout", "status", "production", "--json").text)
        return status

    def link(self, at: MasterProcess) -> str:
        return (at.site / "manifests/site.pp").read_text()


@pytest.fixture
async def site(tmp_path: Path, state_url: str) -> AsyncIterator[Site]:
    repository = ControlRepository(tmp_path / "control")
    repository.commit({"manifests/site.pp": SITE.replace("TEXT", "one")})
    settings = {"key_type": "ec", "state": state_url, "autosign": "true", "dns_alt_names": "localhost"}
    with ExitStack() as ends:
        masters = []
        for name in ("master1.test", "master2.test"):
            conf = tmp_path / name / "conf"
            (conf / "code" / "environments").mkdir(parents=True)
            lines = [f"state = {state_url}", f"certname = {name}", f"deploy_repository = {repository.folder}"]
            (conf / "puppet.conf").write_text("\n".join(["[master]", *lines, ""]))
            masters.append(ends.enter_context(master(tmp_path / name, certname=name, **settings)))
        for each in masters:
            if each is not masters[0]:
                each.ca.mkdir(parents=True)
                shutil.copy(masters[0].ca / "ca_key.pem", each.ca)
            each.start()
            each.site.rmdir()  # which the test's process has made
        site = Site(repository, masters)
        deployed = masters[0].puppet("deploy", "production")
        assert deployed.code == 0, deployed.text
        (tmp_path / "agents").mkdir()
        shutil.copy(masters[0].ca / "ca_crt.pem", tmp_path / "agents" / "ca.pem")
        site.agents = tmp_path / "agents"
        yield site


async def test_waves_hold_at_both_masters_and_one_is_enough_to_go_on(site: Site) -> None:
    one, other = site.masters
    for name in (*FIRST, *SECOND):
        await site.node(name).bootstrap()
    for each in site.masters:
        assert await site.run([*FIRST, *SECOND], at=each) == ["one"] * 4
    site.start("two", at=other)
    assert await site.run([FIRST[0], SECOND[0]], at=one) == ["two", "one"]
    one.kill()
    assert await site.run([SECOND[0], FIRST[0], FIRST[1]], at=other) == ["one", "two", "two"]
    assert await site.run(SECOND, at=other) == ["two", "two"]
    # The one that was killed counts as living for a moment.
    await until(lambda: site.status(other)["status"] == "completed")
    assert site.link(other) == SITE.replace("TEXT", "two")
    one.start()
    await until(lambda: site.link(one) == SITE.replace("TEXT", "two"))

    site.start("three", at=one)
    other.kill()
    assert await site.run([FIRST[1]], at=one, fails=True) == ["three"]
    other.start()
    one.kill()
    status = site.status(other)
    assert (status["status"], status["problems"][0]["nodes"]) == ("stopped", [FIRST[1]])
    assert await site.run([*FIRST, *SECOND], at=other) == ["two", "three", "two", "two"]
    assert other.puppet("rollout", "abort", "production").code == 0
    assert await site.run([*FIRST, *SECOND], at=other) == ["two"] * 4
    for each in (one, other):
        assert "Traceback" not in each.log


FLEET = [f"node{number}.test" for number in range(1000)]
BROKEN = set(FLEET[7::33])
WAVES = (1, 10, 100)


@dataclass
class Fleet:
    """A thousand nodes, whose requests go to the masters that live by turns."""

    site: Site
    living: list[MasterProcess]
    got: dict[str, str] = field(default_factory=dict)

    async def run(self, names: Iterable[str], fails: Collection[str] = (), attribute: str = "content") -> None:
        """Let nodes run, many at the same time; keep the content that each got."""
        turns, room = itertools.cycle(self.living), asyncio.Semaphore(16)

        async def run(name: str, at: MasterProcess) -> None:
            async with room:
                self.got[name] = await self.site.node(name).get(at, fails=name in fails, attribute=attribute)

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(run(name, next(turns)))

    def with_content(self, text: str) -> set[str]:
        return {name for name, content in self.got.items() if content == text}


def below(share: float) -> set[str]:
    return {name for name in FLEET if place_of(name) < share}


async def store_nodes(address: str) -> None:
    """Store the facts of all nodes, and reports of runs that have just ended."""
    database, now = StateDatabase.open(address), datetime.now(UTC)
    terminus, reports = DatabaseTerminus(FACTS, facts, database), DatabaseReports(database)
    for name in FLEET:
        await terminus.save(Request(name, body=Facts(name=name, values={"fqdn": name})))
        await reports.write(name, now, f"host: {name}\nstatus: unchanged\n".encode())
    await database.close()


@pytest.mark.alone
async def test_a_fleet_of_a_thousand_nodes_gets_what_is_good_and_is_spared_what_is_not(site: Site, state_url: str) -> None:
    one, other = site.masters
    await store_nodes(state_url)
    with_certificates(FLEET, site.agents, one.ca)
    fleet = Fleet(site, [one, other])

    site.start("two", at=one, waves="1%; 10%; 100%")
    late = sorted(below(100) - below(10))[:20]
    for share in WAVES:
        await fleet.run([*(below(share) - fleet.with_content("two")), *(late if share == 1 else ())])
        assert fleet.with_content("two") == below(share)
        if share == 1:
            other.kill()
            fleet.living = [one]
    await until(lambda: site.status(one)["status"] == "completed")
    assert [wave["changed"] for wave in site.status(one)["waves"]] == [
        len(below(1)),
        len(below(10) - below(1)),
        len(below(100) - below(10)),
    ]

    other.start()
    fleet.living = [one, other]
    await until(lambda: site.link(other) == SITE.replace("TEXT", "two"))
    for text, fails, attribute, message in (
        ("three", BROKEN, "content", "File[/tmp/motd]: read-only file system"),
        ("four", (), "mode", "File[/tmp/motd] mode"),
    ):
        site.start(text, at=other, waves="1%; 10%; 100%")
        first = next(share for share in WAVES if not fails or BROKEN & below(share))
        for share in WAVES[: WAVES.index(first) + 1]:
            await fleet.run(below(share), fails, attribute)
        status = site.status(one)
        assert status["status"] == "stopped" and {problem["message"] for problem in status["problems"]} == {message}
        touched = fleet.with_content(text)
        assert touched <= below(first)
        await fleet.run([*below(1), *late])
        assert fleet.with_content(text) == touched, "no further node gets it, and those that have it keep it"
        assert other.puppet("rollout", "abort", "production").code == 0
        await fleet.run(touched)
        assert fleet.with_content(text) == set()
