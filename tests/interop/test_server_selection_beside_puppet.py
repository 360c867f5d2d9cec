"""Which server each command asks, by the settings that name several: the real program's and ours, of the same servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.dns_server import DOMAIN, Dns
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.processes import REAL_PUPPET, Done, OurAgent, RealAgent, clean_environment, has_real_puppet, run
from tests.support.scripted_master import reply, root_entry
from tests.support.throwaway_ca import ThrowAwayCa

pytestmark = [
    pytest.mark.works_with("Commands and answers of Puppet 7.23", "which server each command asks"),
    pytest.mark.interop,
    pytest.mark.slow,
]

NAME = "web1.example.com"
SERVERS = ("settings", "first", "second", "ca", "report", "files")
# Both read their resolver's address from /etc/resolv.conf alone, with the port of all of DNS; nobody may have that in a test.
RUBY_DNS = """
require 'resolv'
class Resolv::DNS::Config
  def self.default_config_hash(*) = { nameserver_port: [['127.0.0.1', %d]] }
end
"""
OUR_DNS = """
import sys, dns.asyncresolver
made = dns.asyncresolver.Resolver(configure=False)
made.nameservers, made.port = ["127.0.0.1"], %d
dns.asyncresolver.Resolver = lambda: made
from bunraku.puppet import main
sys.exit(main(sys.argv[1:]))
"""
COMMANDS = {
    "submit_request": ("ssl", "submit_request"),
    "bootstrap": ("ssl", "bootstrap", "--waitforcert", "0"),
    "facts": ("facts", "upload"),
    "plugins": ("plugin", "download"),
    "catalog": ("catalog", "download"),
    "bucket": ("filebucket", "get", "0" * 64, "--remote"),
    "run": ("agent", "-t"),
}


@dataclass
class Site:
    """Servers that say who asked them what, and a DNS that names them."""

    root: Path
    ca: ThrowAwayCa = field(default_factory=ThrowAwayCa.new)
    down: set[str] = field(default_factory=set)
    masters: dict[str, FakeMaster] = field(default_factory=dict)
    dns: Dns = field(default_factory=Dns)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Site]:
        async with AsyncExitStack() as stack:
            for name in SERVERS:
                master = FakeMaster(self.ca.serving(self.root), lambda ask, name=name: self._answer(name, ask))  # type: ignore[misc]
                self.masters[name] = await stack.enter_async_context(master.running())
            await stack.enter_async_context(self.dns.running())
            yield self

    def _answer(self, name: str, ask: Ask) -> Reply:
        version = {"X-Puppet-Version": "7.23.0"}
        if name in self.down:
            return Reply(503, b"starting")
        if ask.path.startswith("/status/"):
            return Reply(200, b"running", version)
        if ask.path.endswith("/certificate/ca"):
            return Reply(200, self.ca.pem, version)
        if ask.path.endswith("_revocation_list/ca"):
            return Reply(200, self.ca.crl_pem(), version)
        if "/certificate_request/" in ask.path:
            return Reply(200, b"", version)
        if "/file_metadatas/" in ask.path:
            return reply([root_entry()])
        return Reply(404, b"not here", version)

    def named(self, value: str) -> str:
        """A setting's text, with `PORT-of-a-server` for what it listens on."""
        for name, master in self.masters.items():
            value = value.replace(f"<{name}>", str(master.port))
        return value

    def records(self, of: Mapping[str, str]) -> None:
        """What DNS says: the servers of each service, in this order."""
        self.dns.records = {
            f"{service}._tcp.{DOMAIN}.": [
                (at, 0, self.masters[name].port if name in self.masters else 1, "localhost.") for at, name in enumerate(names.split())
            ]
            for service, names in of.items()
        }

    def asked(self) -> dict[str, set[str]]:
        """The indirections that each server was asked for; forgotten afterwards. Whether it is there does not count."""
        found = {}
        for name, master in self.masters.items():
            asked = {ask.path.split("/")[3] for ask in master.asked if not ask.path.startswith("/status/")}
            if asked:
                found[name] = asked
            master.asked.clear()
        return found


def prepared(agent: OurAgent | RealAgent, command: str, ca: ThrowAwayCa) -> None:
    """What a command needs of a machine that has been there before; a request for a certificate is made by one that has not."""
    agent.root.mkdir(exist_ok=True)
    if COMMANDS[command][0] != "ssl":
        ca.ssldir(agent.ssl, NAME)


async def real(site: Site, command: str, options: list[str]) -> Done:
    agent = RealAgent(site.root / "real", site.masters["settings"].port, NAME)
    prepared(agent, command, site.ca)
    resolver = site.root / "resolver.rb"
    resolver.write_text(RUBY_DNS % site.dns.port)
    environ = clean_environment(HOME=str(agent.root), RUBYOPT=f"-r{resolver}")
    return await asyncio.to_thread(run, [REAL_PUPPET, *COMMANDS[command], *agent.options, *options], environ)


async def ours(site: Site, command: str, options: list[str]) -> Done:
    agent = OurAgent(site.root / "ours", site.masters["settings"].port, NAME)
    prepared(agent, command, site.ca)
    environ = clean_environment(HOME=str(agent.root), PYTHONPATH=str(Path.cwd()))
    argv = [sys.executable, "-c", OUR_DNS % site.dns.port, *COMMANDS[command], *agent.options, *options]
    return await asyncio.to_thread(run, argv, environ)


LISTED = ["--server_list", "localhost:<first>,localhost:<second>"]
OWN = ["--ca_server", "localhost", "--ca_port", "<ca>", "--report_server", "localhost", "--report_port", "<report>"]
BY_DNS = ["--use_srv_records", "--srv_domain", DOMAIN]
EVERYTHING = {"_x-puppet": "first", "_x-puppet-ca": "ca", "_x-puppet-report": "report", "_x-puppet-fileserver": "files"}

CASES: dict[str, tuple[list[str], Mapping[str, str], set[str]]] = {
    "the settings": ([], {}, set()),
    "settings of their own": (OWN, {}, set()),
    "a list": (LISTED, {}, set()),
    "a list whose first is starting": (LISTED, {}, {"first"}),
    "a list, and settings of their own": ([*LISTED, *OWN], {}, set()),
    "DNS": (BY_DNS, EVERYTHING, set()),
    "DNS that names the masters alone": (BY_DNS, {"_x-puppet": "gone second"}, set()),
    "DNS that names nobody who is there, then a list": ([*BY_DNS, *LISTED], {"_x-puppet": "gone"}, set()),
    "DNS that knows nothing": (BY_DNS, {}, set()),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
async def test_the_same_servers_are_asked(tmp_path: Path, case: str, command: str) -> None:
    if not has_real_puppet():
        pytest.fail("Debian's puppet-agent is not installed: apt-get install puppet-agent")
    options, records, down = CASES[case]
    async with Site(tmp_path, down=down).running() as site:
        site.records(records)
        words = [site.named(each) for each in options]
        expected = await real(site, command, words)
        there = site.asked()
        found = await ours(site, command, words)
        assert there, expected.text
        assert site.asked() == there, f"{expected.text}\n---\n{found.text}"
