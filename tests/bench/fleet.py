"""
Many agents at one master: `make fleet`. Simulated ones, in this process; the master is a process of its own with default limits.

All come at once, or spread over `--splay` seconds. Prints how fast runs end, how long each kind of request takes, what the master's
processes cost, and whether the master kept every report that it took. Both share the machine, so runs a second count both.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench import sites
from tests.bench.costs import Blocks, family, memory_of, processor_seconds
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, master
from tests.support.raw_master import RawClient
from tests.support.simulated_agents import Record, RunFailed, Server, SimulatedAgent, with_certificates

SOURCES = 20
PROBE = 0.05  # seconds between two questions for the master's state
ATTEMPTS = 5  # runs that an agent tries for one
KINDS = ("connect", "node", "pluginfacts", "plugins", "catalog", "file_metadata", "report")


def small_site() -> dict[str, str]:
    """Some sixty resources: files with contents and with sources; two plugins."""
    return {f"modules/bench/files/{i}": f"file {i}\n" * 20 for i in range(SOURCES)} | {
        "environment.conf": "environment_timeout = unlimited\n",
        "manifests/site.pp": "node default { include bench }",
        "modules/bench/lib/facter/one.rb": "Facter.add(:one) { }\n",
        "modules/bench/facts.d/two.txt": "two=2\n",
        "modules/bench/manifests/init.pp": f"""
            class bench {{
              file {{ '/srv/bench': ensure => directory }}
              Integer[1, {SOURCES * 2}].each |$i| {{
                file {{ "/srv/bench/content-${{i}}": content => "number ${{i}} of ${{facts['networking']['fqdn']}}\\n", mode => '0640' }}
              }}
              Integer[0, {SOURCES - 1}].each |$i| {{
                file {{ "/srv/bench/source-${{i}}": source => "puppet:///modules/bench/${{i}}" }}
              }}
            }}
        """,
    }


SITES = {"small": small_site, "large": sites.modules_site}


def facts_of(name: str, large: int = 0) -> dict[str, object]:
    """Facts in the number and size that a host has; with `large`, one more of so many characters."""
    more = {f"fact_{i}": {"address": f"192.0.2.{i}", "netmask": "255.255.255.0", "flags": ["up", "running"]} for i in range(100)}
    if large:
        more["large"] = "x" * large
    return {**sites.FACTS, **more, "networking": {"fqdn": name, "hostname": name.partition(".")[0], "domain": "test", "ip": "192.0.2.10"}}


def share(values: Sequence[float], percent: int) -> float:
    """The value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


async def probing(port: int, ca: Path, found: list[float]) -> None:
    """Asks for the master's state on one connection again and again: how long anything has to wait for its event loop."""
    context = ssl.create_default_context(cafile=str(ca))
    client = await RawClient.connect(port, context, server="localhost", timeout=120)
    try:
        while True:
            began = time.monotonic()
            answer = await client.ask("GET", "/status/v1/simple/status-service")
            if answer.body != b"running":
                raise RuntimeError(f"the master says {answer.body!r}")
            found.append(time.monotonic() - began)
            await asyncio.sleep(PROBE)
    finally:
        await client.close()


