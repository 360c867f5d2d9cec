"""`puppet migrate` on a server's files: what is planned, checked, written and put back."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bunraku.migration.catalogs import Comparer
from bunraku.migration.conf_d import FATES, fate_of, findings_of, settings_of
from bunraku.migration.existing import ExistingServer
from bunraku.migration.plan import MigrationPlan
from ca.authority import CaOptions
from ca.setup import bootstrap
from ca.storage.folder import FolderStore
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from certs.keys import KeyKind
from environments.directories import Environments
from environments.settings import environment_settings
from master.pools.jobs import CompileJob
from master.preview.pool import PreviewPool
from shared.errors import NotFound
from shared.settings import MasterSettings, load
from shared.settings.conf import Conf
from tests.support.command_line import Puppet, Said
from tests.support.documentation import ROOT

NAME = "node1.example.com"
CONF = f"""# our server
[main]
certname = {NAME}
cacert = /elsewhere/ca.pem
[server]
vardir = /opt/puppetlabs/server/data/puppetserver
autosign = false
"""
SITE = {
    "puppet/puppet.conf": CONF,
    "puppet/hiera.yaml": "version: 5\n",
    "puppetserver/conf.d/webserver.conf": "webserver: { ssl-port: 8150, ssl-host: 127.0.0.1, max-threads: 10, ssl-protocols: [TLSv1.2] }\n",
    "puppetserver/conf.d/puppetserver.conf": "jruby-puppet: {{ max-active-instances: 3, server-var-dir: {root}/data, "
    "server-code-dir: {root}/code, server-run-dir: {root}/run }}\n",
    "puppetserver/conf.d/auth.conf": "authorization: { version: 1, rules: [ { match-request: { path: '/', type: path }, allow: '*',"
    " sort-order: 500, name: all } ] }\n".replace("'", '"'),
    "code/environments/production/manifests/site.pp": "node /^broken/ { fail('no') }\nnode default { notify { $facts['clientcert']: } }\n",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A server's files, without a CA."""
    root = tmp_path / "old"
    for name, text in SITE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            text.replace("{root}", str(root)).replace("{{", "{").replace("}}", "}") if name.endswith("puppetserver.conf") else text
        )
    for node in ("web1.example.com", "broken.example.com"):
        facts = root / "data" / "server_data" / "facts" / f"{node}.json"
        facts.parent.mkdir(parents=True, exist_ok=True)
        facts.write_text(json.dumps({"name": node, "values": {"clientcert": node}}))
    return root


def with_ca(old: Path) -> None:
    """Give the server a CA, and the key and certificate of its host."""
    files, ssldir = CaFiles.at(old / "puppetserver/ca"), SslDir.at(old / "puppet/ssl", NAME)
    bootstrap.bootstrap(FolderStore(files), CaOptions(master=NAME), ssldir, ca_name="Puppet CA: test", generate=KeyKind("ec").generate)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and path.suffix != ".lock"}


def target_at(root: Path) -> MasterSettings:
    places = {name: str(root / name.removesuffix("dir")) for name in ("confdir", "vardir", "logdir", "rundir")}
    return load(MasterSettings, section="master", flags={**places, "user": "root"}, conf=Conf())


def plan_for(old: Path, root: Path) -> MigrationPlan:
    return MigrationPlan.of(ExistingServer.at(old / "puppet"), target_at(root))


@pytest.fixture
def puppet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Puppet:
    return Puppet(tmp_path / "new", capsys)


def migrate(puppet: Puppet, old: Path, *words: str) -> Said:
    return puppet("migrate", *words, "--from", str(old / "puppet"), "--user", "root", "--store", "none")


# --- the plan ---


def test_the_server_is_found_with_its_folders(old: Path) -> None:
    server = ExistingServer.at(old / "puppet")
    assert (server.folder, server.settings.codedir, server.settings.vardir) == (old / "puppetserver", old / "code", old / "data")
    assert (server.rundir, server.port, server.is_ca) == (old / "run", 8150, False)
    with pytest.raises(NotFound, match="There is no Puppet server in"):
        ExistingServer.at(old / "code")


