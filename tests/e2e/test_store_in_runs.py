"""A master with a store of its own: what agents' runs leave there, and what nodes collect from each other."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from bunraku.commands.preview import main as preview
from bunraku.stores.access import StoreClient, StoreServers
from httpd.tls.trust import TrustFiles
from store.jsontext import Json, dump_json
from tests.support.pair import Pair, Ran

pytestmark = [pytest.mark.slow, pytest.mark.works_with("The built-in store", "what runs export and collect")]

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


SECRETS = """
define acct($pw) { file { "ROOT/${title}": content => $pw } }
node 'web1.test' {
  @@acct { 'secret': pw => Sensitive('canary') }
  @@acct { 'call': pw => Deferred('sprintf', ['%s', 'made']), tag => 'call' }
  @@file { 'ROOT/plain': content => Sensitive('canary'), mode => '0600' }
}
node 'col3.test' { Acct <<| tag == 'call' |>> }
node default {
  Acct <<| tag != 'call' |>>
  File <<| |>>
  file { 'ROOT/seen': content => "${puppetdb_query('resources[parameters] { exported = true }')}" }
}
"""


async def run(pair: Pair, name: str) -> Ran:
    root = pair.root / name
    folders = {"confdir": str(root), "vardir": str(root / "var"), "logdir": str(root / "log"), "rundir": str(root / "run")}
    return await pair.run(certname=name, **folders)


class Site:
    """A master with a store on SQLite, whose socket has a short name."""

    def __init__(self, root: Path, manifest: str = MANIFEST) -> None:
        self.pair = Pair(root, manifest=manifest.replace("ROOT", str(root / "stage")))
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

    async def archive(self) -> bytes:
        """Return what `puppet db export` gets, unpacked."""
        ssl = self.pair.root / "unused"
        async with (
            StoreClient(StoreServers([f"unix:{self.socket}"], TrustFiles(ssl, ssl, ssl, ssl))) as client,
            client.request("GET", "/pdb/admin/v1/archive") as answer,
        ):
            return gzip.decompress(await client.read(answer))

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


def files_with(text: bytes, *folders: Path) -> list[str]:
    """Return the files below folders that have a text in them, packed or not."""
    found = []
    for path in (each for folder in folders for each in folder.rglob("*") if each.is_file() and not each.is_symlink()):
        data = path.read_bytes()
        if text in data or (data[:2] == b"\x1f\x8b" and text in gzip.decompress(data)):
            found.append(str(path))
    return found


async def test_PDB_12_an_exported_secret_reaches_who_collects_it_and_nobody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(tmp_path, SECRETS)
    master, feature = tmp_path / "master", tmp_path / "master/code/environments/feature"
    async with site.pair.mastered(store="sqlite", store_socket=str(site.socket)):
        await run(site.pair, "web1.test")
        await site.wait_for("reports {}", 1)
        second = await run(site.pair, "col1.test")
        await site.wait_for("reports {}", 2)
        called = await run(site.pair, "col3.test")
        answers = {name: await site.ask(f"{name} {{}}") for name in ENTITIES}
        archive = await site.archive()

        shutil.copytree(feature.parent / "production", feature)
        (feature / "manifests/site.pp").write_text(site.pair.manifest.replace("content => $pw", "content => $pw, mode => '0600'"))
        folders = [f"--confdir={master}", f"--codedir={master}/code", f"--vardir={master}/var", f"--rundir={master}/run"]
        sides = ["--from", "production", "--to", "feature", "--json", "--workers", "1", "--certname", "localhost", "--nodes", "col1.test"]
        capsys.readouterr()
        await asyncio.to_thread(preview, [*sides, *folders, f"--logdir={master}/log", f"--store_socket={site.socket}"])
        previewed = capsys.readouterr().out

        key = master / "ssl/private_keys/exported.key"
        key.write_text(base64.b64encode(b"another key".ljust(64)).decode())
        third = await run(site.pair, "col2.test")

    assert (second.code, called.code) == (2, 1)
    assert any("Deferred values cannot be resolved by this agent" in line for line in caplog.messages)  # it is none that has functions
    stage = tmp_path / "stage"
    assert {path.name: path.read_text() for path in stage.iterdir() if path.name != "seen"} == {
        "secret": "canary",
        "plain": "canary",
    }
    assert (stage / "plain").stat().st_mode & 0o777 == 0o600
    assert "Sensitive [value redacted]" in (stage / "seen").read_text() and "canary" not in (stage / "seen").read_text()
    assert [name for name, rows in answers.items() if "canary" in json.dumps(rows)] == []
    assert b"web1.test" in archive and b"canary" not in archive and b"value redacted" in archive
    assert files_with(b"canary", master / "var/store", master / "var/yaml", master / "log", tmp_path / "web1.test/var") == []
    result = json.loads(previewed)
    assert (result["nodes"], result["errors"]) == ({"col1.test": "changed"}, []) and "canary" not in previewed
    assert third.code == 1
    assert any("['pw'] of web1.test is sealed with the key" in line and f"which is not in {key}" in line for line in caplog.messages), (
        caplog.messages
    )


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
