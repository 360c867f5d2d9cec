"""A site of thirty nodes moves from puppetserver to this master and back by the commands of docs/migrating.md."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bunraku.migration.real import RealPuppet
from master.pools.jobs import CompileJob
from tests.interop.puppetserver import PUPPETSERVER_7, PUPPETSERVERS, Installed, RealServer, configured, running
from tests.support.documentation import Shell, block
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, OurAgent, has_real_puppet
from tests.support.real_puppetdb import RealPuppetDb, missing_programs, real_puppetdb
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.works_with("Servers of Puppet with this agent", "a site that moves from puppetserver 7.9.5 and 8.7 and back"),
    pytest.mark.works_with("PuppetDB behind this master", "a site that moves from puppetserver 7.9.5 and back, and its PuppetDB stays"),
]

NODES = 30
PAGE = "docs/migrating.md"
EXPORTS = """
define known { file { "${facts['stage_root']}/knows-${name}": content => $name } }
@@known { $trusted['certname']: }
Known <<| |>>
"""


def agent(root: Path, port: int, name: str) -> OurAgent:
    (root / name).mkdir(exist_ok=True)
    return OurAgent(root / name, port, f"{name}.example.com", facts={"stage_root": str(root / name / "stage")})


def further_nodes(facts: Path, template: str) -> None:
    """Write facts of further nodes, which are those of one that has run."""
    text = (facts / f"{template}.example.com.json").read_text("utf-8")
    for number in range(len(list(facts.glob("*.json"))), NODES):
        (facts / f"node{number}.example.com.json").write_text(text.replace(template, f"node{number}"))


def answer_of(puppetdb: RealPuppetDb, path: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(f"{puppetdb.url}/pdb/{path}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def further_nodes_of(puppetdb: RealPuppetDb, template: str) -> None:
    """Submit facts of further nodes, which are those of one that has run."""
    stored = answer_of(puppetdb, f"query/v4/factsets/{template}.example.com")
    facts = {"producer": "localhost", "producer_timestamp": stored["producer_timestamp"], "environment": "production"}
    facts["values"] = {each["name"]: each["value"] for each in stored["facts"]["data"]}
    for number in range(len(answer_of(puppetdb, "query/v4/nodes")), NODES):
        text = json.dumps({"certname": f"{template}.example.com", **facts}).replace(template, f"node{number}")
        words = f"command=replace_facts&version=5&certname=node{number}.example.com&secondsToWaitForCompletion=30"
        answer_of(puppetdb, f"cmd/v1?{words}", text.encode())


@contextmanager
def puppetdb_of(server: RealServer, folder: Path) -> Iterator[RealPuppetDb]:
    """Lend a PuppetDB that a configured server uses, with the certificate of its host; its nodes export and collect."""
    done = server.ca("setup")
    assert done.code == 0, done.text
    texts = {
        "code/environments/production/manifests/site.pp": EXPORTS,
        "conf/puppet.conf": "[server]\nstoreconfigs = true\nreports = store,puppetdb\n",
        "conf/routes.yaml": "---\nmaster: {facts: {terminus: puppetdb, cache: json}}\n",
    }
    files = {"key": "private_keys/localhost", "cert": "certs/localhost", "ca-cert": "certs/ca"}
    with reserved_port() as port:
        texts["conf/puppetdb.conf"] = f"[main]\nserver_urls = https://localhost:{port}\n"
        for name, text in texts.items():
            with (server.root / name).open("a") as file:
                file.write(text)
        jetty = f"ssl-host = 127.0.0.1\nssl-port = {port}\n"
        jetty += "".join(f"ssl-{name} = {server.root}/ssl/{file}.pem\n" for name, file in files.items())
        with real_puppetdb(folder, jetty) as puppetdb:
            yield puppetdb


MOVES = [
    *(pytest.param(each, False, id=each.version) for each in PUPPETSERVERS),
    pytest.param(
        PUPPETSERVER_7,
        True,
        id=f"{PUPPETSERVER_7.version} with a PuppetDB",
        marks=[pytest.mark.full, pytest.mark.timeout(1800), pytest.mark.skipif(bool(missing_programs()), reason=missing_programs())],
    ),
]


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that the server's own user can enter."""
    with tempfile.TemporaryDirectory(prefix="migration-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(("installed", "has_puppetdb"), MOVES)
def test_a_site_moves_and_moves_back(root: Path, installed: Installed, has_puppetdb: bool) -> None:
    if reason := installed.why_not():
        pytest.skip(reason)
    old, new = root / "old", root / "new"
    old.mkdir()
    check, run, switch, undo = (block(PAGE, "sh", name).body for name in ("check", "run", "switch", "undo"))
    with ExitStack() as stack:
        port = stack.enter_context(reserved_port())
        configured(installed, old, port, 1)
        (old / "puppetserver").symlink_to(old)  # where its package has conf.d
        puppetdb = stack.enter_context(puppetdb_of(RealServer(installed, old, port, 0), root / "puppetdb")) if has_puppetdb else None
        process = MasterProcess(new, {"store": "auto"} if has_puppetdb else {}, port=port)
        options = {"": process.options, "migrate": [*process.options, "--from", str(old / "conf")]}
        shell = Shell(root / "shell", options, {}, {"systemctl": ""})

        with running(old, port, installed):
            for name in ("web1", "web2", "classified1"):
                assert agent(root, port, name).test().code == 2
            if puppetdb is not None:
                wait_until(lambda: len(answer_of(puppetdb, "query/v4/reports")) == 3)
                further_nodes_of(puppetdb, "web2")
                assert agent(root, port, "web1").test().code == 2  # it now knows web2
            else:
                further_nodes(old / "var" / "server_data" / "facts", "web2")
            assert "Stop it first" in shell.type(run, {1})

        checked = shell.type(check)
        assert "Ignoring the fact" not in checked, "a PuppetDB has trusted data among the facts"
        if installed is PUPPETSERVER_7:  # whose Puppet is this machine's
            assert f"{NODES} nodes compiled on both sides: {NODES} unchanged. " in checked
            assert (root / "shell" / "differences.html").exists()
        assert not new.exists()

        shell.type(run)
        shell.type(switch)  # ends with 1 if the check finds an error
        try:
            process.start()
            assert agent(root, port, "web1").test().code == 0
            assert agent(root, port, "later").test().code == 2
            process.revoke("web2.example.com")
            assert "Stop it first" in shell.type(undo, {1})
            process.stop()
        finally:
            process.kill()
        shell.type(undo)
        assert not (new / "conf" / "puppet.conf").exists()
        with running(old, port, installed):
            assert agent(root, port, "later").test().code == 0
            assert agent(root, port, "web2").test().code == 1
            if puppetdb is not None:
                assert agent(root, port, "web1").test().code == 2
                known = {path.name for path in (root / "web1/stage").glob("knows-*")}
                assert known == {f"knows-{name}.example.com" for name in ("web1", "web2", "later")}


@pytest.mark.smoke
@pytest.mark.skipif(not has_real_puppet(), reason="Debian's puppet-agent is not installed")
def test_the_installed_puppet_compiles_one_node_after_the_other(tmp_path: Path) -> None:
    manifest = tmp_path / "code/environments/production/manifests/site.pp"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("node bad { fail('no') }\nnode default { notify { \"${trusted['certname']} ${os} ${facts['os']}\": } }\n")
    options = [word for name in ("conf", "var", "code") for word in (f"--{name}dir", str(tmp_path / name))]
    with RealPuppet("/usr/bin/ruby", options, None, 120.0) as puppet:
        assert puppet.version.startswith("7.23")
        for name, answer in (("web1", "catalog"), ("bad", "error"), ("web2", "catalog")):
            job = CompileJob(name, "production", facts={"os": "Debian"}, parameters={"os": "Debian"}, trusted={"certname": name})
            found = puppet.compile(job)
            assert list(found) == [answer]
            assert (f"{name} Debian Debian" in str(found)) == (answer == "catalog")