def test_puppet_conf_stays_but_for_what_the_master_needs(old: Path, tmp_path: Path) -> None:
    plan = plan_for(old, tmp_path / "new")
    assert plan.conf.splitlines() == [
        "# our server",
        "[main]",
        f"certname = {NAME}",
        "[server]",
        f"vardir = {tmp_path}/new/var",
        "autosign = false",
        f"codedir = {old}/code",
        "bindaddress = 127.0.0.1",
        "compile_workers = 3",
        "masterport = 8150",
        "ca = false",
        "facts_terminus = json",
        "[agent]",
        "cacert = /elsewhere/ca.pem",
    ]
    assert [file.target.name for file in plan.files] == ["auth.conf", "hiera.yaml"]
    assert [file.target.name for file in plan.data] == ["broken.example.com.json", "web1.example.com.json"]
    assert [finding.message for finding in plan.findings if finding.severity == "warning"] == [
        f"cacert = /elsewhere/ca.pem is left out (file: {old}/puppet/puppet.conf, line: 4): it is not supported here",
        "conf.d: webserver.ssl-protocols = TLSv1.2 has no effect here",
    ]


def test_a_setting_of_puppet_conf_wins_over_that_of_conf_d(old: Path, tmp_path: Path) -> None:
    with (old / "puppet/puppet.conf").open("a") as conf:
        conf.write("serverport = 8140\n")
    assert "masterport = 8150" not in plan_for(old, tmp_path / "new").conf


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ({"jruby-puppet.max-active-instances": 4}, {"compile_workers": "4"}),
        ({"certificate-authority.allow-subject-alt-names": True}, {"allow_subject_alt_names": "true"}),
        ({"certificate-authority.auto-renewal-cert-ttl": "60d"}, {"auto_renewal_cert_ttl": "60d"}),
        ({"versioned-code.code-id-command": "/opt/id"}, {"code_id_command": "/opt/id"}),
        ({"webserver.ssl-cert": "/c.pem", "webserver.ssl-key": "/k.pem"}, {"hostcert": "/c.pem", "hostprivkey": "/k.pem"}),
        ({"authorization.allow-header-cert-info": False}, {"allow_header_cert_info": "false"}),
        ({"jruby-puppet.gem-home": "/gems", "metrics.server-id": "x"}, {}),
    ],
    ids=str,
)
def test_settings_of_conf_d_become_settings_of_puppet_conf(values: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    assert settings_of(values) == settings
    load(MasterSettings, section="master", flags={**settings, "certname": NAME}, conf=Conf())


def test_an_unknown_setting_of_conf_d_is_named() -> None:
    assert fate_of("nothing.like-that") is None
    assert [finding.message for finding in findings_of({"nothing.like-that": 1})] == ["conf.d: nothing.like-that = 1 is not known here"]


def test_the_page_says_of_each_setting_what_becomes_of_it() -> None:
    page = (ROOT / "docs/migrating.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w.-]+)` \| (.+) \|$", page, re.M))
    assert rows == {name: f"`{fate.setting}`" if fate.setting else fate.why for name, fate in FATES.items()}


# --- check, run, undo ---


@pytest.mark.slow
def test_a_check_names_what_is_wrong_and_changes_nothing(puppet: Puppet, old: Path) -> None:
    before = tree(old)
    said = migrate(puppet, old, "check", "--no-catalogs")
    assert said.code == 1
    assert f"Error (certificates): This master has no certificate {old}/puppet/ssl/certs/{NAME}.pem" in said.out
    assert "Notice (certificates): The server is not the CA, and neither will this master be" in said.out
    assert tree(old) == before and not puppet.root.exists()