class Fleet:
    """Agents of one master; `limit` seconds for all of it."""

    def __init__(self, process: MasterProcess, folder: Path, options: argparse.Namespace) -> None:
        self.process = process
        self.options = options
        self.record = Record()
        self.probes: list[float] = []
        self.peak = (0.0, 0.0)
        self.blocks: list[Blocks] = []
        server = Server(process.port, process.port, timeout=options.limit)
        names = [f"node{i:04}.test" for i in range(options.agents)]
        large = dict.fromkeys(names[: options.agents * options.large // 100], options.large_bytes)
        self.agents = [
            SimulatedAgent(name, folder, server, self.record, facts_of(name, large.get(name, 0)), options.sources) for name in names
        ]
        with_certificates(names[options.bootstrap :], folder, process.ca)

    async def ready(self) -> None:
        """Those that have no certificate get one; one node runs that is not counted, so that what a first compile costs is not."""
        if self.options.bootstrap:
            began = time.monotonic()
            await asyncio.gather(*(agent.bootstrap() for agent in self.agents[: self.options.bootstrap]))
            print(f"  {self.options.bootstrap} certificates asked for and signed in {time.monotonic() - began:.1f} s", flush=True)
        for each in self.agents:
            each.load()
        agent = self.agents[-1]
        counted, agent.record = agent.record, Record()
        await agent.run()
        agent.record = counted

    async def run(self) -> None:
        watchers = [
            asyncio.create_task(probing(self.process.port, self.process.ca / "ca_crt.pem", self.probes)),
            asyncio.create_task(self.watching()),
        ]
        try:
            async with asyncio.timeout(self.options.limit):
                await asyncio.gather(*(self.life(agent) for agent in self.agents))
            for watcher in watchers:
                if watcher.done():
                    watcher.result()
            self.blocks.append(await asyncio.to_thread(Blocks.read, int(self.process.settings["metrics_port"])))
        finally:
            for watcher in watchers:
                watcher.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)

    async def life(self, agent: SimulatedAgent) -> None:
        if self.options.splay:
            await asyncio.sleep(random.uniform(0, self.options.splay))
        for _ in range(self.options.rounds):
            try:
                await agent.run_until_done(ATTEMPTS, pause=1.0)
            except RunFailed as err:
                print(f"  {err}", flush=True)

    async def watching(self) -> None:
        began = time.monotonic()
        wanted = len(self.agents) * self.options.rounds
        while True:
            memory = await asyncio.to_thread(memory_of, self.process.pid)
            self.peak = (max(self.peak[0], memory[0]), max(self.peak[1], memory[1]))
            self.blocks.append(await asyncio.to_thread(Blocks.read, int(self.process.settings["metrics_port"])))
            asked = sum(map(len, self.record.seconds.values()))
            line = f"{len(self.record.runs)} of {wanted} runs, {asked} requests, {self.record.waits.total()} put off"
            print(f"  {time.monotonic() - began:5.0f} s  {line}, {self.record.errors.total()} errors, {memory[0]:.0f} MB", flush=True)
            await asyncio.sleep(5)


def measure(process: MasterProcess, folder: Path, options: argparse.Namespace) -> int:
    """Start, run, print; how many agents or reports were lost."""
    process.write(SITES[options.site]())
    process.start()
    (folder / "ca.pem").write_bytes((process.ca / "ca_crt.pem").read_bytes())
    fleet = Fleet(process, folder, options)
    uvloop.run(fleet.ready())
    before = {pid: processor_seconds(pid) for pid in family(process.pid)}
    own = time.process_time()
    began = time.monotonic()
    uvloop.run(fleet.run())
    seconds = time.monotonic() - began
    own = time.process_time() - own
    after = {pid: processor_seconds(pid) - before.get(pid, 0) for pid in family(process.pid)}
    front = after.pop(process.pid)
    record = fleet.record
    done = len(record.runs)
    lost = record.lost(process.reports)
    wanted = options.agents * options.rounds
    print(f"{options.agents} agents, {wanted} runs, all within {options.splay:g} s; site {options.site}, {SITES[options.site].__doc__}")
    print(f"  runs that ended well                 {done} of {wanted} in {seconds:.1f} s: {done / seconds:.1f} a second")
    print(f"  reports taken and not stored         {len(lost)}")
    print(f"  put off with Retry-After             {record.waits.total()} {dict(record.waits) or ''}")
    print(f"  closed by the master between two     {record.reconnected}")
    print(f"  errors                               {record.errors.total()}")
    for text, number in record.errors.most_common(5):
        print(f"    {number} × {text}")
    print(f"  {'seconds':<22}{'number':>9}{'p50':>9}{'p99':>9}{'longest':>9}")
    rows = [(kind, record.seconds[kind]) for kind in sorted(record.seconds, key=lambda kind: KINDS.index(kind) if kind in KINDS else 99)]
    for kind, values in [*rows, ("whole run", record.runs), ("status, beside", fleet.probes)]:
        if values:
            print(f"  {kind:<22}{len(values):>9}{statistics.median(values):>9.3f}{share(values, 99):>9.3f}{max(values):>9.3f}")
    cost = (front + sum(after.values())) / max(done, 1) * 1000
    print(f"  processor, ms a run                  {cost:.1f}: {front / max(done, 1) * 1000:.1f} front, the rest compiles")
    print(f"  processor, s                         master {front + sum(after.values()):.1f}, agents (this process) {own:.1f}")
    print(f"  longest block of the front's loop    {Blocks.worst(fleet.blocks)}")
    print(f"  memory of the master at most         {fleet.peak[0]:.0f} MB resident, {fleet.peak[1]:.0f} MB with shared pages counted once")
    return len(lost) + (wanted - done)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000, choices=range(1, 5001), metavar="N", help="1 to 5000 (default 1000)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each agent, one after the other (default 1)")
    parser.add_argument("--splay", type=float, default=0, help="seconds over which they come (default 0: all at once)")
    parser.add_argument("--bootstrap", type=int, default=20, help="how many get their certificate through the protocol (default 20)")
    parser.add_argument("--sources", type=int, default=4, help="file_metadata requests of a run (default 4)")
    parser.add_argument("--large", type=int, default=0, metavar="PERCENT", help="agents that have large facts (default 0 %%)")
    parser.add_argument("--large-bytes", type=int, default=15_000_000, metavar="BYTES", help="how large (default 15000000)")
    parser.add_argument("--site", choices=sorted(SITES), default="small")
    parser.add_argument("--limit", type=float, default=600, help="seconds for all runs (default 600)")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="a setting of the master")
    options = parser.parse_args()
    options.bootstrap = min(options.bootstrap, options.agents - 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.agents + 256
    if hard != resource.RLIM_INFINITY and hard < wanted:
        parser.error(f"{options.agents} agents need {wanted} descriptors; `ulimit -n` allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with tempfile.TemporaryDirectory(prefix="bunraku-fleet-") as folder:
        root = Path(folder)
        (root / "agents").mkdir()
        settings = dict(each.split("=", 1) for each in options.set)
        with reserved_port() as port, master(root / "master", autosign="true", **({"metrics_port": str(port)} | settings)) as process:
            (root / "master").mkdir()
            return 1 if measure(process, root / "agents", options) else 0


if __name__ == "__main__":
    sys.exit(main())
