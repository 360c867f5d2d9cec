"""A site moves from Debian's PuppetDB to a master's store by the commands of docs/store.md, over TLS."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bunraku.puppet import main
from tests.support.archives import archive_contents
from tests.support.documentation import Shell, block
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, master
from tests.support.real_puppetdb import RealPuppetDb, missing_programs, real_puppetdb

ROOT = Path(__file__).parents[2]
DATASET: list[dict[str, Any]] = json.loads((ROOT / "tests/conformance/puppetdb/dataset.json").read_text("utf-8"))
FOREVER = "50y"  # the data set is old
STORED = 60.0  # seconds until an import is stored

pytestmark = [
    pytest.mark.works_with("The built-in store", "moving from PuppetDB 7.12.1"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_programs()), reason=missing_programs()),
]


def submit_dataset(puppetdb: RealPuppetDb) -> None:
    for case in DATASET:
        name = case["command"].replace(" ", "_")
        parameters = {"command": name, "version": case["version"], "certname": case["certname"], "secondsToWaitForCompletion": 30}
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        url = f"{puppetdb.url}/pdb/cmd/v1?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(case["payload"]).encode(), headers), timeout=60) as answer:
            answer.read()


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
            shell = Shell(tmp_path / "shell", {"": command_options(process)}, hosts, {})
            moving = block("docs/store.md", "sh", "import").body
            status, *queries = block("docs/store.md", "sh", "compare").body.splitlines()
            for _ in range(2):  # and once more at the end
                shell.type(moving)
                deadline = time.monotonic() + STORED
                while archive_of(tmp_path / "ours.tgz", *command_options(process)) != known:
                    assert time.monotonic() < deadline, shell.type(status)
                    time.sleep(0.3)
            counts = [json.loads(shell.type(query)) for query in queries]
            assert len(counts) == 2 and counts[0] == counts[1] and counts[0][0]["count"] > 1
