"""Rollouts over HTTP: who may ask, what is shown, and what is no command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from master.endpoints.rollouts import RolloutEndpoint
from master.rollouts.machine import RolloutPlan, begin
from master.rollouts.storage import RolloutFiles
from master.rollouts.waves import Wave
from shared.errors import Conflict
from tests.support.raw_master import RunningMaster

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]
URL = "/puppet/v1/rollouts"
JSON = {"Content_Type": "application/json"}


async def no_start(environment: str, options: Mapping[str, str]) -> dict[str, Any]:
    raise Conflict(f"{environment} has no version before this one")


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
    async with serve(parts=[RolloutEndpoint(files, no_start)]) as master:
        assert (await (await master.client("agent1")).ask("GET", URL)).status == 403
        assert (await (await master.client(None)).ask("GET", URL)).status == 403


async def test_rollouts_are_shown_and_paused(serve: Serve, files: RolloutFiles, rules: Path) -> None:
    async with serve(parts=[RolloutEndpoint(files, no_start)], auth_conf=rules) as master:
        client = await master.client("agent1")
        for target in (URL, f"{URL}?environment=production"):
            (status,) = json.loads((await client.ask("GET", target)).body)
            assert (status["environment"], status["status"], status["waves"][0]["waiting"]) == ("production", "progressing", 1)
        body = json.dumps({"environment": "production", "action": "pause", "reason": "lunch"}).encode()
        assert json.loads((await client.ask("POST", URL, body, **JSON)).body)["reason"] == "lunch"
        assert (await client.ask("POST", URL, body, **JSON)).status == 409
        stored = files.load("production")
        assert stored is not None and stored.rollout.status == "paused"


async def test_a_rollout_is_started_with_its_options_and_one_at_a_time(serve: Serve, files: RolloutFiles, rules: Path) -> None:
    started: list[tuple[str, Mapping[str, str]]] = []
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def start(environment: str, options: Mapping[str, str]) -> dict[str, Any]:
        started.append((environment, options))
        begun.set()
        await may_end.wait()
        return {"status": "progressing"}

    async with serve(parts=[RolloutEndpoint(files, start)], auth_conf=rules) as master:
        first, second = await master.client("agent1"), await master.client("agent1")
        order = {"environment": "production", "action": "start"}
        options = {"ref": "main", "waves": "1%; 100%", "noop_first": "true"}
        answering = asyncio.create_task(first.ask("POST", URL, json.dumps(order | options).encode(), **JSON))
        await begun.wait()
        assert (await second.ask("POST", URL, json.dumps(order).encode(), **JSON)).status == 503
        may_end.set()
        assert json.loads((await answering).body) == {"status": "progressing"}
        assert started == [("production", options)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"environment": "production", "action": "start"}, 409),
        ({"environment": "../x", "action": "start"}, 400),
        ({"environment": "production", "action": "start", "repo": "https://elsewhere"}, 400),
        ({"environment": "production", "action": "start", "check": "/bin/sh"}, 400),
        ({"environment": "production", "action": "pause", "ref": "main"}, 400),
        ({"environment": "production", "action": "shrug"}, 400),
        ({"environment": "other", "action": "pause"}, 404),
        ({"environment": "../x", "action": "pause"}, 400),
        ({"environment": "production"}, 400),
        ({"environment": "production", "action": 1}, 400),
        ([], 400),
    ],
)
async def test_what_is_no_command_is_refused(serve: Serve, files: RolloutFiles, rules: Path, body: object, status: int) -> None:
    async with serve(parts=[RolloutEndpoint(files, no_start)], auth_conf=rules) as master:
        client = await master.client("agent1")
        assert (await client.ask("POST", URL, json.dumps(body).encode(), **JSON)).status == status
        assert (await client.ask("GET", f"{URL}?environment=other")).status == 404
