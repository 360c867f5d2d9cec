"""A master's watch: which version runs get, what reaches the state and when, and what is done outside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from environments.revisions import DEPLOYMENT
from environments.runs import current_versions
from master.observability.metrics import Metrics
from master.orders.waiting import WaitingAgents
from master.pools.compiled_catalog import CompiledCatalog
from master.pools.jobs import CompileJob
from master.rollouts.machine import Rollout, RolloutCommand, RolloutNode, RolloutPlan, advance, begin
from master.rollouts.prediction import prediction_of
from master.rollouts.storage import RolloutFiles
from master.rollouts.watch import RolloutWatch
from master.rollouts.waves import Wave
from shared.errors import CompileError, Denied, PuppetError
from shared.models.report import Report
from tests.support.preview_results import change, result
from tests.support.waiting import turns, until

PLAN = RolloutPlan("production", "old", "new", (Wave("canary", query="nodes { }", members=frozenset({"web1"})), Wave("all", 100.0)), wait=0)
CATALOG = {
    "name": "web1",
    "resources": [{"type": "Class", "title": "main"}, {"type": "File", "title": "/x", "parameters": {"mode": "0600"}}],
}


@dataclass
class Site:
    """An environment with two versions, and a master's watch of it whose clock stands still."""

    root: Path
    switched: list[str] = field(default_factory=list)
    error: str = ""
    now: float = 1000.0
    agents: WaitingAgents = field(default_factory=lambda: WaitingAgents(lambda: 100))

    def __post_init__(self) -> None:
        for name in ("old", "new"):
            folder = self.root / ".versions" / "production" / name
            folder.mkdir(parents=True)
            (folder / DEPLOYMENT).write_text(json.dumps({"signature": name}))
        (self.root / "production").symlink_to(".versions/production/old")
        self.restart()

    def restart(self) -> None:
        self.files = RolloutFiles([self.root], lambda: self.now)
        root_of = lambda name: str(self.root / name)  # noqa: E731
        self.watch = RolloutWatch(
            self.files, root_of, current_versions(root_of), self.switch, timeout=10, period=0.01, idle=0.01, gathering=0,
            agents=self.agents, clock=lambda: self.now,
        )  # fmt: skip

    async def switch(self, environment: str, version: str) -> None:
        if self.error:
            raise Denied(self.error)
        self.switched.append(version)

    def start(self, **more: Any) -> None:
        stored = self.files.load("production")
        rollout = begin(replace(PLAN, **more), ["web1", "web2"], self.now)
        self.files.save(rollout, stored.revision if stored else 0)

    @property
    def rollout(self) -> Rollout:
        stored = self.files.load("production")
        assert stored is not None
        return stored.rollout

    def node(self, name: str) -> RolloutNode:
        return self.rollout.nodes[name]

    def version_of(self, client: str) -> str:
        return Path(self.watch.version_for(client, "production")).name

    async def report(self, node: str, version: str = "new", **more: Any) -> None:
        """Let a node report, and look at the state as the master does."""
        data = {"host": node, "environment": "production", "status": "unchanged", "code_id": version, **more}
        reporting = asyncio.create_task(self.watch.reported(Report.from_data(data)))
        while not reporting.done():
            await self.watch.look()
            await asyncio.sleep(0)
        await reporting

    async def compile(self, node: str, version: str, outcome: Any = None, *, looks: bool = True) -> Any:
        async def compiled(job: CompileJob) -> CompiledCatalog:
            if outcome is not None:
                raise outcome
            return CompiledCatalog.of(json.dumps(CATALOG).encode())

        pin = str(self.root / ".versions" / "production" / version)
        try:
            catalog = await self.watch.catalog(CompileJob(node, "production", pin=pin), compiled)
            return json.loads(catalog.body)
        finally:
            if looks:
                await self.watch.look()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Keep watching until a condition holds."""
        keeping = asyncio.create_task(self.watch.keep_watch())
        try:
            await until(condition)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_runs_get_the_version_of_their_wave_and_without_a_rollout_that_of_the_link(site: Site) -> None:
    assert [site.version_of(name) for name in ("web1", "web2", "")] == ["old"] * 3
    site.start()
    assert [site.version_of(name) for name in ("web1", "web2", "")] == ["new", "old", "old"]
    (site.root / "production").unlink()
    (site.root / "production").symlink_to(".versions/production/new")
    assert site.version_of("web2") == "old", "the rollout decides, not the link"
    site.files.save(advance(site.rollout, [RolloutCommand("abort")], site.now), 1)
    assert site.version_of("web2") == "new"


async def test_a_report_is_in_the_stored_state_when_it_is_answered(site: Site) -> None:
    site.start()
    await site.report("web1", status="changed")
    site.restart()
    assert site.node("web1").status == "changed" and site.rollout.step_name == "all"
    assert site.version_of("web2") == "new"


async def test_a_report_without_a_code_id_is_of_the_catalog_that_the_node_got_last(site: Site) -> None:
    site.start(wait=60)
    await site.compile("web1", "new")
    assert site.node("web1").status == "running"
    await site.report("web1", "")
    assert site.node("web1").status == "good"


async def test_a_report_right_behind_its_catalog_counts_although_the_master_has_not_looked_since_the_rollout_began(site: Site) -> None:
    site.start()
    await site.compile("web1", "new", looks=False)
    await site.report("web1", "", status="changed")
    assert site.node("web1").status == "changed"


async def test_a_catalog_that_does_not_compile_stops_the_rollout(site: Site) -> None:
    site.start()
    with pytest.raises(CompileError):
        await site.compile("web1", "new", CompileError("Unknown variable: 'x'"))
    assert (site.rollout.status, site.node("web1").problems) == ("stopped", ("Unknown variable: 'x'",))
    assert site.version_of("web1") == "old", "it never got the new version"


async def test_a_wave_in_noop_mode_gets_catalogs_in_noop_mode(site: Site) -> None:
    site.start(noop_first=True)
    assert (await site.compile("web2", "old")) == CATALOG
    simulated = (await site.compile("web1", "new"))["resources"]
    assert simulated == [CATALOG["resources"][0], {"type": "File", "title": "/x", "parameters": {"mode": "0600", "noop": True}}]
    await site.report("web1")
    assert (await site.compile("web1", "new")) == CATALOG


async def test_a_run_that_simulates_does_so_also_when_the_rollout_ends_in_between(site: Site) -> None:
    site.start(noop_first=True)
    site.files.save(advance(site.rollout, [RolloutCommand("abort")], site.now), 1)
    assert (await site.compile("web1", "new"))["resources"][1]["parameters"]["noop"] is True
    (site.root / "production").unlink()
    (site.root / "production").symlink_to(".versions/production/new")
    assert (await site.compile("web1", "new")) == CATALOG, "it was deployed since then"


async def test_a_change_that_the_preview_did_not_name_stops_the_rollout(site: Site) -> None:
    site.files.save_prediction(
        "production", prediction_of("new", result({"web1": "changed"}, [change("File[/x]", ["web1"], parameter="mode")]))
    )
    site.start(wait=60)

    def changed(ref: str, attribute: str, **more: Any) -> dict[str, Any]:
        event = {"property": attribute, "status": "success", **more}
        return {ref: {"title": "x", "resource": ref, "resource_type": ref.partition("[")[0], "events": [event], "containment_path": [ref]}}

    statuses = changed("File[/x]", "mode") | changed("File[/y]", "mode", corrective_change=True)
    await site.report("web1", status="changed", resource_statuses=statuses)
    assert site.node("web1").status == "changed"
    await site.report("web1", status="changed", resource_statuses=changed("File[/x]", "owner"))
    assert (site.rollout.status, site.node("web1").problems) == ("stopped", ("File[/x] owner",))


async def test_other_processes_changes_are_seen_and_none_is_lost(site: Site) -> None:
    site.start(wait=60)
    other = RolloutFiles([site.root])
    stored = other.load("production")
    assert stored is not None
    other.save(advance(stored.rollout, [RolloutCommand("pause")], site.now), stored.revision)
    await site.report("web1")
    assert (site.rollout.status, site.node("web1").status) == ("paused", "good")


async def test_the_link_is_switched_at_the_end_and_a_failure_is_in_the_status(site: Site) -> None:
    site.start()
    await site.report("web1")
    site.error = "not mine"
    await site.report("web2")
    await site.until(lambda: site.rollout.reason != "")
    assert (site.rollout.status, site.rollout.reason) == ("completing", "not mine")
    site.error = ""
    site.restart()
    await site.until(lambda: site.rollout.status == "completed")
    assert site.switched == ["new"]


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_programs_of_the_site_are_asked_and_told(site: Site, tmp_path: Path) -> None:
    check = program(tmp_path / "check", f"cat > {tmp_path}/asked; echo >> {tmp_path}/times; echo latency is high >&2; exit 3")
    notify = program(tmp_path / "notify", f"cat > {tmp_path}/told.new; mv {tmp_path}/told.new {tmp_path}/told")
    site.start(check=check, notify=notify)
    await site.report("web1")
    await site.until(lambda: site.rollout.announced == "stopped")
    assert json.loads((tmp_path / "asked").read_text())["next"]["action"] == "check"
    assert (tmp_path / "times").read_text() == "\n", "it is asked once"
    told = json.loads((tmp_path / "told").read_text())
    assert (told["status"], told["reason"]) == ("stopped", "the check failed: latency is high (wave canary)")


async def test_a_program_that_is_not_there_does_not_agree(site: Site) -> None:
    site.start(check=str(site.root / "absent"))
    await site.report("web1")
    await site.until(lambda: site.rollout.status == "stopped")
    assert "/absent: No such file or directory" in site.rollout.reason


async def test_who_writes_to_a_shared_state_does_not_choose_a_program(site: Site, tmp_path: Path) -> None:
    check = program(tmp_path / "check", f"touch {tmp_path}/ran")
    site.start(check=check)
    site.watch.programs = tmp_path / "rollout.d"
    await site.report("web1")
    await site.until(lambda: site.rollout.status == "stopped")
    assert f"is not in {tmp_path}/rollout.d" in site.rollout.reason and not (tmp_path / "ran").exists()


async def test_a_state_that_cannot_be_read_leaves_runs_their_version_and_reports_their_answer(site: Site, caplog: Any) -> None:
    site.start()
    (site.root / ".versions" / "production" / "rollout.json").write_text("{")
    site.restart()
    assert site.version_of("web1") == "old"
    await site.report("web1")
    with pytest.raises(PuppetError, match="cannot be read"):  # the node may have to simulate
        await site.compile("web1", "new")
    assert await site.compile("web1", "old") == CATALOG
    await site.watch.look()
    await site.watch.look()
    assert caplog.text.count("could not be stored: The state of a rollout") == 1, "and not each second"


async def test_without_a_rollout_nothing_is_looked_at_until_a_run_finds_one(site: Site) -> None:
    looks: list[str] = []
    environments = site.files.environments
    site.files.environments = lambda: looks.append("") or environments()  # type: ignore[func-returns-value,method-assign]
    site.watch.idle = 3600.0
    keeping = asyncio.create_task(site.watch.keep_watch())
    await until(lambda: looks)
    looks.clear()
    assert site.version_of("web1") == "old"
    site.start()
    assert (await asyncio.to_thread(site.version_of, "web1"), await asyncio.to_thread(site.version_of, "web2")) == ("new", "old")
    await until(lambda: len(looks) > 2)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_the_numbers_of_a_rollout_are_metrics(site: Site) -> None:
    metrics = Metrics()
    site.watch.describe(metrics)
    site.start(wait=60)
    await site.report("web1", status="failed")
    text = metrics.text()
    assert 'puppet_rollout_nodes{environment="production",state="failed"} 1' in text
    assert 'puppet_rollout_stopped{environment="production"} 1' in text


async def test_nodes_that_wait_run_as_soon_as_their_wave_opens_and_once_a_step(site: Site) -> None:
    site.start(run_now=True)
    waiting = {name: asyncio.create_task(site.agents.wait(name, "", 300, lambda: False)) for name in ("web1", "web2", "other")}
    await turns(1)
    await site.watch.look()
    order = await waiting["web1"]
    assert order is not None and not order.noop
    again = asyncio.create_task(site.agents.wait("web1", order.id, 300, lambda: False))
    await turns(1)
    await site.watch.look()
    assert sorted(site.agents.nodes) == ["other", "web1", "web2"]
    await site.report("web1")
    assert await waiting["web2"] is not None
    assert sorted(site.agents.nodes) == ["other", "web1"]
    for task in (again, waiting["other"]):
        task.cancel()


async def test_nodes_do_not_run_now_unless_that_is_wished(site: Site) -> None:
    site.start()
    waiting = asyncio.create_task(site.agents.wait("web1", "", 300, lambda: False))
    await turns(1)
    await site.watch.look()
    assert site.agents.nodes == ["web1"]
    waiting.cancel()
