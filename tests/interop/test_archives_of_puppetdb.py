"""Archives beside Debian's PuppetDB: what leaves one comes back into it, by our import and by its own."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunraku.puppet import main
from tests.support.archives import archive_contents
from tests.support.real_puppetdb import RealPuppetDb, missing_programs, real_puppetdb

DATASET: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "conformance/puppetdb/dataset.json").read_text("utf-8"))
STORED = 60.0  # seconds until an import is stored

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.skipif(bool(missing_programs()), reason=missing_programs())]


@pytest.fixture(scope="module")
def puppetdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPuppetDb]:
    """A PuppetDB that holds the recorded data set."""
    with real_puppetdb(tmp_path_factory.mktemp("puppetdb")) as database:
        for case in DATASET:
            parameters = {
                "command": case["command"].replace(" ", "_"),
                "version": case["version"],
                "certname": case["certname"],
                "secondsToWaitForCompletion": 30,
            }
            post(f"{database.url}/pdb/cmd/v1?{urllib.parse.urlencode(parameters)}", case["payload"])
        yield database


def post(url: str, value: Any) -> None:
    request = urllib.request.Request(url, json.dumps(value).encode(), {"Content-Type": "application/json", "Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def forget_all(database: RealPuppetDb) -> None:
    """Delete every node with its data."""
    for certname in {case["certname"] for case in DATASET} | {case["payload"]["certname"] for case in DATASET}:
        post(f"{database.url}/pdb/admin/v1/cmd", {"command": "delete", "version": 1, "payload": {"certname": certname}})


def export(database: RealPuppetDb, path: Path) -> Path:
    path.unlink(missing_ok=True)
    assert main(["db", "export", str(path), "--url", database.url]) == 0
    return path


def wait_for(database: RealPuppetDb, path: Path, expected: dict[str, Any]) -> None:
    """Wait until a PuppetDB holds what is expected, and nothing else."""
    deadline = time.monotonic() + STORED
    while (found := archive_contents(export(database, path).read_bytes())) != expected:
        if time.monotonic() > deadline:
            assert found == expected
        time.sleep(0.3)


def test_what_is_exported_comes_back_by_our_import_and_by_puppetdbs_own(puppetdb: RealPuppetDb, tmp_path: Path) -> None:
    archive = export(puppetdb, tmp_path / "all.tgz")
    stored = archive_contents(archive.read_bytes())
    assert len(stored) == 36

    forget_all(puppetdb)
    assert archive_contents(export(puppetdb, tmp_path / "empty.tgz").read_bytes()) == {}
    assert main(["db", "import", str(archive), "--url", puppetdb.url]) == 0
    wait_for(puppetdb, tmp_path / "ours.tgz", stored)

    forget_all(puppetdb)
    answer = subprocess.run(
        ["curl", "-sS", "-F", f"archive=@{archive}", f"{puppetdb.url}/pdb/admin/v1/archive"], capture_output=True, text=True, timeout=60
    )
    assert json.loads(answer.stdout) == {"ok": True}
    known = {name: payload for name, payload in stored.items() if "/deactivate_node/" not in name}
    wait_for(puppetdb, tmp_path / "theirs.tgz", known)
