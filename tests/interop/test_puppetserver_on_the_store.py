"""puppetserver 7.9.5 and 8.7 with Puppet's own terminus, and Debian's agents: our store over TLS is their PuppetDB."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop import puppetserver
from tests.interop.clients import store_on_port
from tests.interop.puppetserver import PUPPETSERVERS, Installed, RealServer
from tests.support.ports import reserved_port
from tests.support.processes import REAL_PUPPET, Done, RealAgent, clean_environment, has_real_puppet, run

TERMINUS = "/usr/lib/ruby/vendor_ruby/puppet/indirector/catalog/puppetdb.rb"
STORED = 30.0  # seconds until what was submitted is stored

pytestmark = [
    pytest.mark.works_with("The built-in store", "puppetserver 7.9.5 and 8.7 that use it as their PuppetDB"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(not has_real_puppet(), reason="Debian's puppet-agent is not installed"),
]

MANIFEST = """
node /^web/ {
  @@file { "${facts['stage_root']}/from-${trusted['hostname']}": content => "${trusted['certname']}\\n", tag => ['Shared', 'a::b'] }
  file { "${facts['stage_root']}/secret": content => Sensitive('canary') }
}
node /^col/ {
  File <<| tag == 'Shared' |>> { mode => '0600' }
  $known = puppetdb_query('inventory[certname] { facts.rack = "r7" and certname ~ "^web" }').map |$row| { $row['certname'] }
  file { "${facts['stage_root']}/known": content => $known.join(',') }
}
"""


@dataclass
class Site:
    """A puppetserver, the store that it uses, and the folder that its agents write to."""

    root: Path
    server: RealServer
    plain_port: int

    @property
    def stage(self) -> Path:
        return self.root / "stage"

    def run(self, name: str) -> Done:
        """Run Debian's agent with a certname of that host."""
        folder = self.root / "agents" / name
        folder.mkdir(parents=True, exist_ok=True)
        return RealAgent(folder, self.server.port, f"{name}.example.com", {"stage_root": str(self.stage), "rack": "r7"}).test()

    def puppet(self, *words: str) -> Done:
        """Run a command of Debian's puppet where puppetserver has its configuration."""
        return run([REAL_PUPPET, *words, "--confdir", str(self.server.root / "conf")], clean_environment(HOME=str(self.root)))

    def ask(self, query: str) -> Any:
        """Ask the store in PQL."""
        url = f"http://127.0.0.1:{self.plain_port}/pdb/query/v4?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.loads(answer.read())

    def wait_for(self, query: str, expected: Any) -> None:
        """Ask until that is the answer: a command is acknowledged before it is stored."""
        deadline = time.monotonic() + STORED
        while (found := self.ask(query)) != expected:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)


@pytest.fixture(scope="module", params=PUPPETSERVERS, ids=lambda each: str(each.version))
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Both, running; the store has the certificate that puppetserver's CA made for this host."""
    installed: Installed = request.param
    if reason := installed.why_not():
        pytest.skip(reason)
    if not installed.path(TERMINUS).exists():
        pytest.skip("Puppet's terminus is not installed (Debian: puppet-terminus-puppetdb)")
    root = Path(tempfile.mkdtemp(prefix="puppetserver-"))  # its own user has to get there
    root.chmod(0o755)
    theirs = root / "theirs"
    with reserved_port() as port, reserved_port() as tls_port:
        try:
            theirs.mkdir()
            (root / "stage").mkdir()
            puppetserver.configured(installed, theirs, port, 1, programs=False)
            (theirs / "code/environments/production/manifests/site.pp").write_text(MANIFEST)
            (theirs / "conf/puppetdb.conf").write_text(f"[main]\nserver_urls = https://localhost:{tls_port}\n")
            (theirs / "conf/routes.yaml").write_text("---\nmaster: {facts: {terminus: puppetdb, cache: yaml}}\n")
            with (theirs / "conf/puppet.conf").open("a") as conf:
                conf.write("[server]\nstoreconfigs = true\nstoreconfigs_backend = puppetdb\nreports = puppetdb\n")
            with puppetserver.running(theirs, port, installed) as server:
                tls = {"store_port": str(tls_port), "store_bindaddress": "127.0.0.1", "ssldir": str(theirs / "ssl")}
                with store_on_port(root / "store", dataset=(), **tls) as plain_port:
                    yield Site(root, server, plain_port)
        finally:
            shutil.rmtree(root)


def test_what_one_agent_exports_another_one_collects(site: Site) -> None:
    first = site.run("web1")
    assert first.code == 2, first.text
    site.wait_for("nodes[certname, latest_report_status] {}", [{"certname": "web1.example.com", "latest_report_status": "changed"}])
    second = site.run("col1")
    assert second.code == 2, second.text
    made = site.stage / "from-web1"
    assert (made.read_text(), made.stat().st_mode & 0o777) == ("web1.example.com\n", 0o600)
    assert (site.stage / "known").read_text() == "web1.example.com"
    site.wait_for('reports[certname, status] { certname = "col1.example.com" }', [{"certname": "col1.example.com", "status": "changed"}])
    resources = site.ask('resources[title, exported] { type = "File" and certname = "web1.example.com" order by title }')
    assert resources == [{"title": str(made), "exported": True}, {"title": str(site.stage / "secret"), "exported": False}]
    assert "canary" not in json.dumps([site.ask("resources {}"), site.ask("reports {}")])
    told = site.puppet("node", "status", "web1.example.com")
    assert told.code == 0 and "Currently active" in told, told.text
    gone = site.puppet("node", "deactivate", "web1.example.com")
    assert gone.code == 0, gone.text
    site.wait_for("nodes[certname] {}", [{"certname": "col1.example.com"}])
