"""Our master and our agents with Debian's PuppetDB 7.12.1: what is stored, what is collected, who is active."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography import x509

from bunraku.commands.node import deactivate, node_statuses
from certs import keys
from certs.files import bundles
from certs.keys import KeyKind
from master.puppetdb.configured import puppetdb_client
from master.puppetdb.termini import PuppetDbFacts
from shared.indirector import Request
from tests.support.pair import Pair, Ran
from tests.support.ports import reserved_port
from tests.support.real_puppetdb import RealPuppetDb, missing_programs, real_puppetdb
from tests.support.throwaway_ca import ThrowAwayCa

pytestmark = [
    pytest.mark.works_with("PuppetDB behind this master", "PuppetDB 7.12.1 on PostgreSQL: exports, reports, nodes"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_programs()), reason=missing_programs()),
]

STORED = 30.0  # seconds until a command has been processed

MANIFEST = """
node /^web/ {
  @@sshkey { $trusted['certname']: ensure => present, type => 'ssh-ed25519', key => "AAAA${trusted['hostname']}",
    host_aliases => [$trusted['hostname'], 'alias'], target => 'ROOT/known_hosts', tag => ['Keys', 'all'] }
  @@keyed { $trusted['certname']: size => 3 }
  file { 'ROOT/app': content => Sensitive('canary'), alias => 'application' }
  -> notify { "on ${facts['clientcert']}": require => File['application'] }
}
node 'vault1.test' { @@vaulted { 'x': pw => Sensitive('canary') } }
node 'taker1.test' { Vaulted <<| |>> }
node default {
  Sshkey <<| tag == 'keys' and key != 'AAAAweb9' |>> { type => 'ssh-rsa' }
  Keyed <<| size == 3 or title == 'x' |>>
  $active = puppetdb_query('nodes[certname] { certname ~ "^web" order by certname }')
  notify { "active: ${active.map |$node| { $node['certname'] }.join(' ')}": }
}
define vaulted ($pw) { }
define keyed (Integer $size) { file { "ROOT/keyed-${title}": content => "${size}\\n" } }
"""


@dataclass
class Site:
    """A master's site whose CA has given a PuppetDB its certificate."""

    pair: Pair
    puppetdb: RealPuppetDb

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with self.pair.mastered(storeconfigs=True, reports="puppetdb"):
            yield

    async def run(self, name: str) -> Ran:
        root = self.pair.root / name
        folders = {"confdir": str(root), "vardir": str(root / "var"), "logdir": str(root / "log"), "rundir": str(root / "run")}
        return await self.pair.run(certname=name, **folders)

    def query(self, path: str, query: Any = None) -> Any:
        """What PuppetDB itself says."""
        text = f"?query={urllib.parse.quote(json.dumps(query))}" if query else ""
        try:
            with urllib.request.urlopen(f"{self.puppetdb.url}/pdb/query/v4/{path}{text}", timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as err:
            assert err.code == 404
            return None

    async def stored(self, path: str, uuid: str | None) -> Any:
        """An answer of PuppetDB once it is that of the run with this transaction UUID."""
        deadline = time.monotonic() + STORED
        while True:
            answer = await asyncio.to_thread(self.query, path)
            rows = answer if isinstance(answer, list) else [answer] if answer else []
            for row in rows:
                if row["transaction_uuid"] == uuid:
                    return row
            assert time.monotonic() < deadline, rows
            await asyncio.sleep(0.1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("puppetdb")
    pair = Pair(root, manifest=MANIFEST.replace("ROOT", str(root / "stage")))
    pair.stage.mkdir()
    pair.write("routes.yaml", "---\nserver:\n  facts: {terminus: puppetdb, cache: yaml}\n")

    async def create_ca() -> None:
        async with pair.mastered():
            pass

    asyncio.run(create_ca())
    folder = root / "tls"
    folder.mkdir()
    authority = root / "master/ssl/ca"
    ca = ThrowAwayCa(keys.load(authority / "ca_key.pem"), x509.load_pem_x509_certificate((authority / "ca_crt.pem").read_bytes()), 10_000)
    key = KeyKind("rsa", 2048).generate()
    (folder / "key.pem").write_bytes(keys.private_pem(key))
    (folder / "cert.pem").write_bytes(bundles.dump([ca.sign("localhost", key.public_key(), names=("localhost",))]))
    (folder / "ca.pem").write_bytes(ca.pem)
    files = {"ssl-key": "key", "ssl-cert": "cert", "ssl-ca-cert": "ca"}
    with reserved_port() as port:
        jetty = f"ssl-host = 127.0.0.1\nssl-port = {port}\n" + "".join(f"{name} = {folder}/{file}.pem\n" for name, file in files.items())
        pair.write("puppetdb.conf", f"[main]\nserver_urls = https://localhost:{port}\n")
        with real_puppetdb(root / "puppetdb", jetty) as puppetdb:
            yield Site(pair, puppetdb)


@pytest.mark.smoke
async def test_what_nodes_export_is_stored_and_collected(site: Site) -> None:
    async with site.serving():
        first, second = await site.run("web1.test"), await site.run("web2.test")
        assert first.report is not None and second.report is not None
        catalog = await site.stored("catalogs/web1.test", first.report.transaction_uuid)
        await site.stored("catalogs/web2.test", second.report.transaction_uuid)
        report = await site.stored("reports", first.report.transaction_uuid)
        collecting = await site.run("col1.test")
        assert collecting.report is not None
        collected = await site.stored("catalogs/col1.test", collecting.report.transaction_uuid)

    assert (first.code, second.code, collecting.code) == (2, 2, 2)
    resources = {f"{each['type']}[{each['title']}]": each for each in catalog["resources"]["data"]}
    assert resources["Sshkey[web1.test]"]["exported"] and resources["Sshkey[web1.test]"]["parameters"]["host_aliases"] == ["web1", "alias"]
    assert resources[f"File[{site.pair.stage}/app]"]["parameters"]["alias"] == ["application"]
    assert "canary" not in json.dumps(catalog)
    edges = {(edge["relationship"], edge["source_title"], edge["target_title"]) for edge in catalog["edges"]["data"]}
    assert ("required-by", f"{site.pair.stage}/app", "on web1.test") in edges
    assert ("before", f"{site.pair.stage}/app", "on web1.test") in edges
    assert (report["status"], report["producer"], report["environment"]) == ("changed", "localhost", "production")
    assert report["catalog_uuid"] == catalog["catalog_uuid"] and len(report["resource_events"]["data"]) == 2
    facts = {row["name"]: row["value"] for row in site.query("nodes/web1.test/facts")}
    assert facts["trusted"]["certname"] == "web1.test" and facts["kernel"] == "Linux"

    known_hosts = (site.pair.stage / "known_hosts").read_text()
    assert "web1.test,web1,alias ssh-rsa AAAAweb1" in known_hosts and "web2.test,web2,alias ssh-rsa AAAAweb2" in known_hosts
    assert (site.pair.stage / "keyed-web1.test").read_text() == "3\n"
    titles = {each["title"]: each["exported"] for each in collected["resources"]["data"]}
    assert titles["web1.test"] is False and titles["active: web1.test web2.test"] is False


async def test_an_exported_secret_is_missed_by_name(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async with site.serving():
        exporting = await site.run("vault1.test")
        assert exporting.code == 0 and exporting.report is not None
        catalog = await site.stored("catalogs/vault1.test", exporting.report.transaction_uuid)
        warnings = [
            line for line in caplog.messages if "is exported with a Sensitive or Deferred value, which PuppetDB cannot store" in line
        ]
        taking = await site.run("taker1.test")
    assert "canary" not in json.dumps(catalog)
    assert len(warnings) == 1 and "Vaulted[x]['pw']" in warnings[0]
    assert taking.code == 1
    assert any("The exported Vaulted[x]['pw'] of vault1.test is Sensitive or Deferred" in line for line in caplog.messages)


async def test_a_node_that_is_deactivated_exports_nothing_any_more(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    client = puppetdb_client(site.pair.master_settings(storeconfigs=True))
    async with site.serving():
        run = await site.run("web3.test")
        assert run.report is not None
        await site.stored("catalogs/web3.test", run.report.transaction_uuid)
        facts = await PuppetDbFacts(client).find(Request("web3.test"))
        assert facts is not None and facts.values["clientcert"] == "web3.test"
        assert (await node_statuses(["web3.test"], client))[0]["deactivated"] is None
        await site.run("col2.test")
        assert (site.pair.stage / "keyed-web3.test").exists()

        assert await deactivate(["web3.test"], client) == 0
        assert "Submitted 'deactivate node' for web3.test with UUID " in capsys.readouterr().out
        deadline = time.monotonic() + STORED
        while not (await node_statuses(["web3.test"], client))[0]["deactivated"]:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        (site.pair.stage / "keyed-web3.test").unlink()
        await site.run("col2.test")
        assert not (site.pair.stage / "keyed-web3.test").exists()


async def test_an_export_that_clashes_and_a_query_that_is_wrong_fail_the_catalog(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    manifest = "code/environments/production/manifests/site.pp"
    text = (site.pair.root / "master" / manifest).read_text()
    cases = {
        "Sshkey <<| |>>\n  sshkey { 'web1.test': type => 'ssh-rsa', key => 'x' }": "A duplicate resource was found while collecting",
        "puppetdb_query('nodes[')": "[400 Bad Request] PQL parse error at line 1, column 7",
        "puppetdb_query(['from', 'nodes', ['=', 'nosuch', 1]])": "'nosuch' is not a queryable object for nodes",
    }
    try:
        async with site.serving():
            await site.run("web1.test")
            for number, (code, message) in enumerate(cases.items()):
                site.pair.write(manifest, f"{text}\nnode 'wrong{number}.test' {{\n  {code}\n}}\n")
                assert (await site.run(f"wrong{number}.test")).code == 1
                assert message in next(line for line in caplog.messages if line.startswith("Could not retrieve catalog from remote server"))
                caplog.clear()
    finally:
        site.pair.write(manifest, text)
