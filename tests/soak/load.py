"""What a master has to do meanwhile: agents that loop, newcomers that get certificates, and a tenth of requests that are bad."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import orjson
from cryptography import x509

from tests.bench.fleet import facts_of
from tests.support.bad_requests import Bad, bad_requests, unknown_paths
from tests.support.processes import MasterProcess
from tests.support.raw_master import CaFolder, RawClient
from tests.support.simulated_agents import FAILURES, Record, RunFailed, Server, SimulatedAgent, with_certificates

TIMEOUT = 60.0  # seconds for one answer
LONGEST_WAIT = 2.0  # seconds of a Retry-After that are waited for
BAD_SHARE = 0.1
REFUSED = (400, 403, 404, 405)
READER, VANDAL = "reader.test", "vandal.test"
CLEANED = 10  # of so many newcomers one loses its certificate again
SMALL = 10_240
SITE = {
    "environment.conf": "environment_timeout = unlimited\n",
    "manifests/site.pp": "node default { include soak }",
    "modules/soak/lib/facter/one.rb": "Facter.add(:one) { }\n",
    "modules/soak/files/small": "x" * SMALL,
    **{f"modules/soak/files/{number}": f"file {number}\n" * 20 for number in range(4)},
    "modules/soak/manifests/init.pp": """
        class soak {
          file { '/srv/soak': ensure => directory }
          Integer[0, 3].each |$i| {
            file { "/srv/soak/source-${i}": source => "puppet:///modules/soak/${i}" }
            file { "/srv/soak/content-${i}": content => "${i} of ${facts['networking']['fqdn']} in round ${facts['round']}\\n" }
          }
        }
    """,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that did not end well, and when it began and ended."""

    what: str
    began: float
    ended: float


