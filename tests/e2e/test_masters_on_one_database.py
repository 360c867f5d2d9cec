"""Two masters whose state is in one database, behind HAProxy as the compose profile `masters` has it: either of them may be killed."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select

from shared.state.database import StateDatabase
from shared.state.tables import facts, reports
from tests.bench.fleet import facts_of, small_site
from tests.support.balancer import balancer
from tests.support.processes import MasterProcess, clean_environment, end, master, run
from tests.support.simulated_agents import Record, Server, SimulatedAgent
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.alone]

ROOT = Path(__file__).parents[2]
AGENTS = 6
ATTEMPTS = 10


@contextmanager
def two_masters(root: Path, state: str) -> Iterator[tuple[MasterProcess, MasterProcess]]:
    """The masters of the demonstration, with the same site; both run."""
    secret = root / "ca.pass"
    secret.write_bytes((ROOT / "demo/containers/masters/ca.pass").read_bytes())
    settings = {"key_type": "ec", "state": state, "ca_key_passphrase": str(secret), "autosign": "true", "dns_alt_names": "localhost"}
    site = {"environmentpath": str(root / "first" / "conf" / "code" / "environments")}
    with (
        master(root / "first", certname="master1.test", **settings) as first,
        master(root / "second", certname="master2.test", **site, **settings) as second,
    ):
        first.write(small_site())
        for each in (first, second):
            each.start()
        yield first, second


async def test_agents_enrol_run_and_report_while_either_master_is_killed(tmp_path: Path, state_url: str) -> None:
    with two_masters(tmp_path, state_url) as both, balancer(tmp_path / "proxy", *(each.port for each in both)) as port:
        folder = tmp_path / "agents"
        folder.mkdir()
        shutil.copy(both[0].ca / "ca_crt.pem", folder / "ca.pem")
        record, server = Record(), Server(port, ca_port=port, timeout=60)
        names = [f"node{number}.test" for number in range(AGENTS)]
        agents = [SimulatedAgent(name, folder, server, record, facts_of(name), sources=2) for name in names]
        log = (tmp_path / "proxy" / "log").read_text
        await asyncio.gather(*(agent.bootstrap() for agent in agents[:2]))
        for number, killed in enumerate(both, 1):
            known, newcomers = agents[: 2 * number], agents[2 * number : 2 * number + 2]
            killed.kill()
            await asyncio.gather(*(agent.run_until_done(ATTEMPTS, pause=0.2) for agent in known))
            await until(lambda number=number: f"master{number} is DOWN" in log())
            await asyncio.gather(*(agent.bootstrap() for agent in newcomers))
            await asyncio.gather(*(agent.run() for agent in newcomers))
            await asyncio.to_thread(killed.start)
            await until(lambda number=number: f"master{number} is UP" in log())
        await asyncio.gather(*(agent.run() for agent in agents))
        database = StateDatabase.open(state_url, keep_alive=False)
        count = select(func.count()).select_from(reports)
        assert len(record.runs) == 2 + 2 + 4 + 2 + 6
        # A report may be stored twice, when its answer was lost with a master.
        assert (database.transact(lambda connection: connection.scalar(count)) or 0) >= len(record.runs)
        assert set(database.transact(lambda connection: connection.scalars(select(facts.c.name)).all())) == set(names)
        for each in both:
            assert "Compiled catalog for node" in each.log and "Traceback" not in each.log
            listed = each.puppet("report", "list", "--json")
            assert listed.code == 0 and listed.text.count('"status": "unchanged"') == AGENTS, listed.text


def test_an_order_to_one_master_reaches_an_agent_that_waits_at_the_other(tmp_path: Path, state_url: str) -> None:
    with two_masters(tmp_path, state_url) as (first, second):
        places = {"confdir": "conf", "vardir": "var", "rundir": "run", "logdir": "log"}

        def options(root: Path, process: MasterProcess, certname: str) -> list[str]:
            paths = [f"--{name}={root / place}" for name, place in places.items()]
            return [*paths, "--server=localhost", f"--masterport={process.port}", f"--certname={certname}"]

        agent = ["agent", "--no-daemonize", "--key_type=ec", "--ruby_facts=false", *options(tmp_path / "agent", first, "agent1.test")]
        puppet = [sys.executable, "-m", "bunraku"]
        with (tmp_path / "daemon.log").open("wb") as log:
            environ = clean_environment()
            daemon = subprocess.Popen([*puppet, *agent], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, cwd=ROOT)
        try:
            words = ["run", "agent1.test", "--noop", "--json", *options(second.root, second, "master2.test")]
            done = run([*puppet[:1], "-I", *puppet[1:], *words], clean_environment())
        finally:
            end(daemon)
        assert (done.code, json.loads(done.text)["nodes"]["agent1.test"]["noop"]) == (0, True), (done.text, second.log[-3000:])
