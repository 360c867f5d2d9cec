"""Rollouts over HTTP: who may ask, what is shown, and what is no command."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from master.endpoints.rollouts import RolloutEndpoint
from master.rollouts.machine import RolloutPlan, begin
from master.rollouts.storage import RolloutFiles
from master.rollouts.waves import Wave
from tests.support.raw_master import RunningMaster

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]
URL = "/puppet/v1/rollouts"
JSON = {"Content_Type": "application/json"}


@pytest.fixture
def files(tmp_path: Path) -> RolloutFiles:
    files = RolloutFiles([tmp_path])
    files.save(begin(RolloutPlan("production", "old", "new", (Wave("all", 100.0),), ref="main"), ["web1"], 1000.0), 0)
    return files


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "auth.conf"
    path.write_text("path /puppet/v1/rollouts\nauth yes\nallow agent1\n")
    return path


async def test_by_default_only_an_administrator_may_ask(serve: Serve, files: RolloutFiles) -> None:
    async with serve(parts=[RolloutEndpoint(files)]) as master:
        assert (await (await master.client("agent1")).ask("GET", URL)).status == 403
        assert (await (await master.client(None)).ask("GET", URL)).status == 403


async def test_rollouts_are_shown_and_paused(serve: Serve, files: RolloutFiles, rules: Path) -> None:
    async with serve(parts=[RolloutEndpoint(files)], auth_conf=rules) as master:
        client = await master.client("agent1")
        for target in (URL, f"{URL}?environment=production"):
            (status,) = json.loads((await client.ask("GET", target)).body)
            assert (status["environment"], status["status"], status["waves"][0]["waiting"]) == ("production", "progressing", 1)
        body = json.dumps({"environment": "production", "action": "pause", "reason": "lunch"}).encode()
        assert json.loads((await client.ask("POST", URL, body, **JSON)).body)["reason"] == "lunch"
        assert (await client.ask("POST", URL, body, **JSON)).status == 409
        stored = files.load("production")
        assert stored is not None and stored.rollout.status == "paused"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"environment": "production", "action": "start"}, 400),
        ({"environment": "other", "action": "pause"}, 404),
        ({"environment": "../x", "action": "pause"}, 400),
        ({"environment": "production"}, 400),
        ({"environment": "production", "action": 1}, 400),
        ([], 400),
    ],
)
async def test_what_is_no_command_is_refused(serve: Serve, files: RolloutFiles, rules: Path, body: object, status: int) -> None:
    async with serve(parts=[RolloutEndpoint(files)], auth_conf=rules) as master:
        client = await master.client("agent1")
        assert (await client.ask("POST", URL, json.dumps(body).encode(), **JSON)).status == status
        assert (await client.ask("GET", f"{URL}?environment=other")).status == 404