@pytest.mark.slow
def test_a_migration_is_written_and_undone(puppet: Puppet, old: Path) -> None:
    with_ca(old)
    puppet.conf.mkdir(parents=True)
    (puppet.conf / "puppet.conf").write_text("[main]\n")
    (old / "puppet/puppet.conf").chmod(0o640)
    before, mine = tree(old), tree(puppet.root)
    assert migrate(puppet, old, "check", "--no-catalogs").code == 0

    said = migrate(puppet, old, "run")
    assert (said.code, said.err) == (0, "")
    assert tree(old) == before
    written = tree(puppet.root)
    assert written["conf/ssl/ca/ca_key.pem"] == before["puppetserver/ca/ca_key.pem"]
    assert written[f"conf/ssl/private_keys/{NAME}.pem"] == before[f"puppet/ssl/private_keys/{NAME}.pem"]
    assert (puppet.conf / f"ssl/private_keys/{NAME}.pem").stat().st_mode & 0o777 == 0o640
    assert (puppet.conf / "puppet.conf").stat().st_mode & 0o777 == 0o640
    assert "vardir/server_data/facts/web1.example.com.json" in written
    assert "A migration was done here already" in migrate(puppet, old, "run").err

    assert puppet("cert", "generate", "later.example.com", "--user", "root").code == 0
    said = migrate(puppet, old, "undo")
    assert (said.code, said.err) == (0, "")
    assert {name: text for name, text in tree(puppet.root).items() if not re.match(r"logdir/|conf/ssl/(ca\.\d+/|\w+/later)", name)} == mine
    after = tree(old)
    assert "puppetserver/ca/signed/later.example.com.pem" in after and after.items() >= {
        (name, text) for name, text in before.items() if not name.endswith(("serial", "inventory.txt"))
    }
    assert "No migration is recorded" in migrate(puppet, old, "undo").err


@pytest.mark.slow
def test_nothing_is_copied_while_the_server_runs(puppet: Puppet, old: Path) -> None:
    with_ca(old)
    (old / "run").mkdir()
    (old / "run/puppetserver.pid").write_text(f"{os.getppid()}\n")
    said = migrate(puppet, old, "run")
    assert said.code == 1 and "The server runs" in said.err and "systemctl stop puppetserver" in said.err
    assert not puppet.root.exists()


# --- catalogs ---


class OtherPuppet:
    """A Puppet whose catalogs are those of this program, but for what a test changes."""

    version = "7.23.0"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers

    def compile(self, job: CompileJob) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self.answers[job.certname]
        return answer


def compiled_here(settings: MasterSettings, name: str) -> dict[str, Any]:
    """Return the catalog that this program compiles."""
    environments = Environments(environment_settings(settings))

    async def compiled() -> bytes:
        pool = PreviewPool.of(settings, environments).compile_pool
        try:
            return (await pool(CompileJob(name, "production", facts={"clientcert": name}, trusted={"certname": name}))).body
        finally:
            await pool.processes.close()

    catalog: dict[str, Any] = json.loads(asyncio.run(compiled()))
    return catalog


@pytest.mark.slow
def test_catalogs_of_both_are_compared(puppet: Puppet, old: Path) -> None:
    places = {"confdir": puppet.conf, "vardir": old / "data", "codedir": old / "code", "ssldir": old / "puppet/ssl", "rundir": puppet.root}
    flags = {**{name: str(path) for name, path in places.items()}, "facts_terminus": "json", "certname": NAME}
    settings = load(MasterSettings, section="master", flags=flags)
    catalog = compiled_here(settings, "web1.example.com")
    other = copy.deepcopy(catalog)
    other["resources"][-1]["title"] = "somewhere else"
    failing = {"error": "no such function"}
    cases = [({"catalog": catalog}, "unchanged"), ({"catalog": other}, "changed"), (failing, "fixed")]
    for answer, state in cases:
        real = OtherPuppet({"web1.example.com": answer, "broken.example.com": failing})
        result = asyncio.run(Comparer(settings, real).compare((), lambda state, total: None))
        assert result.states == {"broken.example.com": "failed", "web1.example.com": state}
        assert [error["state"] for error in result.data()["errors"]] == ["old"] + ["fixed"] * (state == "fixed")
