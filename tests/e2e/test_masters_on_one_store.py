"""Two masters on one PostgreSQL, one of them killed in the middle of agents' runs: what an agent was told to be taken is stored."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared.data import plainyaml
from tests.bench.costs import family
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.processes import Done, MasterProcess, OurAgent, master
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.alone]

AGENTS = 4  # half of them ask the second master first
LONGEST = 300.0  # seconds for anything
RESOURCES = 20
MANIFEST = """
  @@file { "ROOT/${trusted['certname']}/exported": content => $facts['round'], tag => 'shared' }
  Integer[1, %d].each |$i| {
    file { "ROOT/${trusted['certname']}/${i}": content => "${i} in round ${facts['round']}" }
  }
  $known = puppetdb_query('nodes[certname] { certname ~ "^agent" }').length
  $exported = puppetdb_query('resources[certname] { exported = true and tag = "shared" }').length
  notify { "known ${known} exported ${exported}": }
"""


@pytest.fixture
def database() -> Iterator[PostgresqlServer]:
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    server = PostgresqlServer(programs)
    try:
        server.run_sql("CREATE DATABASE store")
        yield server
    finally:
        server.remove()


@contextmanager
def two_masters(root: Path, address: str) -> Iterator[tuple[MasterProcess, MasterProcess]]:
    """Run a master that is the CA and one that is not, with stores of their own on one database, and the same site."""
    first_root, second_root = root / "first", root / "second"
    (second_root / "conf").mkdir(parents=True)
    (second_root / "conf" / "puppet.conf").write_text("[master]\nca = false\n")
    common = {"key_type": "ec", "store": address, "dns_alt_names": "localhost"}
    with (
        master(first_root, certname="master1.test", autosign="true", **common) as first,
        master(second_root, certname="master2.test", environmentpath=str(first_root / "conf/code/environments"), **common) as second,
    ):
        first.write({"manifests/site.pp": (MANIFEST % RESOURCES).replace("ROOT", str(root / "stage"))})
        first.start()
        done = first.puppet("cert", "generate", "master2.test", "--dns_alt_names", "localhost")
        assert done.code == 0, done.text
        own, ssl = first_root / "conf" / "ssl", second_root / "conf" / "ssl"
        for source, place in (
            (own / "certs" / "master2.test.pem", ssl / "certs" / "master2.test.pem"),
            (own / "private_keys" / "master2.test.pem", ssl / "private_keys" / "master2.test.pem"),
            (first.ca / "ca_crt.pem", ssl / "certs" / "ca.pem"),
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
        second.settings |= {"ca_server": "localhost", "ca_port": str(first.port)}
        second.start()
        yield first, second


def kill_with_its_store(process: MasterProcess) -> None:
    """Kill a master and at once its store, as a power loss would. The master first: it must not tell an agent that its store has ended."""
    stores = [pid for pid in family(process.pid) if b"the store of a master" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(stores) == 1
    process.kill()
    os.kill(stores[0], signal.SIGKILL)


@dataclass
class Fleet:
    """Agents that run again and again; `acknowledged` are the UUIDs of the runs whose reports were taken."""

    agents: list[OurAgent]
    acknowledged: dict[str, set[str]] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)  # what the last run printed, by certname
    until: threading.Event = field(default_factory=threading.Event)
    round: int = 0

    def run(self, agent: OurAgent) -> Done:
        """Run an agent once, with facts and a catalog that it never had."""
        self.round += 1
        agent.facts = {"round": f"round {self.round}"}
        report = agent.state / "last_run_report.yaml"
        before = report.read_bytes() if report.exists() else b""
        done = agent.test()
        self.last[agent.certname] = done.text
        after = report.read_bytes() if report.exists() else b""
        if after != before and "Could not send report" not in done:
            self.acknowledged.setdefault(agent.certname, set()).add(plainyaml.loads(after)["transaction_uuid"])
        return done

    def live(self, agent: OurAgent) -> None:
        while not self.until.is_set():
            self.run(agent)

    def until_each_ran(self, more: int) -> None:
        """Return when each agent had so many more of its reports taken."""
        before = {agent.certname: len(self.acknowledged.get(agent.certname, ())) for agent in self.agents}
        wait_until(
            lambda: all(len(self.acknowledged.get(name, ())) >= number + more for name, number in before.items()),
            LONGEST,
            lambda: str(self.last),
        )


def rows(server: PostgresqlServer, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.address("store")) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_nothing_that_an_agent_was_told_to_be_taken_is_lost_when_one_of_two_masters_is_killed(
    tmp_path: Path, database: PostgresqlServer
) -> None:
    with two_masters(tmp_path, database.address("store")) as (first, second):
        agents = []
        for number in range(AGENTS):
            root = tmp_path / f"agent{number}"
            (tmp_path / "stage" / f"agent{number}.test").mkdir(parents=True)
            root.mkdir()
            ports = (second.port, first.port) if number % 2 else (first.port, second.port)
            settings = {
                "server_list": ",".join(f"localhost:{port}" for port in ports),
                "ca_server": "localhost",
                "ca_port": str(first.port),
            }
            agents.append(OurAgent(root, first.port, f"agent{number}.test", settings))
        fleet = Fleet(agents)
        with ThreadPoolExecutor(AGENTS) as threads:
            try:
                lives = [threads.submit(fleet.live, agent) for agent in agents]
                for process in (second, first):
                    fleet.until_each_ran(more=1)
                    kill_with_its_store(process)
                    rounds = fleet.round
                    wait_until(lambda rounds=rounds: fleet.round >= rounds + AGENTS)  # in which agents ask it in vain
                    process.start()
                fleet.until_each_ran(more=1)
            finally:
                fleet.until.set()
            for life in lives:
                life.result(LONGEST)
        exported = (
            "SELECT certname, parameters ->> 'content' FROM resources JOIN nodes ON nodes.id = node_id "
            "JOIN parameter_sets ON parameter_sets.id = parameter_set_id WHERE exported ORDER BY 1"
        )
        wait_until(lambda: len(rows(database, exported)) == AGENTS)
        last = [fleet.run(agent) for agent in agents]
        assert all(done.code == 2 and f"known {AGENTS} exported {AGENTS}" in done for done in last), [done.text for done in last]

        acknowledged = sorted((name, uuid) for name, uuids in fleet.acknowledged.items() for uuid in uuids)
        reports = "SELECT certname, transaction_uuid FROM reports JOIN nodes ON nodes.id = node_id ORDER BY 1, 2"
        wait_until(lambda: set(acknowledged) <= set(rows(database, reports)))
        stored = rows(database, reports)
        assert len(stored) == len(set(stored)), "no report is there twice"

        rounds = [(agent.certname, agent.facts["round"]) for agent in agents]
        facts = "SELECT certname, value #>> '{}' FROM facts JOIN nodes ON nodes.id = node_id WHERE name = 'round' ORDER BY 1"
        wait_until(lambda: rows(database, facts) == rounds)
        wait_until(lambda: rows(database, exported) == rounds)
        files = "SELECT certname, count(*) FROM resources JOIN nodes ON nodes.id = node_id WHERE type = 'File' GROUP BY 1 ORDER BY 1"
        assert rows(database, files) == [(agent.certname, RESOURCES + 1) for agent in agents]
        for process in (first, second):
            assert not (process.root / "var" / "store" / "queue" / "discarded").exists()
            assert process.stop() == 0
    assert "deadlock detected" not in database.log
