"""A rollout with a real master: agents get the version of their wave, their reports open the next one, and a bad one stops it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from bunraku.puppet import main
from master.rollouts.waves import place_of
from master.wiring import running
from shared.programs import run_output
from shared.settings import MasterSettings, load
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.raw_master import RawAnswer
from tests.support.simulated_agents import report_of
from tests.support.waiting import until
from tests.support.wired_site import FORM, WiredSite

pytestmark = [
    needs_git,
    pytest.mark.slow,
    pytest.mark.works_with("Deployment and tools for code", "rollouts: waves, a stop, a roll-back and the end, with a master and agents"),
]
V3 = "/puppet/v3"
SITE = "file { '/tmp/motd': content => 'TEXT' }\n"
FIRST = [name for number in range(40) if place_of(name := f"agent{number}") < 50][:2]
SECOND = [name for number in range(40) if place_of(name := f"agent{number}") >= 50][:2]


@dataclass
class Rolling:
    """A master whose production is a version, and nodes that have run with it."""

    site: WiredSite
    repository: ControlRepository

    async def run(self, node: str, *, fails: bool = False, extra: bool = False) -> tuple[str, str]:
        """Do an agent's run; return the content of the file in its catalog, and the version."""
        client = await self.site.client(node)
        facts = quote_plus(quote(json.dumps({"name": node, "values": {}}), safe=""))
        body = f"facts_format=application%2Fjson&facts={facts}".encode()
        answer = await client.ask("POST", f"{V3}/catalog/{node}?environment=production", body, Content_Type=FORM)
        assert answer.status == 200, answer.text
        catalog = json.loads(answer.body)
        file = next(each for each in catalog["resources"] if each["type"] == "File")
        report = report_of(catalog, node, "0d1c2b3a-0000-4000-8000-000000000000")
        event = {
            "property": "mode" if extra else "content",
            "status": "failure" if fails else "success",
            "message": "read-only file system",
        }
        report["resource_statuses"]["File[/tmp/motd]"] |= {"failed": fails, "changed": not fails, "events": [event]}
        report |= {"status": "failed" if fails else "changed", "code_id": catalog["code_id"]}
        put = await client.ask(
            "PUT", f"{V3}/report/{node}?environment=production", json.dumps(report).encode(), Content_Type="application/json"
        )
        assert put.status == 200, put.text
        await client.close()
        return file["parameters"]["content"], catalog["code_id"]

    async def deploy(self, *words: str) -> tuple[int, str, str]:
        """Run `puppet deploy production` in a process of its own: its signals are the main thread's."""
        argv = [sys.executable, "-m", "bunraku", "deploy", "production", *words, *self.options]
        code, out, err = await run_output(argv, timeout=300, most=1 << 20, environ=os.environ, what="deploy", folder=str(Path.cwd()))
        return code, out.decode(), err

    @property
    def options(self) -> list[str]:
        settings = self.site.settings
        paths = {name: getattr(settings, name) for name in ("confdir", "vardir", "rundir", "logdir")}
        return [*(f"--{name}={path}" for name, path in paths.items()), "--certname=localhost", "--user=root"]

    async def puppet(self, *words: str) -> tuple[int, str, str]:
        """Run a command beside the master; return its exit code and output."""

        def run() -> tuple[int, str, str]:
            out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
            with redirect_stdout(out), redirect_stderr(err):
                code = main([*words, *self.options])
            return code, *(stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]

        return await asyncio.to_thread(run)

    async def start(self, text: str, *words: str) -> tuple[int, str, str]:
        await asyncio.to_thread(self.repository.commit, {"manifests/site.pp": SITE.replace("TEXT", text)})
        return await self.puppet("rollout", "start", "production", "--waves=50%; 100%", "--wait=0", *words)

    async def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads((await self.puppet("rollout", "status", "production", "--json"))[1])
        return status


@pytest.fixture
async def rolling(tmp_path: Path) -> AsyncIterator[Rolling]:
    (tmp_path / "conf" / "code" / "environments").mkdir(parents=True)
    repository = ControlRepository(tmp_path / "control")
    repository.commit({"manifests/site.pp": SITE.replace("TEXT", "one")})
    (tmp_path / "conf" / "puppet.conf").write_text(f"[master]\ndeploy_repository = {repository.folder}\nstore = none\n")
    flags = {
        **{name: str(tmp_path / name[:-3]) for name in ("confdir", "vardir", "rundir", "logdir")},
        "certname": "localhost", "autosign": "true", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0",
        "compile_workers": "1", "store": "none", "user": "root",
    }  # fmt: skip
    settings = load(MasterSettings, section="master", flags=flags)
    async with running(settings) as master:
        site = Rolling(WiredSite(tmp_path, settings, master), repository)
        code, _, err = await site.deploy()
        assert code == 0, err
        for node in (*FIRST, *SECOND):
            assert (await site.run(node))[0] == "one"
        try:
            yield site
        finally:
            for client in site.site.open:
                await client.close()


