"""A rollout of two masters: a node gets the version of its wave at either of them, and each of them may be killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from master.rollouts.waves import place_of
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.processes import MasterProcess, master
from tests.support.simulated_agents import CATALOG, JSON, Record, Server, SimulatedAgent, report_of
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
NUMBER = "0d1c2b3a-0000-4000-8000-000000000000"


class Node(SimulatedAgent):
    """A node whose run is a catalog and a report, as an old agent sends it: without the version."""

    async def get(self, at: MasterProcess, *, fails: bool = False) -> str:
        """Do a run at a master; return the content of the file in the catalog."""
        self.server = Server(at.port, ca_port=at.port, timeout=60)
        target = f"{self.certname}?environment=production"
        answer = await self._ask("catalog", "POST", f"/puppet/v3/catalog/{target}", self._asked(NUMBER), CATALOG)
        catalog = orjson.loads(answer.body)
        report = report_of(catalog, self.certname, NUMBER)
        event = {"property": "content", "status": "failure" if fails else "success", "message": "read-only file system"}
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
    nodes: dict[str, Node] = field(default_factory=dict)

    async def run(self, names: list[str], *, at: MasterProcess, fails: bool = False) -> list[str]:
        return [await self.nodes[name].get(at, fails=fails) for name in names]

    def start(self, text: str, at: MasterProcess) -> None:
        self.repository.commit({"manifests/site.pp": SITE.replace("TEXT", text)})
        started = at.puppet("rollout", "start", "production", "--waves=50%; 100%", "--wait=0")
        assert started.code == 0 and "is progressing, wave 50% (1 of 2)" in started, started.text

    def status(self, at: MasterProcess) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(at.puppet("rollout", "status", "production", "--json").text)
        return status

    def link(self, at: MasterProcess) -> str:
        return (at.site / "manifests/site.pp").read_text()


@pytest.fixture
async def site(tmp_path: Path, state_url: str) -> AsyncIterator[Site]:
    repository = ControlRepository(tmp_path / "control")
    repository.commit({"manifests/site.pp": SITE.replace("TEXT", "one")})
    secret = tmp_path / "ca.pass"
    secret.write_text("a passphrase\n")
    secret.chmod(0o600)
    settings = {"key_type": "ec", "state": state_url, "ca_key_passphrase": str(secret), "autosign": "true", "dns_alt_names": "localhost"}
    with ExitStack() as ends:
        masters = []
        for name in ("master1.test", "master2.test"):
            conf = tmp_path / name / "conf"
            (conf / "code" / "environments").mkdir(parents=True)
            lines = [f"state = {state_url}", f"certname = {name}", f"deploy_repository = {repository.folder}"]
            (conf / "puppet.conf").write_text("\n".join(["[master]", *lines, ""]))
            masters.append(ends.enter_context(master(tmp_path / name, certname=name, **settings)))
        for each in masters:
            each.start()
            each.site.rmdir()  # which the test's process has made
        site = Site(repository, masters)
        deployed = masters[0].puppet("deploy", "production")
        assert deployed.code == 0, deployed.text
        (tmp_path / "agents").mkdir()
        shutil.copy(masters[0].ca / "ca_crt.pem", tmp_path / "agents" / "ca.pem")
        for name in (*FIRST, *SECOND):
            site.nodes[name] = Node(name, tmp_path / "agents", Server(masters[0].port, ca_port=masters[0].port), Record())
            await site.nodes[name].bootstrap()
        for each in masters:
            assert await site.run([*FIRST, *SECOND], at=each) == ["one"] * 4
        yield site


async def test_waves_hold_at_both_masters_and_one_is_enough_to_go_on(site: Site) -> None:
    one, other = site.masters
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