@dataclass(slots=True)
class Load:
    """
    All that is asked of `process`; the agents go to `port`, which may be a proxy's.

    Nothing new begins while `go` is not set.

    `signed` and `cleaned` are the serials, by name, of certificates that newcomers got and of those that were taken back since.
    """

    process: MasterProcess
    port: int
    folder: Path
    agents: int
    chance: random.Random
    go: asyncio.Event = field(default_factory=asyncio.Event)
    record: Record = field(default_factory=Record)
    failures: list[Failure] = field(default_factory=list)
    answered: int = 0  # beside those of the agents
    refused: Counter[str] = field(default_factory=Counter)
    signed: dict[str, int] = field(default_factory=dict)
    cleaned: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> int:
        return sum(map(len, self.record.seconds.values())) + self.answered

    @property
    def asked(self) -> int:
        return self.good + self.bad

    @property
    def bad(self) -> int:
        return self.refused.total()

    def prepare(self) -> list[SimulatedAgent]:
        """Those that loop, with certificates."""
        names = [f"node{number:03}.test" for number in range(self.agents)]
        with_certificates([*names, READER, VANDAL], self.folder, self.process.ca)
        foreign = CaFolder(self.folder / "foreign", "Puppet CA: somebody else's")
        foreign.issue(VANDAL)
        server = Server(self.port, self.process.port, timeout=TIMEOUT)
        return [SimulatedAgent(name, self.folder, server, self.record, facts_of(name), longest_wait=LONGEST_WAIT) for name in names]

    async def run(self, agents: list[SimulatedAgent], over: asyncio.Event) -> None:
        """From the moment that the master can do everything until it is over, and what is under way has ended."""
        client = await self.connect(READER)
        await client.until_running()
        await client.close()
        async with asyncio.TaskGroup() as tasks:
            for agent in agents:
                tasks.create_task(self.life(agent, over))
            for work in (self.reading, self.newcomers, self.vandalism, self.vandalism):
                tasks.create_task(work(over))

    @contextlib.contextmanager
    def noted(self, what: str) -> Iterator[None]:
        """What fails within the block is a failure, and no more."""
        began = time.monotonic()
        try:
            yield
        except (RunFailed, *FAILURES) as err:
            self.failures.append(Failure(f"{what}: {type(err).__name__}: {err}"[:300], began, time.monotonic()))

    async def life(self, agent: SimulatedAgent, over: asyncio.Event) -> None:
        await asyncio.sleep(self.chance.random())
        for number in itertools.count():
            await self.go.wait()
            if over.is_set():
                return
            agent.facts["round"] = number // 2  # every other catalog is one that the master remembers
            with self.noted(agent.certname):
                await agent.run()
            await asyncio.sleep(self.chance.uniform(0, 0.5))

    async def reading(self, over: asyncio.Event) -> None:
        """Requests that are no agent's run, some connections long."""
        wanted: list[Bad] = [
            ("GET", "/puppet/v3/file_content/modules/soak/small?environment=production", b"", {}),
            ("GET", "/puppet-ca/v1/certificate_revocation_list/ca", b"", {}),
            ("GET", "/status/v1/services", b"", {}),
            ("GET", f"/puppet/v3/node/{READER}?environment=production", b"", {}),
            (
                "PUT",
                f"/puppet/v3/facts/{READER}?environment=production",
                orjson.dumps({"name": READER, "values": facts_of(READER)}),
                {"Content_Type": "application/json"},
            ),
        ]
        while await self.go.wait() and not over.is_set():
            with self.noted("reading"):
                client = await self.connect(READER)
                try:
                    for method, target, body, headers in wanted * 5:
                        answer = await client.ask(method, target, body, **headers)
                        if answer.status != 200:
                            raise RunFailed(f"{method} {target} was answered {answer.status}: {answer.body[:200]!r}")
                        self.answered += 1
                finally:
                    await client.close()
            await asyncio.sleep(0.2)

    async def newcomers(self, over: asyncio.Event) -> None:
        """One after the other gets a certificate; an administrator takes some back."""
        server = Server(self.process.port, self.process.port, timeout=TIMEOUT)
        for number in itertools.count():
            await self.go.wait()
            if over.is_set():
                return
            name = f"new{number:05}.test"
            with self.noted(name):
                await SimulatedAgent(name, self.folder, server, self.record).bootstrap()
                self.signed[name] = x509.load_pem_x509_certificate((self.folder / f"{name}.pem").read_bytes()).serial_number
            if number % CLEANED == 0 and name in self.signed:
                with self.noted(f"cert clean {name}"):
                    done = await asyncio.to_thread(self.process.puppet, "cert", "clean", name)
                    if done.code:
                        raise RunFailed(done.text[-300:])
                    self.cleaned[name] = self.signed[name]
            await asyncio.sleep(0.5)

    async def vandalism(self, over: asyncio.Event) -> None:
        """Bad requests, as many as are due."""
        asked = [*bad_requests(VANDAL, READER), *unknown_paths()]
        kinds: list[tuple[str, Callable[[], Awaitable[None]]]] = [("asked", partial(self.refusing, each)) for each in asked]
        kinds += [("foreign", self.foreign), ("garbage", self.garbage), ("half a request", self.half), ("no TLS", self.plain)]
        for what, act in itertools.cycle(kinds):
            while self.bad >= self.good * BAD_SHARE / (1 - BAD_SHARE):
                if over.is_set():
                    return
                await asyncio.sleep(0.02)
            await self.go.wait()
            if over.is_set():
                return
            with self.noted(f"bad ({what})"):
                await act()
            self.refused[what] += 1

    async def connect(self, name: str, *, of: str = "") -> RawClient:
        """As `name`, with a certificate of the CA or of another folder."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.folder / "ca.pem")
        folder = self.folder / of
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        return await RawClient.connect(self.process.port, context, server="localhost", timeout=TIMEOUT)

    async def refusing(self, bad: Bad) -> None:
        method, target, body, headers = bad
        client = await self.connect(VANDAL)
        try:
            answer = await client.ask(method, target, body, **headers)
        finally:
            await client.close()
        if answer.status not in REFUSED:
            raise RunFailed(f"{method} {target} was answered {answer.status}: {answer.body[:200]!r}")

    async def foreign(self) -> None:
        """A certificate of a CA that is not the master's."""
        try:
            client = await self.connect(VANDAL, of="foreign")
            answer = await client.ask("GET", f"/puppet/v3/node/{VANDAL}?environment=production")
        except FAILURES:
            return
        raise RunFailed(f"somebody else's certificate was answered {answer.status}")

    async def garbage(self) -> None:
        client = await self.connect(VANDAL)
        try:
            await client.send(b"\x00\xff not http at all\r\n\r\n")
            if not await client.ended():
                raise RunFailed("the connection stayed open after garbage")
        finally:
            await client.close()

    async def half(self) -> None:
        """Facts of which only half come, then nobody."""
        client = await self.connect(VANDAL)
        head = f"PUT /puppet/v3/facts/{VANDAL}?environment=production HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        await client.send(head.encode() + b'Content-Length: 1000\r\n\r\n{"name":')
        client.writer.transport.abort()

    async def plain(self) -> None:
        """HTTP where TLS is spoken."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.process.port)
        try:
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            async with asyncio.timeout(TIMEOUT):
                with contextlib.suppress(OSError):
                    while await reader.read(4096):
                        pass
        finally:
            writer.close()