async def test_a_good_change_reaches_the_waves_one_after_another_and_then_the_link(rolling: Rolling) -> None:
    code, out, err = await rolling.start("two")
    assert code == 0, err
    assert "production: the rollout of production is progressing, wave 50% (1 of 2)" in out
    code, _, err = await rolling.puppet("rollout", "start", "production")
    assert code == 1 and "is progressing (wave 50%)" in err
    code, _, err = await rolling.deploy()
    assert code == 1 and "puppet deploy --now --abort-rollout" in err
    assert [(await rolling.run(node))[0] for node in (FIRST[0], SECOND[0])] == ["two", "one"]
    assert (await rolling.run(FIRST[1]))[0] == "two"
    assert [(await rolling.run(node))[0] for node in SECOND] == ["two", "two"]
    link = rolling.site.settings.environmentpath[0] / "production"
    await until(lambda: (link / "manifests/site.pp").read_text() == SITE.replace("TEXT", "two"))
    code, out, _ = await rolling.puppet("rollout", "watch", "production")
    assert code == 0 and "completed" in out
    code, _, err = await rolling.puppet("rollout", "start", "production")
    assert code == 1 and "There is nothing to roll out." in err


async def test_a_change_that_breaks_a_node_stops_and_an_emergency_has_a_way(rolling: Rolling) -> None:
    await rolling.start("two")
    assert (await rolling.run(FIRST[0], fails=True))[0] == "two"
    code, out, _ = await rolling.puppet("rollout", "status", "production")
    assert code == 4
    assert f"! failed: File[/tmp/motd]: read-only file system (1 node: {FIRST[0]})" in out
    assert [(await rolling.run(node))[0] for node in (*FIRST, SECOND[0])] == ["two", "one", "one"], "it is stopped"
    code, out, err = await rolling.deploy("--now", "--abort-rollout")
    assert code == 0, err
    assert "Notice: Aborted the rollout of production" in out
    assert [(await rolling.run(node))[0] for node in (FIRST[0], SECOND[0])] == ["two", "two"]
    assert (await rolling.status())["status"] == "aborted"


async def test_more_than_the_preview_said_is_rolled_back(rolling: Rolling) -> None:
    await rolling.start("two", "--on-failure=rollback")
    await rolling.run(FIRST[0], extra=True)
    status = await rolling.status()
    assert (status["status"], status["problems"][0]["message"]) == ("rolled-back", "File[/tmp/motd] mode")
    assert [(await rolling.run(node))[0] for node in FIRST] == ["one", "one"]


async def test_what_does_not_compile_reaches_no_node(rolling: Rolling) -> None:
    code, _, err = await rolling.start("two' + $nowhere + 'x")
    assert code == 4, err
    assert "! new error" in err and "The rollout of production did not begin: the catalogs of 4 nodes no longer compile" in err
    assert [(await rolling.run(node))[0] for node in FIRST] == ["one", "one"]
    code, _, err = await rolling.puppet("rollout", "status", "production")
    assert code == 1 and "There is no rollout of production" in err


@pytest.mark.full
async def test_a_rollout_is_started_over_http_by_who_may(rolling: Rolling) -> None:
    url, client = "/puppet/v1/rollouts", await rolling.site.client(FIRST[0])

    async def start(text: str, **options: str) -> RawAnswer:
        await asyncio.to_thread(rolling.repository.commit, {"manifests/site.pp": SITE.replace("TEXT", text)})
        body = {"environment": "production", "action": "start", "waves": "50%; 100%", "wait": "0", "noop_first": "false", **options}
        return await client.ask("POST", url, json.dumps(body).encode(), Content_Type="application/json")

    client.timeout = 300.0
    assert (await start("two")).status == 403
    (rolling.site.settings.confdir / "auth.conf").write_text(f"path {url}\nauth yes\nallow {FIRST[0]}\n")
    await rolling.site.master.reload()
    answer = await start("two' + $nowhere + 'x")
    assert answer.status == 409 and "the catalogs of 4 nodes no longer compile" in json.loads(answer.text)["message"], answer.text
    answer = await start("two", on_failure="rollback")
    assert (answer.status, json.loads(answer.text)["on_failure"]) == (200, "rollback"), answer.text
    assert (await rolling.run(FIRST[1]))[0] == "two"


async def test_a_pause_an_abort_and_a_restart_in_between(rolling: Rolling) -> None:
    await rolling.start("two", "--noop-first")
    assert (await rolling.puppet("rollout", "pause", "production", "--reason", "lunch"))[0] == 0
    assert (await rolling.puppet("rollout", "list"))[
        1
    ] == "production: the rollout of production is paused, wave 50% (1 of 2, noop): lunch\n"
    assert (await rolling.puppet("rollout", "abort", "production"))[0] == 0
    assert (await rolling.puppet("rollout", "resume", "production"))[0] == 1
    assert (await rolling.run(FIRST[0]))[0] == "one"
