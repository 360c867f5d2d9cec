"""`puppet run`: our master orders runs of our agent, which runs as a daemon and waits for that."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.run.lock import DisabledLock
from bunraku.puppet import main
from master.orders.run import OrderedRuns, RunQuestion
from master.wiring import Master, running
from tests.support.documentation import block
from tests.support.pair import NAME, Pair
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.works_with("Deployment and tools for code", "puppet run: an agent that waits runs at once, and its result is shown"),
]
MANIFEST = """
file { 'ROOT/motd': content => "${environment}\\n" }
file { 'ROOT/tagged': content => 'tagged', tag => 'some' }
"""


@dataclass
class OnDemand:
    """A master, and an agent's daemon that may wait there."""

    pair: Pair
    master: Master
    daemon: asyncio.subprocess.Process

    @property
    def waiting(self) -> list[str]:
        return self.master.agents.nodes

    async def run(self, *words: str) -> tuple[int, str, str]:
        """Run `puppet run …` with the master's own certificate; return its exit code and output."""
        root = self.pair.root / "master"
        paths = {"confdir": root, "vardir": root / "var", "logdir": root / "log", "rundir": root / "run"}
        options = [f"--{name}={path}" for name, path in paths.items()]
        argv = ["run", *words, *options, "--certname=localhost", "--server=localhost", f"--masterport={self.pair.port}"]

        def run() -> tuple[int, str, str]:
            out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
            with redirect_stdout(out), redirect_stderr(err):
                code = main(argv)
            return code, *(stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]

        return await asyncio.to_thread(run)


@asynccontextmanager
async def on_demand(tmp_path: Path, **settings: str) -> AsyncIterator[OnDemand]:
    """A master with these settings and an agent that waits there after its first run."""
    pair = Pair(tmp_path, MANIFEST.replace("ROOT", str(tmp_path / "stage")))
    pair.stage.mkdir()
    pair.write("code/environments/other/manifests/site.pp", pair.manifest)
    async with running(pair.master_settings(**settings)) as master:
        pair.port = master.port
        async with _daemon(pair) as daemon:
            site = OnDemand(pair, master, daemon)
            await until(lambda: site.waiting == [NAME])
            assert len(pair.reports()) == 1
            yield site


@asynccontextmanager
async def _daemon(pair: Pair) -> AsyncIterator[asyncio.subprocess.Process]:
    root = pair.root / "agent"
    paths = {"confdir": root, "vardir": root / "var", "logdir": root / "log", "rundir": root / "run"}
    options = [*(f"--{name}={path}" for name, path in paths.items()), f"--masterport={pair.port}", f"--certname={NAME}"]
    words = ["agent", "--no-daemonize", "--server=localhost", "--key_type=ec", "--ruby_facts=false", *options]
    with (pair.root / "daemon.log").open("wb") as log:
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bunraku", *words, stdout=log, stderr=log, env={**os.environ, "NO_COLOR": "1"}
        )
        try:
            yield daemon
        finally:
            daemon.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await daemon.wait()


async def test_an_agent_that_waits_runs_at_once_as_ordered(tmp_path: Path) -> None:
    async with on_demand(tmp_path) as site:
        pair = site.pair
        for name in ("motd", "tagged"):
            (pair.stage / name).write_text("by hand")
        code, out, err = await site.run(NAME, "--noop")
        assert code == 0, err
        assert f"{NAME:<20}  would change" in out and "1 node: 1 would change" in out
        assert (pair.stage / "motd").read_text() == "by hand"
        await until(lambda: site.waiting == [NAME])
        code, out, _ = await site.run(NAME, "--tags=some", "--environment=other", "--json")
        (result,) = json.loads(out)["nodes"].values()
        assert (code, result["state"], result["environment"], result["resources"]["changed"]) == (2, "changed", "other", 1)
        assert [(pair.stage / name).read_text() for name in ("motd", "tagged")] == ["by hand", "tagged"]
        audited = [json.loads(line) for line in (pair.root / "master" / "log" / "audit.json").read_text().splitlines()]
        orders = [(each["by"], each["from"], each["name"], each.get("noop")) for each in audited if each["action"] == "order-run"]
        assert orders == [("localhost", "127.0.0.1", NAME, True), ("localhost", "127.0.0.1", NAME, None)]

        pair.write("code/environments/production/manifests/site.pp", "fail('no such luck')")
        await until(lambda: site.waiting == [NAME])
        code, out, err = await site.run("--all")
        assert code == 4, err
        line, failure, numbers = out.strip().split("\n\n")
        assert line.startswith(f"{NAME:<20}  failed ") and failure.startswith(line) and "no such luck" in failure
        assert numbers == "1 node: 1 failed"
        await until(lambda: site.waiting == [NAME])
        DisabledLock(pair.root / "agent" / "var" / "state" / "agent_disabled.lock").disable("lunch")
        code, out, _ = await site.run(NAME)
        assert code == 4
        assert f"{NAME:<20}  no report     its run has ended without a report" in out


WAITING = """
file { 'ROOT/first': content => 'x' }
-> exec { "/bin/sh -c 'until [ -e ROOT/go ]; do sleep 0.02; done'": timeout => 60 }
"""


async def test_what_a_run_logs_is_seen_while_it_lasts(tmp_path: Path) -> None:
    async with on_demand(tmp_path) as site:
        site.pair.write("code/environments/production/manifests/site.pp", WAITING.replace("ROOT", str(site.pair.stage)))
        runs = OrderedRuns(site.master.agents, RunQuestion.of({"nodes": [NAME], "log": True}, str(uuid.uuid4())))
        told: list[str] = []
        states: list[str] = []
        async with aclosing(runs.events([NAME])) as events, asyncio.timeout(60):
            async for event in events:
                told += [message for _, _, message in event.get("lines", ())]
                states += [event["state"]] if "state" in event else []
                if any(message.startswith("defined content as") for message in told):
                    (site.pair.stage / "go").touch()  # which the run waits for
        assert states == ["started", "changed"]
        assert [message.split()[0] for message in told].count("executed") == 1
        assert any(message.startswith("Applied catalog in") for message in told)


@pytest.mark.full
async def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    async with on_demand(tmp_path, store="sqlite") as site:
        for line in block("docs/run.md", "sh", "run-nodes").body.splitlines():
            await until(lambda: site.waiting == [NAME])
            words = shlex.split(line.replace("web1.example.com", NAME).replace("^web", "^agent"))
            assert words[:2] == ["puppet", "run"]
            code, out, err = await site.run(*words[2:])
            assert (code, out.splitlines()[-1]) == (0, "1 node: 1 unchanged"), out + err
