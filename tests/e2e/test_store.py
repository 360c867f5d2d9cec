"""A master that runs a store of its own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.started import Started, started
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.works_with("The built-in store", "its process in a master")]

RULES = "path /pdb\nallow agent1\n"
FACTS = {"certname": "web1", "environment": "production", "producer_timestamp": "2026-01-01T00:00:00Z", "producer": "m", "values": {"a": 1}}
SUBMIT = "/pdb/cmd/v1?command=replace_facts&version=5&certname=web1&secondsToWaitForCompletion=20"


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A master with the store that it has unless its site says otherwise, which agent1 may use."""
    with started(tmp_path_factory.mktemp("master"), auth=RULES, store="auto") as master:
        yield master


def store_runs(master: Started) -> bool:
    return master.ask("GET", "/pdb/meta/v1/version").status == 200


def stores_of(pid: int) -> list[int]:
    """The processes that `pid` has started and that are stores."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"store" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_the_store_answers_under_the_masters_port_and_starts_again_when_it_is_killed(master: Started) -> None:
    wait_until(lambda: store_runs(master))
    json_type = {"Content-Type": "application/json"}
    assert master.ask("POST", SUBMIT, json.dumps(FACTS).encode(), headers=json_type).status == 200
    assert master.ask("GET", "/pdb/query/v4/nodes", name="agent2").status == 403
    (pid,) = stores_of(master.process.pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: stores_of(master.process.pid) not in ([], [pid]))
    assert master.ask("GET", "/puppet/v3/node/agent1?environment=production").status == 200  # the master goes on
    wait_until(lambda: store_runs(master))
    assert master.ask("GET", "/pdb/query/v4/nodes/web1/facts/a/1").body.startswith(b"[]")  # values in paths are texts
    assert b'"value":1}]' in master.ask("GET", "/pdb/query/v4/nodes/web1/facts/a").body


def test_commands_on_the_host_of_a_master_use_its_store(master: Started) -> None:
    wait_until(lambda: store_runs(master))
    body = json.dumps({**FACTS, "certname": "old1"}).encode()
    submit = SUBMIT.replace("web1", "old1")
    assert master.ask("POST", submit, body, headers={"Content-Type": "application/json"}).status == 200
    puppet = master.process.puppet
    found = puppet("facts", "find", "old1", "--terminus", "puppetdb")
    assert (found.code, json.loads(found.text)["values"]) == (0, {"a": 1})
    status = puppet("node", "status", "old1", "nope")
    assert status.code == 1 and "old1\nCurrently active\nNo catalog received\nLast facts: " in status
    assert "Could not retrieve status for nope: The master's own store has no '/pdb/query/v4/nodes/nope'" in status
    deactivated = puppet("node", "deactivate", "old1", "--render-as", "json")
    assert deactivated.code == 0 and list(json.loads(deactivated.text)) == ["old1"]
    wait_until(lambda: "Deactivated at " in puppet("node", "status", "old1"))


def test_the_store_ends_with_a_master_that_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, auth=RULES, store="sqlite") as master:
        wait_until(lambda: store_runs(master))
        (pid,) = stores_of(master.process.pid)
        os.kill(master.process.pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
