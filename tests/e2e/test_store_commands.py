"""A store as a site has it: `puppet db` runs, `puppet query` asks it, and an archive moves it to another one."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bunraku.puppet import main
from bunraku.stores.access import StoreClient, StoreServers
from bunraku.stores.archives import Importer
from httpd.tls.trust import TrustFiles
from store.commands.submission import Submission
from tests.support.archives import archive_contents
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DATASET = json.loads((ROOT / "tests/conformance/puppetdb/dataset.json").read_text("utf-8"))
START = 30.0  # seconds until a store runs, and until what was submitted is stored
NOWHERE = Path("/nonexistent")


def options(folder: Path) -> list[str]:
    """The options that put everything below a folder, and keep what is stored however old it is."""
    places = [f"--{name}={folder / name}" for name in ("confdir", "vardir", "logdir", "rundir")]
    return [*places, "--certname=localhost"]


@contextmanager
def running_store(folder: Path) -> Iterator[Path]:
    """Run `puppet db` without TLS; the folder of its files."""
    kept = [*(f"--store_{name}_ttl=50y" for name in ("node", "node_purge", "report")), "--store_port=0", "--user=root"]
    command = [sys.executable, "-m", "bunraku", "db", *options(folder), *kept, "--no-daemonize"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: main(["db", "status", *options(folder)]) == 0 or process.poll() is not None)
        assert process.poll() is None
        yield folder
    finally:
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=START)
    assert process.returncode == 0, text.decode()


def export(folder: Path) -> bytes:
    path = folder / "all.tgz"
    path.unlink(missing_ok=True)
    assert main(["db", "export", str(path), *options(folder)]) == 0
    return path.read_bytes()


def export_of(folder: Path, number: int) -> bytes:
    """Return the archive of a store once it holds so many commands."""
    archive = b""

    def is_whole() -> bool:
        nonlocal archive
        archive = export(folder)
        return len(archive_contents(archive)) == number

    wait_until(is_whole)
    return archive


async def submit_dataset(folder: Path) -> None:
    """Submit the recorded data set, one command after the other."""
    servers = StoreServers([f"unix:{folder / 'rundir/store.sock'}"], TrustFiles(NOWHERE, NOWHERE, NOWHERE, NOWHERE))
    async with StoreClient(servers) as client:
        importer = Importer(client)
        for case in DATASET:
            payload = json.dumps(case["payload"]).encode()
            await importer.submit_all(
                iter([Submission(case["command"], case["version"], case["certname"], None, None, payload, "identity")])
            )
    assert (importer.submitted, importer.refused) == (len(DATASET), 0)


def test_a_store_is_asked_and_moved_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_store(tmp_path / "first") as first:
        asyncio.run(submit_dataset(first))
        archive = export_of(first, 36)
    with running_store(tmp_path / "second") as second:
        assert main(["db", "import", str(first / "all.tgz"), *options(second)]) == 0
        assert archive_contents(export_of(second, 36)) == archive_contents(archive)
        for query, rows in recorded_answers("pql-507", "pql-520", "pql-547", "pql-567"):
            capsys.readouterr()
            assert main(["query", query, *options(second)]) == 0
            assert json.loads(capsys.readouterr().out) == rows
        assert main(["query", "nodes[certname,]{}", *options(second)]) == 2
    assert main(["db", "status", *options(second), "--url", f"unix:{second / 'rundir/store.sock'}"]) == 1


def recorded_answers(*cases: str) -> list[tuple[str, object]]:
    """Return queries with the rows that PuppetDB answered."""
    exchanges = json.loads((ROOT / "tests/conformance/puppetdb/pql.json").read_text("utf-8"))
    return [(found["request"]["params"]["query"], found["answer"]["body"]) for found in exchanges if found["id"] in cases]
