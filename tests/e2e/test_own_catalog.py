"""`puppet catalog download` and `apply`, `puppet plugin download`, `puppet report submit`: parts of a run, against our master."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.support.pair import NAME, Pair
from tests.support.processes import clean_environment

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


async def puppet(pair: Pair, *words: str) -> tuple[int, str, str]:
    """A command on the agent's machine: its exit code and what it printed."""
    root = pair.root / "agent"
    where = [f"--confdir={root}", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run", f"--codedir={root}/code"]
    asked = [*words, *where, "--server=localhost", f"--masterport={pair.port}", f"--certname={NAME}", "--color=false", "--ruby_facts=false"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bunraku.puppet", *asked),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=CHECKOUT,
        env=clean_environment(),
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 120)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_catalog_that_was_downloaded_is_applied_when_it_is_wanted(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run(noop=True)
        kept = pair.root / "agent/var/client_data/catalog" / f"{NAME}.json"
        assert not kept.exists() and not pair.stage.exists()
        code, out, err = await puppet(pair, "catalog", "download")
        assert (code, out, err) == (0, f"Notice: Saved catalog for {NAME} to {kept}\n", "")
        assert kept.exists() and not pair.stage.exists()
        pair.write("code/environments/production/manifests/site.pp", "fail('nobody asks for it again')")
        code, out, err = await puppet(pair, "catalog", "apply", "--terminus", "json", "--detailed_exitcodes")
        assert (code, err) == (2, "")
        assert pair.contents()["plain"] == "plain\n"
        assert len(pair.reports()) == 1  # that of the first run


async def test_a_catalog_is_fetched_and_applied_at_once(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run(noop=True)
        code, out, err = await puppet(pair, "catalog", "apply", "--catalog_terminus", "rest", "--detailed_exitcodes")
        assert (code, err) == (2, "")
        assert "File" in out and pair.contents()["tree/sub/two"] == "2\n"


async def test_a_catalog_is_compiled_here_and_applied(pair: Pair) -> None:
    manifests = pair.root / "agent/code/environments/production/manifests"
    manifests.mkdir(parents=True)
    (manifests / "site.pp").write_text("notify { 'compiled here': }")
    async with pair.mastered():
        await pair.run(noop=True)
        code, out, _ = await puppet(pair, "catalog", "apply")
        assert code == 0 and "Notice: compiled here\n" in out


@pytest.mark.parametrize(
    ("terminus", "message"), [("nosuch", "There is no terminus nosuch for catalog"), ("json", f"Could not find catalog for {NAME}")]
)
async def test_what_cannot_be_applied_is_told(terminus: str, message: str, pair: Pair) -> None:
    async with pair.mastered():
        await pair.run(noop=True)
        code, _, err = await puppet(pair, "catalog", "apply", "--terminus", terminus)
        assert code == 1 and f"Error: {message}" in err and not pair.stage.exists()


async def test_plugins_come_from_the_server_of_the_list_that_answers(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run(noop=True, pluginsync=False)
        code, out, err = await puppet(pair, "plugin", "download", "--server_list", f"localhost:1,localhost:{pair.port}")
        assert code == 0 and err.count("\n") == 1
        assert err.startswith("Warning: Unable to connect to server from server_list setting: localhost:1: ")
        assert f"{pair.root}/agent/var/lib/facter/from_python.py" in out


async def test_a_report_that_was_kept_is_sent_later(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(report=False)
        assert ran.report is not None and pair.reports() == []
        code, out, err = await puppet(pair, "report", "submit")
        assert (code, out, err) == (0, f"Notice: Uploaded report for {NAME}\n", "")
        stored = plainyaml.loads(pair.reports()[0].read_bytes())
        assert stored["transaction_uuid"] == ran.report.transaction_uuid
        assert stored["resource_statuses"].keys() == ran.report.resource_statuses.keys()
        (pair.root / "foreign.yaml").write_text("just: data\n")
        for file in ("nosuch.yaml", "foreign.yaml"):
            code, _, err = await puppet(pair, "report", "submit", str(pair.root / file))
            assert code == 1 and err.startswith(f"Error: Could not read the report {pair.root}/{file}: ")
        assert len(pair.reports()) == 1
