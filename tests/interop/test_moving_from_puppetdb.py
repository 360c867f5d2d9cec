"""A site moves from Debian's PuppetDB to a master's store by the commands of docs/store.md, over TLS."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bunraku.puppet import main
from tests.support.archives import archive_contents
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, clean_environment, master
from tests.support.real_puppetdb import RealPuppetDb, missing_programs, real_puppetdb

ROOT = Path(__file__).parents[2]
DATASET: list[dict[str, Any]] = json.loads((ROOT / "tests/conformance/puppetdb/dataset.json").read_text("utf-8"))
FOREVER = "50y"  # the data set is old
STORED = 60.0  # seconds until an import is stored

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.skipif(bool(missing_programs()), reason=missing_programs())]


def documented_commands() -> list[str]:
    """Return the commands of the section about moving, in their order."""
    section = (ROOT / "docs/store.md").read_text().partition("## Moving from PuppetDB\n")[2].partition("\n## ")[0]
    return [line.strip() for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines() if line.strip()]


def submit_dataset(puppetdb: RealPuppetDb) -> None:
    for case in DATASET:
        name = case["command"].replace(" ", "_")
        parameters = {"command": name, "version": case["version"], "certname": case["certname"], "secondsToWaitForCompletion": 30}
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        url = f"{puppetdb.url}/pdb/cmd/v1?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(case["payload"]).encode(), headers), timeout=60) as answer:
            answer.read()


class Administrator:
    """Somebody at the shell of the new master's host, where the two services have other addresses than in the documentation."""

    def __init__(self, folder: Path, process: MasterProcess, addresses: dict[str, str]) -> None:
        folder.mkdir()
        program = folder / "puppet"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m bunraku "$@" {shlex.join(command_options(process))}\n')
        program.chmod(0o755)
        self.environ = clean_environment(PATH=f"{folder}:/usr/bin:/bin", PYTHONPATH=str(ROOT))
        self.addresses = addresses

    def call(self, command: str) -> str:
        for documented, real in self.addresses.items():
            command = command.replace(documented, real)
        assert "example.com" not in command
        done = subprocess.run(["/bin/bash", "-o", "pipefail", "-c", command], env=self.environ, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def command_options(process: MasterProcess) -> Sequence[str]:
    """Return the options that say where the files of a master are."""
    options = dict(zip(process.options[::2], process.options[1::2], strict=True))
    return [f"{name}={options[name]}" for name in ("--confdir", "--vardir", "--rundir", "--logdir", "--certname")]


def archive_of(path: Path, *options: str) -> dict[str, Any]:
    path.unlink(missing_ok=True)
    assert main(["db", "export", str(path), *options]) == 0
    return archive_contents(path.read_bytes())


def test_a_site_moves_by_the_documented_commands(tmp_path: Path) -> None:
    kept = {f"store_{name}_ttl": FOREVER for name in ("node", "node_purge", "report")}
    store = {"store": "sqlite", "store_bindaddress": "127.0.0.1", "key_type": "rsa"}
    with (
        reserved_port() as store_port,
        reserved_port() as puppetdb_port,
        master(tmp_path / "master", store_port=str(store_port), **store, **kept) as process,
    ):
        process.start()
        ssl = tmp_path / "master/conf/ssl"
        files = {
            "ssl-key": ssl / "private_keys/localhost.pem",
            "ssl-cert": ssl / "certs/localhost.pem",
            "ssl-ca-cert": ssl / "certs/ca.pem",
        }
        jetty = f"ssl-host = 127.0.0.1\nssl-port = {puppetdb_port}\n" + "".join(f"{name} = {path}\n" for name, path in files.items())
        with real_puppetdb(tmp_path / "puppetdb", jetty) as puppetdb:
            submit_dataset(puppetdb)
            known = archive_of(tmp_path / "theirs.tgz", "--url", puppetdb.url)
            assert len(known) == 36
            hosts = {"puppetdb.example.com:8081": f"localhost:{puppetdb_port}", "store.example.com:8081": f"localhost:{store_port}"}
            administrator = Administrator(tmp_path / "bin", process, hosts)
            moving, status, *queries = documented_commands()
            for _ in range(2):  # and once more at the end
                administrator.call(moving)
                deadline = time.monotonic() + STORED
                while archive_of(tmp_path / "ours.tgz", *command_options(process)) != known:
                    assert time.monotonic() < deadline, administrator.call(status)
                    time.sleep(0.3)
            counts = [json.loads(administrator.call(query)) for query in queries]
            assert len(counts) == 2 and counts[0] == counts[1] and counts[0][0]["count"] > 1
