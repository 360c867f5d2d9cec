"""The agents 7.23 and 8.10, unmodified, in one rollout: waves, a simulated wave, a failure in the second wave, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from master.rollouts.waves import place_of
from tests.interop.peers import PUPPET_8, OtherAgent
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.processes import REAL_PUPPET, MasterProcess, RealAgent, master
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "7.23 and 8.10 in a rollout: waves, noop, a stop, a roll-back"),
    needs_git,
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.skipif(bool(PUPPET_8.why_not()), reason=PUPPET_8.why_not()),
    pytest.mark.skipif(not Path(REAL_PUPPET).exists(), reason="there is no Puppet here"),
]
SEVEN = next(name for number in range(40) if place_of(name := f"seven{number}.test") < 50)
EIGHT = next(name for number in range(40) if place_of(name := f"eight{number}.test") >= 50)
SITE = "file { \"${facts['target']}/motd\": content => 'TEXT' }\n"
BREAKS = f"if $trusted['certname'] == '{EIGHT}' {{ exec {{ '/bin/false': require => File[\"${{facts['target']}}/motd\"] }} }}\n"


@dataclass
class Site:
    process: MasterProcess
    repository: ControlRepository
    agents: list[RealAgent]

    def start(self, manifest: str, *options: str) -> None:
        self.repository.commit({"manifests/site.pp": manifest})
        started = self.process.puppet("rollout", "start", "production", "--waves=50%; 100%", "--wait=0", *options)
        assert started.code == 0, started.text

    def run(self, agent: RealAgent, code: int) -> str:
        """Do a run; return the content of the file afterwards."""
        ran = agent.test()
        assert ran.code == code, ran.text
        return (agent.root / "motd").read_text()

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.process.puppet("rollout", "status", "production", "--json").text)
        return status


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    repository = ControlRepository(tmp_path / "control")
    repository.commit({"manifests/site.pp": SITE.replace("TEXT", "one")})
    conf = tmp_path / "master" / "conf"
    (conf / "code" / "environments").mkdir(parents=True)
    (conf / "puppet.conf").write_text(f"[master]\ndeploy_repository = {repository.folder}\nstore = none\n")
    with master(tmp_path / "master", autosign="true") as process:
        deployed = process.puppet("deploy", "production")
        assert deployed.code == 0, deployed.text
        process.start()
        agents = []
        for name, kind in ((SEVEN, RealAgent), (EIGHT, OtherAgent)):
            root = tmp_path / name
            root.mkdir()
            agents.append(kind(root, process.port, name, {"target": str(root)}))
        site = Site(process, repository, agents)
        assert [site.run(agent, 2) for agent in agents] == ["one", "one"]
        yield site


def test_both_run_in_waves_simulate_fail_and_come_back(site: Site) -> None:
    seven, eight = site.agents
    site.start(SITE.replace("TEXT", "two"))
    assert (site.run(eight, 0), site.run(seven, 2)) == ("one", "two")
    assert site.run(eight, 2) == "two"
    wait_until(lambda: site.status["status"] == "completed")

    site.start(SITE.replace("TEXT", "three"), "--noop-first")
    assert (site.run(seven, 0), site.status["waves"][0]["waiting"]) == ("two", 1)
    assert (site.run(seven, 2), site.run(eight, 0), site.run(eight, 2)) == ("three", "two", "three")
    wait_until(lambda: site.status["status"] == "completed")

    site.start(SITE.replace("TEXT", "four") + BREAKS, "--on-failure=rollback")
    assert (site.run(seven, 2), site.run(eight, 6)) == ("four", "four")
    status = site.status
    (problem,) = status["problems"]
    assert (status["status"], problem["state"], problem["nodes"]) == ("rolled-back", "failed", [EIGHT])
    assert problem["message"].startswith("Exec[/bin/false]: ")
    assert [site.run(agent, 2) for agent in site.agents] == ["three", "three"]
