"""Runs on demand over HTTP: who may wait and who may order, what is sent, and what the audit log has of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from master.endpoints.runs import RunEndpoint
from master.orders.run import OrderedRuns, RunQuestion
from master.orders.waiting import WaitingAgents
from shared.models.report import Report
from tests.support.raw_master import RunningMaster
from tests.support.waiting import until

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]
RUNS, ORDERS = "/puppet/v1/runs", "/puppet/v1/orders?seconds=300"
JSON = {"Content_Type": "application/json"}


class Runs:
    """The endpoint, with what it writes into the audit log."""

    def __init__(self) -> None:
        self.agents = WaitingAgents(lambda: 10)
        self.audited: list[dict[str, object]] = []
        self.endpoint = RunEndpoint(self.agents, self._select, self.audited.append, partial(OrderedRuns, self.agents))

    async def _select(self, question: RunQuestion) -> list[str]:
        return ["agent2"] if question.query else list(question.names)


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "auth.conf"
    path.write_text("path /puppet/v1/runs\nauth yes\nallow admin\n")
    return path


def lines_of(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


async def test_by_default_the_master_itself_orders_and_every_node_waits_for_itself(serve: Serve, runs: Runs) -> None:
    async with serve(parts=[runs.endpoint], certname="boss") as master:
        body = json.dumps({"nodes": ["agent1"], "noop": True}).encode()
        assert (await (await master.client("agent2")).ask("POST", RUNS, body, **JSON)).status == 403
        assert (await (await master.client(None)).ask("GET", ORDERS)).status == 403
        waiting = asyncio.create_task((await master.client("agent1")).ask("GET", f"{ORDERS}&certname=agent2"))
        await until(lambda: runs.agents.nodes == ["agent1"])
        ordering = asyncio.create_task((await master.client("boss")).ask("POST", RUNS, body, **JSON))
        order = json.loads((await waiting).body)
        assert (order["noop"], order["tags"], order["environment"]) == (True, [], "")
        runs.agents.reported(Report(name="agent1", status="unchanged", job_id=order["id"]))
        first, *events, last = lines_of((await ordering).body)
        assert (first, last) == ({"id": order["id"], "nodes": 1}, {"done": True})
        assert [(event["node"], event["state"]) for event in events] == [("agent1", "started"), ("agent1", "unchanged")]
    (entry,) = runs.audited
    assert entry == {
        "action": "order-run", "name": "agent1", "by": "boss", "result": "done",
        "order": order["id"], "nodes": ["agent1"], "number": 1, "noop": True,
    }  # fmt: skip


async def test_an_agent_sends_what_its_own_run_logs_and_learns_when_nobody_wants_it(serve: Serve, runs: Runs) -> None:
    sent = {"order": "0d1c", "first": 0, "lines": [["notice", "Puppet", "a"]]}
    async with serve(parts=[runs.endpoint]) as master:
        ordered = OrderedRuns(runs.agents, RunQuestion.of({"nodes": ["agent1"], "log": True}, "0d1c"))
        waiting = asyncio.create_task((await master.client("agent1")).ask("GET", ORDERS))
        await until(lambda: runs.agents.nodes == ["agent1"])
        async with aclosing(ordered.events(["agent1"])) as events:
            assert (await anext(events))["state"] == "started"
            assert json.loads((await waiting).body)["log"] is True
            asked = [(name, await master.client(name)) for name in ("agent2", "agent1")]
            codes = {
                name: (await client.ask("POST", "/puppet/v1/orders", json.dumps(sent).encode(), **JSON)).status for name, client in asked
            }
            assert codes == {"agent2": 410, "agent1": 204}
            assert (await anext(events))["lines"] == (("notice", "Puppet", "a"),)
            bad = await asked[1][1].ask("POST", "/puppet/v1/orders", b"{}", **JSON)
            assert bad.status == 400


async def test_a_run_that_has_not_begun_does_not_once_its_client_has_left(serve: Serve, runs: Runs, rules: Path) -> None:
    async with serve(parts=[runs.endpoint], auth_conf=rules) as master:
        waiting = [asyncio.create_task((await master.client(name)).ask("GET", ORDERS)) for name in ("agent1", "agent2")]
        await until(lambda: len(runs.agents.nodes) == 2)
        client = await master.client("admin")
        body = json.dumps({"nodes": ["agent1", "agent2"], "concurrency": 1}).encode()
        ordering = asyncio.create_task(client.ask("POST", RUNS, body, **JSON))
        order = json.loads((await waiting[0]).body)
        client.writer.transport.abort()  # as the command does
        await asyncio.gather(ordering, return_exceptions=True)
        assert master.server.listener is not None
        connections = master.server.listener.server.open_connections
        await until(lambda: any(connection.has_ended for connection in connections))
        runs.agents.reported(Report(name="agent1", status="unchanged", job_id=order["id"]))
        await until(lambda: master.server.active_requests == 1)
        assert runs.agents.nodes == ["agent2"]
        runs.agents.close()
        answer = await waiting[1]
        assert answer.status == 503 and 1 <= int(answer.headers["retry-after"]) <= 60


async def test_what_is_no_question_is_refused(serve: Serve, runs: Runs, rules: Path) -> None:
    async with serve(parts=[runs.endpoint], auth_conf=rules) as master:
        client = await master.client("admin")
        assert (await client.ask("POST", RUNS, b'{"nodes": ["a"], "code": "x"}', **JSON)).status == 400
        assert (await client.ask("POST", RUNS, b"{", **JSON)).status == 400
        for target in ("/puppet/v1/orders", "/puppet/v1/orders?seconds=-1", f"{ORDERS}&last={'x' * 65}"):
            assert (await client.ask("GET", target)).status == 400
        assert (await client.ask("GET", RUNS)).status == 405
    assert runs.audited == []
