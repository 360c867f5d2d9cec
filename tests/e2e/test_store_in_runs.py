"""A master with a store of its own: what agents' runs leave there, and what nodes collect from each other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from bunraku.stores.access import StoreClient, StoreServers
from httpd.tls.trust import TrustFiles
from store.jsontext import Json, dump_json
from tests.support.pair import Pair, Ran

pytestmark = pytest.mark.slow

ENTITIES = (
    *("catalogs", "edges", "environments", "events", "fact_contents", "fact_paths", "facts", "factsets", "inventory", "nodes"),
    *("package_inventory", "packages", "reports", "resources"),
)
MANIFEST = """
node 'web1.test' {
  @@file { 'ROOT/from-web1': content => "web1 ${facts['kernel']}", tag => 'Shared' }
  file { 'ROOT/own': content => Sensitive('canary') }
  @@file { 'ROOT/hidden': content => Sensitive('canary'), tag => 'hidden' }
  @@notify { 'hidden': message => "${Sensitive('canary')}", tag => 'hidden' }
}
node default {
  File <<| tag == 'Shared' |>> { mode => '0640' }
  file { 'ROOT/known': content => puppetdb_query('nodes[certname]{ certname = "web1.test" }').map |$row| { $row['certname'] }.join(',') }
}
"""


async def run(pair: Pair, name: str) -> Ran:
    root = pair.root / name
    folders = {"confdir": str(root), "vardir": str(root / "var"), "logdir": str(root / "log"), "rundir": str(root / "run")}
    return await pair.run(certname=name, **folders)


class Site:
    """A master with a store on SQLite, whose socket has a short name."""

    def __init__(self, root: Path) -> None:
        self.pair = Pair(root, manifest=MANIFEST.replace("ROOT", str(root / "stage")))
        self.pair.stage.mkdir()
        self.socket = root / "s"

    async def ask(self, query: Json) -> list[dict[str, Json]]:
        """Ask the store in PQL or with a syntax tree, as `puppet query` does."""
        ssl = self.pair.root / "unused"
        async with StoreClient(StoreServers([f"unix:{self.socket}"], TrustFiles(ssl, ssl, ssl, ssl))) as client:
            headers = {"Content-Type": "application/json"}
            async with client.request("POST", "/pdb/query/v4", body=dump_json({"query": query}), headers=headers) as answer:
                rows: list[dict[str, Json]] = json.loads(await client.read(answer))
                return rows

    async def wait_for(self, query: Json, count: int) -> list[dict[str, Json]]:
        """Ask until there are so many rows: a command is acknowledged before it is stored."""
        async with asyncio.timeout(30):
            while len(rows := await self.ask(query)) < count:  # noqa: ASYNC110  # of another process
                await asyncio.sleep(0.05)
        return rows


async def test_what_one_node_exports_another_one_collects_from_the_store_of_the_master(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.pair.mastered(store="sqlite", store_socket=str(site.socket)):
        first = await run(site.pair, "web1.test")
        await site.wait_for('reports { certname = "web1.test" }', 1)
        second = await run(site.pair, "col1.test")
        reports = await site.wait_for("reports[certname, status] { order by certname }", 2)
        families = await site.ask('inventory[certname] { facts.kernel = "Linux" order by certname }')
        resources = await site.ask(["from", "resources", ["=", "certname", "web1.test"]])
    assert (first.code, second.code) == (2, 2)
    assert (tmp_path / "stage/from-web1").read_text() == "web1 Linux"
    assert (tmp_path / "stage/from-web1").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "stage/known").read_text() == "web1.test"
    assert reports == [{"certname": "col1.test", "status": "changed"}, {"certname": "web1.test", "status": "changed"}]
    assert families == [{"certname": "col1.test"}, {"certname": "web1.test"}]
    assert {resource["title"]: resource["exported"] for resource in resources if resource["type"] == "File"} == {
        f"{tmp_path}/stage/from-web1": True,
        f"{tmp_path}/stage/hidden": True,
        f"{tmp_path}/stage/own": False,
    }


async def test_PDB_08_nothing_sensitive_is_in_any_answer_of_the_store(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.pair.mastered(store="sqlite", store_socket=str(site.socket)):
        await run(site.pair, "web1.test")
        await site.wait_for("reports {}", 1)
        (report,) = await site.ask("reports {}")
        answers = {name: await site.ask(f"{name} {{}}") for name in ENTITIES}
    assert (tmp_path / "stage/own").read_text() == "canary"
    assert [name for name, rows in answers.items() if "canary" in json.dumps(rows)] == []
    assert {"events", "resources", "catalogs", "factsets"} <= {name for name, rows in answers.items() if rows}
    assert any("own" in json.dumps(event) for event in report["resource_events"]["data"])


async def test_a_run_waits_for_a_store_that_was_killed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.pair.mastered(store="sqlite", store_socket=str(site.socket)):
        await run(site.pair, "web1.test")
        await site.wait_for("reports {}", 1)
        os.kill(store_process(), signal.SIGKILL)
        second = await run(site.pair, "col1.test")
        await site.wait_for("reports {}", 2)
    assert second.code == 2 and (tmp_path / "stage/from-web1").read_text() == "web1 Linux"


def store_process() -> int:
    """Return the number of the store's process, a child of this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (number,) = (int(child) for child in children if b"the store of a master" in Path(f"/proc/{child}/cmdline").read_bytes())
    return number
