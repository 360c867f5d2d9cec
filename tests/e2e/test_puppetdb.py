"""Our master in front of a PuppetDB, which is a fake: what reaches it in the runs of our agents, and what they collect from it."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from certs import keys
from tests.support.fake_puppetdb import MemoryPuppetDb
from tests.support.fake_server import FakeMaster
from tests.support.pair import Pair, Ran
from tests.support.throwaway_ca import ThrowAwayCa

pytestmark = [pytest.mark.slow, pytest.mark.works_with("PuppetDB behind this master", "runs with a fake PuppetDB")]

MANIFEST = """
node 'web1.test' {
  @@file { 'ROOT/from-web1': content => "web1 ${facts['greeting']}", tag => 'Shared' }
  @@notify { 'not for files': }
  file { 'ROOT/own': content => Sensitive('canary') }
}
node default {
  File <<| tag == 'Shared' |>> { mode => '0640' }
  notify { "asked ${puppetdb_query('nodes{}').length}": }
}
"""


class Fleet:
    """A master, its PuppetDB, and agents."""

    def __init__(self, pair: Pair, puppetdb: MemoryPuppetDb) -> None:
        self.pair = pair
        self.puppetdb = puppetdb

    async def run(self, name: str) -> Ran:
        root = self.pair.root / name
        folders = {"confdir": str(root), "vardir": str(root / "var"), "logdir": str(root / "log"), "rundir": str(root / "run")}
        facts = root / "facts.d"
        facts.mkdir(parents=True, exist_ok=True)
        return await self.pair.run(certname=name, pluginfactdest=str(facts), **folders)


@asynccontextmanager
async def fleet_of(root: Path, conf: str = "") -> AsyncIterator[Fleet]:
    pair = Pair(root, manifest=MANIFEST.replace("ROOT", str(root / "stage")))
    pair.write("code/environments/production/modules/stage/facts.d/greeting.txt", "greeting=hello\n")
    pair.stage.mkdir()
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    pair.write("puppetdb.conf", f"[main]\nserver_urls = https://localhost:{port}\n{conf}")
    pair.write("routes.yaml", "---\nmaster:\n  facts: {terminus: puppetdb, cache: yaml}\n")
    puppetdb = MemoryPuppetDb()
    async with pair.mastered(storeconfigs=True, reports="store,puppetdb"):
        folder = root / "master/ssl/ca"
        certificate = x509.load_pem_x509_certificate((folder / "ca_crt.pem").read_bytes())
        ca = ThrowAwayCa(keys.load(folder / "ca_key.pem"), certificate, serial=10_000)
        async with FakeMaster(ca.serving(root), puppetdb, port=port).running():
            yield Fleet(pair, puppetdb)


async def test_what_one_node_exports_another_one_collects(tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        first, second = await fleet.run("web1.test"), await fleet.run("col1.test")
        again = await fleet.run("col1.test")
        stored = fleet.puppetdb
    assert (first.code, second.code, again.code) == (2, 2, 2)  # notify is a change each time
    assert [name for name, _ in stored.commands] == ["replace_facts", "replace_catalog", "store_report"] * 3
    assert (tmp_path / "stage/from-web1").read_text() == "web1 hello"
    assert (tmp_path / "stage/from-web1").stat().st_mode & 0o777 == 0o640
    assert (
        stored.queries
        == [
            "nodes{}",
            ["and", ["=", "type", "File"], ["=", "exported", True], ["not", ["=", "certname", "col1.test"]], ["=", "tag", "shared"]],
        ]
        * 2
    )

    (_, facts), (_, catalog), (_, report) = stored.commands[:3]
    assert facts["values"]["trusted"]["authenticated"] == "remote" and facts["producer"] == catalog["producer"] == "localhost"
    assert catalog["transaction_uuid"] == report["transaction_uuid"] and catalog["catalog_uuid"] == report["catalog_uuid"]
    assert [resource["title"] for resource in catalog["resources"] if resource["exported"]] == [
        f"{tmp_path}/stage/from-web1",
        "not for files",
    ]
    assert "canary" not in json.dumps(catalog) and (tmp_path / "stage/own").read_text() == "canary"
    assert report["status"] == "changed" and report["certname"] == "web1.test"


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("replace_facts", "Failed to execute '/pdb/cmd/v1"),
        ("replace_catalog", "Failed to execute '/pdb/cmd/v1"),
        ("query", "Failed to execute '/pdb/query/v4"),
    ],
)
async def test_a_puppetdb_that_is_down_fails_the_catalog(tmp_path: Path, broken: str, error: str, caplog: pytest.LogCaptureFixture) -> None:
    async with fleet_of(tmp_path) as fleet:
        fleet.puppetdb.broken = (broken,)
        run = await fleet.run("col1.test")
    assert run.code == 1
    message = next(text for text in caplog.messages if text.startswith("Could not retrieve catalog from remote server"))
    assert "Error 500 on SERVER" in message and error in message


async def test_with_soft_failures_only_what_is_asked_fails(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "soft_write_failure = true\n") as fleet:
        fleet.puppetdb.broken = ("replace_facts", "replace_catalog", "store_report")
        run = await fleet.run("col1.test")
        assert run.code == 2 and fleet.puppetdb.commands == []
        fleet.puppetdb.broken = ("query",)
        again = await fleet.run("col1.test")
    assert again.report is not None and again.report.cached_catalog_status == "on_failure"
