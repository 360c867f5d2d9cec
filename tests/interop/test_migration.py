"""A site of thirty nodes moves from puppetserver to this master and back by the commands of docs/migrating.md."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunraku.migration.real import RealPuppet
from master.pools.jobs import CompileJob
from tests.interop.puppetserver import PUPPETSERVER_7, PUPPETSERVERS, Installed, configured, running
from tests.support.documentation import Shell, block
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, OurAgent, has_real_puppet

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.works_with("Servers of Puppet with this agent", "a site that moves from puppetserver 7.9.5 and 8.7 and back"),
]

NODES = 30
PAGE = "docs/migrating.md"


def agent(root: Path, port: int, name: str) -> OurAgent:
    (root / name).mkdir(exist_ok=True)
    return OurAgent(root / name, port, f"{name}.example.com", facts={"stage_root": str(root / name / "stage")})


def further_nodes(facts: Path, template: str) -> None:
    """Write facts of further nodes, which are those of one that has run."""
    text = (facts / f"{template}.example.com.json").read_text("utf-8")
    for number in range(len(list(facts.glob("*.json"))), NODES):
        (facts / f"node{number}.example.com.json").write_text(text.replace(template, f"node{number}"))


@pytest.fixture(params=PUPPETSERVERS, ids=lambda each: each.version)
def installed(request: pytest.FixtureRequest) -> Installed:
    if reason := request.param.why_not():
        pytest.skip(reason)
    server: Installed = request.param
    return server


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that the server's own user can enter."""
    with tempfile.TemporaryDirectory(prefix="migration-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_site_moves_and_moves_back(root: Path, installed: Installed) -> None:
    old, new = root / "old", root / "new"
    old.mkdir()
    check, run, switch, undo = (block(PAGE, "sh", name).body for name in ("check", "run", "switch", "undo"))
    with reserved_port() as port:
        configured(installed, old, port, 1)
        (old / "puppetserver").symlink_to(old)  # where its package has conf.d
        process = MasterProcess(new, port=port)
        options = {"": process.options, "migrate": [*process.options, "--from", str(old / "conf")]}
        shell = Shell(root / "shell", options, {}, {"systemctl": ""})
        with running(old, port, installed):
            for name in ("web1", "web2", "classified1"):
                assert agent(root, port, name).test().code == 2
            further_nodes(old / "var" / "server_data" / "facts", "web2")
            assert "Stop it first" in shell.type(run, {1})

        checked = shell.type(check)
        if installed is PUPPETSERVER_7:  # whose Puppet is this machine's
            assert f"{NODES} nodes compiled on both sides: {NODES} unchanged. " in checked
            assert (root / "shell" / "differences.html").exists()
        assert not new.exists()

        shell.type(run)
        assert "0 errors" in shell.type(switch)
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
