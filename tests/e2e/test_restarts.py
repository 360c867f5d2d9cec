"""A master that is restarted again and again while agents run."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.kept import check_facts_and_reports
from tests.support.processes import Done, OurAgent, master
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

AGENTS, RESTARTS = 3, 2
MOST_RUNS = 100  # of one agent


def looping(agent: OurAgent, runs: list[Done], over: threading.Event) -> None:
    """Run an agent again and again until the restarts are over; then once more."""
    while not over.is_set() and len(runs) < MOST_RUNS:
        runs.append(agent.test())
    runs.append(agent.test())


def test_R_17_restarts_under_load_cost_no_more_than_the_runs_that_met_no_master(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true", key_type="ec") as site:
        site.write({"manifests/site.pp": "notify { 'x': }\n"})
        site.start()
        agents = [OurAgent(tmp_path / f"agent{number}", site.port, f"agent{number}.test") for number in range(AGENTS)]
        for agent in agents:
            agent.root.mkdir()
        over = threading.Event()
        runs: dict[str, list[Done]] = {agent.certname: [] for agent in agents}
        with ThreadPoolExecutor(AGENTS) as threads:
            waiting = [threads.submit(looping, agent, runs[agent.certname], over) for agent in agents]
            try:
                for _ in range(RESTARTS):
                    ended = {name: len(each) for name, each in runs.items()}
                    wait_until(lambda ended=ended: all(len(each) > ended[name] for name, each in runs.items()), within=300)
                    assert site.stop() == 0
                    site.start()
            finally:
                over.set()
            for each in waiting:
                each.result()
        for agent in agents:
            for run in runs[agent.certname]:
                # Either it went well, or there was nobody: nothing else may have gone wrong.
                assert run.code == 2 or re.search(r"Error: .*[Cc]onnect", run.text), run.text
            assert runs[agent.certname][-1].code == 2, runs[agent.certname][-1].text
            check_facts_and_reports(site.root / "var", agent.certname)
        assert sum(run.code == 2 for each in runs.values() for run in each) > AGENTS
        assert "Traceback" not in site.log
        assert "Incident" not in site.log
