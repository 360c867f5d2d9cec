"""An enrolled agent that is killed in a run that has work to do: the next run does what is left, as if nothing had been."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pair import MANIFEST, NAME, Pair
from tests.support.processes import Done, OurAgent

pytestmark = pytest.mark.slow

KILLED = -9
STEPS = ["certificates", "prerun", "pluginsync", "facts", "catalog", "convert", "apply", "postrun", "report"]
POINTS = [point for step in STEPS for point in (f"agent.{step}", f"agent.{step}-done")]
BETWEEN = [
    "agent.locked",
    "agent.plugin-written",
    "agent.plugin-fetched",
    "agent.plugin-removed",
    "agent.catalog-saving",
    f"unrenamed:{NAME}.json",
    "agent.catalog-cached",
    "transaction.read:File[{stage}/plain]",
    "bucket.received",
    "bucket.stored",
    "file.written",
    "file.renamed",
    "transaction.done:File[{stage}/plain]",
    "unrenamed:state.yaml",
    "unrenamed:transactionstore.yaml",
    "unrenamed:last_run_summary.yaml",
    "agent.summary-written",
    "unrenamed:last_run_report.yaml",
    "agent.report-kept",
]
IN_GATE = [
    "agent.facts",
    "agent.plugin-fetched",
    "agent.catalog-cached",
    "bucket.stored",
    "file.written",
    "transaction.done:File[{stage}/plain]",
    "unrenamed:state.yaml",
    "agent.report",
    "unrenamed:last_run_report.yaml",
]
MODULE = "code/environments/production/modules/stage"


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    kept = f"file {{ '{tmp_path}/stage/kept': content => \"kept\\n\", backup => 'puppet' }}\n"
    pair = Pair(tmp_path, manifest=MANIFEST + kept)
    async with pair.mastered():
        yield pair


def agent_of(pair: Pair) -> OurAgent:
    hooks = {"prerun_command": "/bin/true", "postrun_command": "/bin/true"}
    return OurAgent(pair.root / "agent", pair.port, NAME, hooks)


async def run(agent: OurAgent, failpoints: str = "") -> Done:
    return await asyncio.to_thread(agent.test, failpoints=failpoints)


def disturb(pair: Pair, number: int) -> None:
    """Give the next run a plugin to fetch, one to remove, a file to mend with a backup here and one with a backup on the master."""
    (pair.root / "master" / MODULE / f"lib/facter/extra{number - 1}.rb").unlink(missing_ok=True)
    pair.write(f"{MODULE}/lib/facter/extra{number}.rb", f"# {number}\n")
    for name in ("plain", "kept"):
        (pair.stage / name).write_text(f"{name} changed by hand {number}\n")


def plugins(agent: OurAgent) -> list[str]:
    return sorted(path.name for path in (agent.root / "vardir" / "lib").rglob("extra*"))


def kept(pair: Pair, agent: OurAgent) -> str:
    """All that was ever backed up, here and on the master."""
    folders = (agent.root / "vardir" / "clientbucket", pair.root / "master" / "var" / "bucket")
    return "".join(path.read_text() for folder in folders for path in folder.rglob("contents"))


def litter(pair: Pair, agent: OurAgent) -> list[Path]:
    """Temporary files among what the run writes."""
    return [*agent.root.rglob("*.tmp"), *pair.stage.rglob(".*")]


@pytest.mark.parametrize(
    "points",
    [IN_GATE, pytest.param(POINTS + BETWEEN, marks=pytest.mark.full)],
    ids=["once of each kind", "everywhere"],
)
async def test_R_30_killed_anywhere_with_work_to_do_the_next_run_finishes_it(pair: Pair, points: list[str]) -> None:
    agent = agent_of(pair)
    assert (await run(agent)).code == 2
    disturb(pair, 0)
    undisturbed = await run(agent)
    assert undisturbed.code == 2, undisturbed.text
    assert (await run(agent)).code == 0
    whole = pair.contents()
    for number, point in enumerate(points, 1):
        disturb(pair, number)
        named = point.format(stage=pair.stage)
        killed = await run(agent, f"{named}=kill")
        assert killed.code == KILLED, f"{point}: {killed.text}"
        done = pair.contents() == whole
        reports = len(pair.reports())
        for path in litter(pair, agent):
            os.utime(path, (0, 0))  # as if the next run came an hour later

        ran = await run(agent)
        assert ran.code == (0 if done else 2), f"{point}: {ran.text}"
        assert pair.contents() == whole, point
        assert plugins(agent) == [f"extra{number}.rb"], point
        assert len(pair.reports()) == reports + 1, point
        for name in ("plain", "kept"):
            assert f"{name} changed by hand {number}\n" in kept(pair, agent), point
        assert not (agent.state / "agent_catalog_run.lock").exists(), point
        assert litter(pair, agent) == [], point
    last = await run(agent)
    assert last.code == 0, last.text


async def test_R_30_a_daemon_in_waiting_finds_no_lock_of_a_killed_run(pair: Pair) -> None:
    agent = agent_of(pair)
    assert (await run(agent, "agent.apply=kill")).code == KILLED
    assert (agent.state / "agent_catalog_run.lock").exists()
    ran = await run(agent)
    assert ran.code == 2
    assert "already in progress" not in ran
