"""Our agent and our master in one test: a site on disk, the master listening on 127.0.0.1, the agent's runs watched."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.process.agent import Agent, RunOptions
from agent.run.steps import FinishedStep
from agent.servers.sites import Exchange
from master.wiring import running
from shared.models.report import Report
from shared.settings import AgentSettings, Conf, MasterSettings, load
from tests.support.raw_master import RawClient

NAME = "agent1.test"

MANIFEST = """
node default {
  filebucket { 'remote': path => false, server => 'localhost' }
  class { 'stage': }
}
"""
STAGE = """
class stage {
  file { 'ROOT': ensure => directory }
  file { 'ROOT/plain': source => 'puppet:///modules/stage/plain.txt', mode => '0640', backup => 'remote' }
  file { 'ROOT/tree': ensure => directory, source => 'puppet:///modules/stage/tree', recurse => true }
  file { 'ROOT/facts': content => "${::from_python} ${::from_outside} ${::clientcert}\\n" }
  exec { '/bin/touch ROOT/refreshed': refreshonly => true, subscribe => File['ROOT/plain'] }
}
"""
FACT = """
from agent.facts import Host, Known, fact

@fact(confine={"kernel": "Linux"})
def from_python(host: Host, known: Known) -> str:
    return "python"
"""


@dataclass(slots=True)
class Ran:
    """One run of the agent: its exit code, what it asked the master, its steps and its report."""

    code: int
    exchanges: list[Exchange]
    steps: list[FinishedStep]
    report: Report | None

    @property
    def asked(self) -> list[str]:
        """`METHOD path STATUS`, in order."""
        return [f"{each.method} {each.target.partition('?')[0]} {each.status}" for each in self.exchanges]

    def connections(self, *, verified: bool) -> list[int]:
        """The pool's connection number of each exchange."""
        return [each.connection for each in self.exchanges if each.verified is verified]

    def find(self, part: str) -> Exchange:
        """The first exchange whose target contains `part`."""
        return next(each for each in self.exchanges if part in each.target)


@dataclass
class Pair:
    """A site below `root`; `flags` are options of every run."""

    root: Path
    manifest: str = MANIFEST
    flags: dict[str, Any] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        stage = self.root / "stage"
        module = "code/environments/production/modules/stage"
        files = {
            "code/environments/production/manifests/site.pp": self.manifest,
            f"{module}/manifests/init.pp": STAGE.replace("ROOT", str(stage)),
            f"{module}/files/plain.txt": "plain\n",
            f"{module}/files/tree/one": "1\n",
            f"{module}/files/tree/sub/two": "2\n",
            f"{module}/lib/facter/from_python.py": FACT,
            f"{module}/lib/facter/only_ruby.rb": "Facter.add(:only_ruby) { }\n",
            f"{module}/facts.d/outside.txt": "from_outside=outside\n",
        }
        for name, text in files.items():
            self.write(name, text)

    @property
    def stage(self) -> Path:
        """Where the catalog's files go."""
        return self.root / "stage"

    def write(self, name: str, text: str) -> None:
        path = self.root / "master" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)  # whatever the umask is

    def master_settings(self, **more: Any) -> MasterSettings:
        root = self.root / "master"
        flags = {
            "confdir": str(root),
            "codedir": str(root / "code"),
            "vardir": str(root / "var"),
            "logdir": str(root / "log"),
            "rundir": str(root / "run"),
            "certname": "localhost",
            "autosign": "true",
            "bindaddress": "127.0.0.1",
            "masterport": self.port,
            "key_type": "ec",
            "keylength": "2048",
            **more,
        }
        return load(MasterSettings, section="master", flags=flags, conf=Conf())

    def agent_settings(self, **more: Any) -> AgentSettings:
        root = self.root / "agent"
        flags = {
            "confdir": str(root),
            "vardir": str(root / "var"),
            "logdir": str(root / "log"),
            "rundir": str(root / "run"),
            "server": "localhost",
            "masterport": self.port,
            "certname": NAME,
            "key_type": "ec",
            "onetime": True,
            "detailed_exitcodes": True,
            "verbose": True,
            "ruby_facts": "false",  # there may be no Ruby
            **self.flags,
            **more,
        }
        return load(AgentSettings, section="agent", flags=flags, conf=Conf())

    @asynccontextmanager
    async def mastered(self, **more: Any) -> AsyncIterator[Pair]:
        """Our master, listening; a second time on the same port."""
        async with running(self.master_settings(**more)) as master:
            self.port = master.port
            yield self

    async def run(self, asked: RunOptions | None = None, **more: Any) -> Ran:
        """One run of our agent."""
        exchanges: list[Exchange] = []
        steps: list[FinishedStep] = []
        settings, options = self.agent_settings(**more), asked or RunOptions()
        agent = Agent(settings, options, on_exchange=exchanges.append, on_step=steps.append, tell=lambda text: None)
        code = await agent.run_once()
        return Ran(code, exchanges, steps, agent.report)

    def reports(self) -> list[Path]:
        """The reports that the master stored, oldest first."""
        return sorted((self.root / "master" / "var" / "reports" / NAME).glob("*.yaml"))

    def contents(self) -> Mapping[str, str]:
        """What the catalog left on disk."""
        return {str(path.relative_to(self.stage)): path.read_text() for path in sorted(self.stage.rglob("*")) if path.is_file()}


async def client_of(pair: Pair) -> RawClient:
    """A connection with the certificate of the agent, which has run once."""
    folder = pair.root / "agent" / "ssl"
    context = ssl.create_default_context(cafile=str(folder / "certs" / "ca.pem"))
    context.load_cert_chain(folder / "certs" / f"{NAME}.pem", folder / "private_keys" / f"{NAME}.pem")
    return await RawClient.connect(pair.port, context, server="localhost", timeout=30)
