"""`puppet run`: its command line, what people see of the runs, and its exit codes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from bunraku.puppet import main
from tests.support.command_line import Puppet
from tests.support.fake_server import Reply
from tests.support.processes import clean_environment
from tests.support.scripted_master import NAME, Scripted
from tests.support.waiting import until

RESOURCES = {"total": 12, "changed": 2, "failed": 1, "out_of_sync": 3}


def result(node: str, state: str, **more: Any) -> dict[str, Any]:
    return {"node": node, "state": state, "changed": False, "resources": RESOURCES, "seconds": 3.2, "environment": "", "errors": [], **more}


def lines(*events: dict[str, Any]) -> Reply:
    """The answer of a master to an order for three nodes."""
    return Reply(200, b"".join(json.dumps(event).encode() + b"\n" for event in ({"id": "0d1c", "nodes": 3}, *events)))


def options_of(site: Scripted) -> list[str]:
    """The options of a host that has a certificate of the master's CA."""
    settings = site.settings()
    paths = [f"--{name}={getattr(settings, name)}" for name in ("confdir", "vardir", "logdir", "rundir")]
    return [*paths, "--server=localhost", f"--masterport={site.master.port}", f"--certname={NAME}"]


async def run(root: Path, reply: Reply, *words: str) -> tuple[int, dict[str, Any], str]:
    """Run the command at a master with this answer; return its exit code, what it asked for, and the certname that it showed."""
    site = Scripted(root, {"/puppet/v1/runs": reply})
    async with site.master.running():
        code = await asyncio.to_thread(main, ["run", *words, *options_of(site)])
    (ask,) = site.master.asked
    return code, json.loads(ask.body), ask.certname or ""


async def test_each_run_is_a_line_and_failures_come_last_with_all_their_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = result("web2", "failed", errors=["File[/x]: no\x1b space", "second"])
    reply = lines(
        {"node": "web2", "state": "started"}, failed, {"running": 1, "waiting": 1}, result("web1", "pending"),
        {"node": "old1", "state": "absent"}, {"done": True},
    )  # fmt: skip
    code, question, certname = await run(tmp_path, reply, "web2", "web1", "old1", "web1", "--noop", "--tags=a,B", "--timeout=1m")
    assert (code, certname) == (4, NAME)
    assert question == {"nodes": ["web2", "web1", "old1"], "noop": True, "tags": ["a", "b"], "concurrency": 20, "timeout": 60}
    assert capsys.readouterr().out.splitlines() == [
        "web2                  failed        1 of 12 resources, 3 s",
        "web1                  would change  3 of 12 resources, 3 s",
        "old1                  not ordered   it comes by itself within 30 min",
        "",
        "web2                  failed        1 of 12 resources, 3 s",
        "  File[/x]: no\\x1b space",
        "  second",
        "",
        "3 nodes: 1 failed, 1 not ordered, 1 would change",
    ]


async def test_what_runs_log_is_printed_behind_the_names_of_their_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logged = [["notice", "/Stage[main]/File[/x]/ensure", "created"], ["err", "Puppet", "no\x1b space"], ["debug", "Puppet", "no"]]
    reply = lines({"node": "web1", "lines": logged}, result("web1", "changed", changed=True), {"done": True})
    for words, wants in (("web1",), True), (("--all", "--log"), True), (("web1", "web2"), False), (("web1", "--json"), False):
        (root := tmp_path / "_".join(words)).mkdir()
        _, question, _ = await run(root, reply, *words)
        assert question.get("log", False) is wants
        printed = capsys.readouterr().out.splitlines()
        assert "--json" in words or printed[:2] == [
            "web1  Notice: /Stage[main]/File[/x]/ensure: created",
            "web1  Error: no\\x1b space",
        ]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([result("web1", "unchanged")], 0),
        ([result("web1", "pending")], 0),
        ([result("web1", "changed", changed=True)], 2),
        ([result("web1", "failed")], 4),
        ([{"node": "web1", "state": "timeout"}], 4),
        ([{"node": "web1", "state": "ended"}], 4),
        ([{"node": "web1", "state": "absent"}, result("web1", "unchanged")], 0),
        ([result("web1", "failed", changed=True)], 6),
    ],
)
async def test_the_exit_code_is_that_of_the_agents(tmp_path: Path, events: list[dict[str, Any]], code: int) -> None:
    assert (await run(tmp_path, lines(*events, {"done": True}), "--all", "--follow"))[0] == code


async def test_the_results_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = result("web1", "changed", changed=True)
    code, question, _ = await run(tmp_path, lines(changed, {"done": True}), "--query", "nodes {}", "--follow", "--json")
    assert (code, question) == (2, {"query": "nodes {}", "concurrency": 20, "timeout": 600, "follow": 2400})
    assert json.loads(capsys.readouterr().out) == {"order": "0d1c", "nodes": {"web1": changed}}


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(404), "The master takes no orders to run"),
        (Reply(403, b"Forbidden"), "answered the request for runs with 403"),
        (lines({"node": "web1", "state": "started"}), "ends before all runs have ended"),
        (lines({"error": {"message": "The master stops", "hint": "Later."}}), "The master stops"),
    ],
)
async def test_an_order_that_comes_to_nothing_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reply: Reply, text: str
) -> None:
    assert (await run(tmp_path, reply, "web1"))[0] == 1
    assert text in capsys.readouterr().err


@pytest.mark.slow
async def test_an_interruption_ends_the_order(tmp_path: Path) -> None:
    site = Scripted(tmp_path, {"/puppet/v1/runs": Reply(hang=True)})
    async with site.master.running():
        argv = [sys.executable, "-m", "bunraku", "run", "--all", *options_of(site)]
        process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE, env=clean_environment())
        await until(lambda: site.master.asked)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode().startswith("Error: Interrupted: 0 under way, 0 not ordered")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Say which nodes"),
        (["web1", "--all"], "Say which nodes"),
        (["../x"], "certname"),
        (["web1", "--concurrency=0"], "--concurrency is a number"),
        (["web1", "--timeout=soon"], "Invalid duration"),
        (["web1", "--tags=a;b"], "Invalid tag"),
        (["web1"], "CA certificates are missing"),
    ],
)
def test_a_wrong_call_names_its_fault(puppet: Puppet, words: list[str], text: str) -> None:
    said = puppet("run", *words)
    assert said.code == 1
    assert text in said.err
