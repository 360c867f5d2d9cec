"""
Measures masters (ours, Debian's puppetserver, puppetserver 8 where it is installed): start, memory, answers a second by kind of request.

All serve the same site with the same configuration (no classifier, no program that knows versions of code, every request is signed,
environments are cached without limit) to the same client, which shares the machine with them. The client keeps its connections, as
agents do within a run. Facts that a manifest reads differ from request to request, so that every catalog is compiled, but for those of
an unchanged node. puppetserver has two JRubies. Each master is warmed up with catalogs of each size until its rate stands still: a JVM
becomes faster over thousands of them. A start is one with a CA and certificates that are there, from the command to the first
answer; memory is that of all processes, before the first request and, at most, during all of them. What an answer takes of the
processors says the same as answers a second, and is little moved by whatever else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import itertools
import json
import shutil
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from certs import csr, keys
from certs.files import bundles
from certs.keys import KeyKind
from tests.bench import realistic, sites
from tests.bench.costs import family, memory_of, processor_seconds, verdict
from tests.interop import puppetserver
from tests.support.codings import ACCEPTED_BY_RUBY, decode
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, master
from tests.support.raw_master import RawAnswer, RawClient

CERTNAME = "bench.example.com"
TIMEOUT = 120.0  # seconds for one answer
BIG = 10 * 2**20
SETTLED = 10.0  # seconds from the first answer to a look at the memory of a master that nobody has asked for anything
CATALOGS = (6.0, 8.0)  # times puppetserver's, must and aim
REALISTIC = (15.0, 20.0)
BIG_FILES = (1.0, 3.0)
COSTS = {
    "first_start": "first start, making a CA (RSA 2048), s",
    "start": "start to first answer, s",
    "first_realistic": "first realistic catalog, s",
    "idle_rss": "idle memory, MB",
    "idle_pss": "the same with shared pages counted once",
    "loaded_rss": "memory under load, at most, MB",
    "loaded_pss": "the same with shared pages counted once",
}
LIMITS = {"start": (2.0, 1.0), "idle_rss": (200.0, 120.0)}  # of ours, must and aim
WARMING = {10: 300, 100: 150, 1000: 20}  # catalogs of a batch, by their size
WARMING_REALISTIC = 40
MOST_BATCHES = 20
LAST_BATCHES = 3
STILL = 0.03  # a rate that has grown by less stands still
SITE = {
    "environment.conf": "environment_timeout = unlimited\n",
    "manifests/site.pp": """
        node default {
          if $facts['bench_role'] { include role::web } else {
          Integer[1, Integer($facts['bench_size'])].each |$i| {
            file { "/srv/bench/${i}": ensure => file, content => "file ${i} of ${facts['bench_round']}\\n", mode => '0644' }
          } }
        }
    """,
    "modules/bench/files/small": "0123456789\n" * 930,
    "modules/bench/files/big": "x" * BIG,
}


@dataclass(slots=True)
class Peer:
    """A master, and the certificate that this client has from it."""

    name: str
    port: int
    pid: int
    folder: Path
    costs: dict[str, float] = field(default_factory=dict)  # by a key of COSTS
    processor: dict[str, float] = field(default_factory=dict)  # seconds for one answer, by the title of the load
    rounds: Iterator[int] = field(default_factory=itertools.count)
    names: Iterator[int] = field(default_factory=itertools.count)

    @property
    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        context.load_cert_chain(str(self.folder / "own.pem"), str(self.folder / "own.key"))
        return context

    async def connect(self) -> RawClient:
        return await RawClient.connect(self.port, self.context, server="localhost", timeout=TIMEOUT)

    async def bootstrap(self) -> None:
        """Get the certificate; the master signs by itself."""
        self.folder.mkdir(parents=True)
        anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE  # first contact
        client = await RawClient.connect(self.port, anonymous, server="localhost", timeout=TIMEOUT)
        key = KeyKind("rsa", 2048).generate()
        keys.save(self.folder / "own.key", key)
        (self.folder / "ca.pem").write_bytes((await answered(client, "GET", "/puppet-ca/v1/certificate/ca", Accept="text/plain")).body)
        (self.folder / "own.pem").write_bytes(await certified(client, CERTNAME, bundles.dump([csr.build(key, CERTNAME)])))
        await client.close()


async def answered(client: RawClient, method: str, target: str, body: bytes = b"", **headers: str) -> RawAnswer:
    answer = await client.ask(method, target, body, **headers)
    if answer.status != 200:
        raise RuntimeError(f"{method} {target[:80]} was answered {answer.status}: {answer.body[:300]!r}")
    return answer


async def certified(client: RawClient, name: str, request: bytes) -> bytes:
    """A request left and its certificate fetched."""
    await answered(client, "PUT", f"/puppet-ca/v1/certificate_request/{name}", request, Content_Type="text/plain")
    return (await answered(client, "GET", f"/puppet-ca/v1/certificate/{name}", Accept="text/plain")).body


Request = Callable[[Peer, RawClient], Awaitable[None]]


async def catalog_of(client: RawClient, facts: dict[str, Any]) -> bytes:
    values = quote(json.dumps({"name": CERTNAME, "values": facts}), safe="")
    form = f"environment=production&facts_format=application%2Fjson&facts={quote(values, safe='')}"
    target = f"/puppet/v3/catalog/{CERTNAME}?environment=production"
    headers = {"Accept": "application/json", "Accept_Encoding": ACCEPTED_BY_RUBY, "Content_Type": "application/x-www-form-urlencoded"}
    answer = await answered(client, "POST", target, form.encode(), **headers)
    return decode(answer.body, answer.headers)


def catalog(size: int, *, changing: bool = True) -> Request:
    """A catalog of so many resources; `changing`: of facts that were never the same."""

    async def ask(peer: Peer, client: RawClient) -> None:
        facts = {**sites.FACTS, "bench_size": size, "bench_round": next(peer.rounds) if changing else -1, "clientcert": CERTNAME}
        if (await catalog_of(client, facts)).count(b'"/srv/bench/') < size:
            raise RuntimeError(f"{peer.name}: a catalog of {size} resources has too few")

    return ask


def realistic_catalog(*, changing: bool = True) -> Request:
    """A catalog of the site in `realistic`; `changing`: of a fact that is in files and was never the same."""

    async def ask(peer: Peer, client: RawClient) -> None:
        body = await catalog_of(client, realistic.facts(CERTNAME, next(peer.rounds) if changing else -1))
        if body.count(b"/release.txt") < realistic.VHOSTS:
            raise RuntimeError(f"{peer.name}: a realistic catalog has too few virtual hosts")

    return ask


def file(name: str, size: int) -> Request:
    async def ask(peer: Peer, client: RawClient) -> None:
        target = f"/puppet/v3/file_content/modules/bench/{name}?environment=production"
        answer = await answered(client, "GET", target, Accept="application/octet-stream")
        if len(answer.body) != size:
            raise RuntimeError(f"{peer.name}: {name} has {len(answer.body)} octets instead of {size}")

    return ask


async def metadata(peer: Peer, client: RawClient) -> None:
    query = "environment=production&links=manage&checksum_type=sha256&source_permissions=ignore"
    await answered(client, "GET", f"/puppet/v3/file_metadata/modules/bench/small?{query}", Accept="application/json")


def requests(number: int) -> list[tuple[str, bytes]]:
    """Requests for certificates, made beforehand: what is measured is the CA."""
    key = KeyKind("rsa", 2048).generate()
    return [(name, bundles.dump([csr.build(key, name)])) for name in (f"new{i}.example.com" for i in range(number))]


def signing(ready: list[tuple[str, bytes]]) -> Request:
    async def ask(peer: Peer, client: RawClient) -> None:
        await certified(client, *ready[next(peer.names)])

    return ask


@dataclass(frozen=True, slots=True)
class Load:
    """So many requests of a kind over so many connections."""

    title: str
    make: Request
    connections: int
    ours: int
    theirs: int
    limits: tuple[float, float] | None = None  # times puppetserver's, must and aim


def loads() -> list[Load]:
    found = []
    if not realistic.why_not():
        found += [Load(f"realistic catalogs, {n} at once", realistic_catalog(), n, 60, 16, REALISTIC) for n in (1, 4)]
        found += [Load("the same, nothing changed, 4 at once", realistic_catalog(changing=False), 4, 400, 16, REALISTIC)]
    for size, ours, theirs in ((10, 400, 120), (100, 200, 60), (1000, 60, 16)):
        found += [Load(f"catalogs of {size}, {n} at once", catalog(size), n, ours, theirs, CATALOGS) for n in (1, 4, 8)]
    found += [
        Load("the same of 100, nothing changed, 4 at once", catalog(100, changing=False), 4, 400, 60, CATALOGS),
        Load("file_metadata, 4 at once", metadata, 4, 800, 400),
        Load("file_content 10 kB, 4 at once", file("small", 10_230), 4, 800, 400),
        Load("file_content 10 MB, 2 at once", file("big", BIG), 2, 40, 40, BIG_FILES),
        Load("request to certificate, 4 at once", signing(requests(120)), 4, 100, 50),
    ]
    return found


async def rate(peer: Peer, load: Load, number: int) -> float:
    """Answers a second."""
    clients = [await peer.connect() for _ in range(load.connections)]
    left = iter(range(number))

    async def work(client: RawClient) -> None:
        for _ in left:
            await load.make(peer, client)

    before, began = spent(peer.pid), time.monotonic()
    await asyncio.gather(*map(work, clients))
    seconds = time.monotonic() - began
    peer.processor[load.title] = (spent(peer.pid) - before) / number
    for name, megabytes in zip(("loaded_rss", "loaded_pss"), memory_of(peer.pid), strict=True):
        peer.costs[name] = max(peer.costs.get(name, 0.0), megabytes)
    for client in clients:
        await client.close()
    return number / seconds


def spent(pid: int) -> float:
    """Seconds of processor time of a master's processes."""
    return sum(map(processor_seconds, family(pid)))


async def warm(peer: Peer) -> None:
    """Ask for catalogs of each size until the rate stands still."""
    kinds: list[tuple[str, Request, int]] = [(f"catalogs of {size}", catalog(size), batch) for size, batch in WARMING.items()]
    if not realistic.why_not():
        kinds.append(("realistic catalogs", realistic_catalog(), WARMING_REALISTIC))
    for what, make, batch in kinds:
        rates: list[float] = []
        while len(rates) < MOST_BATCHES and not stands_still(rates):
            rates.append(await rate(peer, Load("", make, 4, 0, 0), batch))
        print(f"  {peer.name}: warmed up with {len(rates) * batch} {what}, {rates[0]:.1f} to {rates[-1]:.1f} a second", flush=True)


def stands_still(rates: list[float]) -> bool:
    """Return whether the last three batches brought nothing over the best of those before them."""
    return len(rates) > LAST_BATCHES + 1 and max(rates[-LAST_BATCHES:]) < (1 + STILL) * max(rates[:-LAST_BATCHES])


def answers(port: int) -> None:
    """Returns when the master on this port has answered."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=TIMEOUT)
    try:
        connection.request("GET", "/status/v1/simple/status-service")
        if (text := connection.getresponse().read()) != b"running":
            raise RuntimeError(f"the master says {text!r}")
    finally:
        connection.close()


def idle(pid: int) -> dict[str, float]:
    time.sleep(SETTLED)
    resident, proportional = memory_of(pid)
    return {"idle_rss": resident, "idle_pss": proportional}


def first_answer(process: MasterProcess) -> float:
    """Seconds from the start of a master of ours to its first answer."""
    began = time.perf_counter()
    process.start()
    answers(process.port)
    return time.perf_counter() - began


@contextmanager
def ours(folder: Path, starts: int) -> Iterator[Peer]:
    with master(folder / "ours", autosign="true") as process:
        process.write(SITE)
        if not realistic.why_not():
            realistic.write(process.site, CERTNAME)
        costs = {"first_start": first_answer(process)}
        seconds = []
        for _ in range(starts):
            process.stop()
            seconds.append(first_answer(process))
        costs |= {"start": statistics.median(seconds), **idle(process.pid)}
        yield Peer("ours", process.port, process.pid, folder / "ours-client", costs)


@contextmanager
def theirs(installed: puppetserver.Installed, folder: Path) -> Iterator[Peer]:
    """A puppetserver of that release, configured as our master is."""
    root = Path(tempfile.mkdtemp(prefix="bunraku-bench-", dir="/var/tmp"))  # its own user has to enter
    root.chmod(0o755)
    try:
        with reserved_port() as port:
            puppetserver.configured(installed, root, port, jrubies=2, programs=False)
            production = root / "code" / "environments" / "production"
            with (root / "conf" / "puppet.conf").open("a") as conf:
                conf.write("strict = warning\n")  # the default of 7: by that of 8, Debian's module apache has an error
            shutil.rmtree(production)
            for name, text in SITE.items():
                (production / name).parent.mkdir(parents=True, exist_ok=True)
                (production / name).write_text(text)
            if not realistic.why_not():
                realistic.write(production, CERTNAME)
            costs: dict[str, float] = {}
            began = time.perf_counter()
            with puppetserver.running(root, port, installed, heap="2g"):
                answers(port)
                costs["first_start"] = time.perf_counter() - began
            began = time.perf_counter()
            with puppetserver.running(root, port, installed, heap="2g") as server:
                answers(port)
                costs["start"] = time.perf_counter() - began
                name = f"puppetserver {installed.version}"
                yield Peer(name, port, server.pid, folder / f"client-of-{installed.version}", costs | idle(server.pid))
    finally:
        shutil.rmtree(root)


async def measured(peer: Peer, *, reference: bool, only: str) -> dict[str, Any]:
    """The costs, answers a second by the title of the load, and as `processor` what one of them takes."""
    await peer.bootstrap()
    if not realistic.why_not():
        client = await peer.connect()
        began = time.perf_counter()
        await realistic_catalog()(peer, client)
        peer.costs["first_realistic"] = time.perf_counter() - began
        await client.close()
    await warm(peer)
    peer.processor.clear()
    found: dict[str, Any] = {"processor": peer.processor}
    for load in loads():
        if only in load.title:
            found[load.title] = await rate(peer, load, load.theirs if reference else load.ours)
    return peer.costs | found


REFERENCES = {"puppetserver": puppetserver.PUPPETSERVER_7, "puppetserver_8": puppetserver.PUPPETSERVER_8}


def run(only: str = "", starts: int = 5) -> dict[str, Any]:
    """
    Measure one master after the other, and print a table beside each reference.

    Returns the numbers of `ours` and of each of REFERENCES, by the keys of COSTS and the titles of loads; {} for one that is not installed.
    """
    print("masters that listen (puppetserver: 2 JRubies; all warmed up until their rate stands still)", flush=True)
    if why_not := realistic.why_not():
        print(f"  without realistic catalogs: {why_not}", flush=True)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as name:
        folder = Path(name)
        with ours(folder, starts) as peer:
            results["ours"] = uvloop.run(measured(peer, reference=False, only=only))
        for key, installed in REFERENCES.items():
            results[key] = {}
            if why := installed.why_not():
                print(f"  puppetserver {installed.version}: {why}; there is nothing to compare with")
            else:
                with theirs(installed, folder) as peer:
                    results[key] = uvloop.run(measured(peer, reference=True, only=only))
            table(results["ours"], results[key], f"server {installed.version}")
    return results


def table(mine: dict[str, Any], reference: dict[str, Any], title: str) -> None:
    """Print the numbers of our master beside those of a reference; `reference` is empty where there is none."""
    print(f"  {'':<48}{'ours':>10}{title:>14}{'times':>8}")
    for key, words in COSTS.items():
        if key not in mine:
            continue
        print(row(words, mine[key], reference.get(key), less=True) + judged(mine[key], LIMITS.get(key)))
    print("  answers a second; in brackets how many times less of a processor one of them takes")
    for load in loads():
        if (value := mine.get(load.title)) is None:
            continue
        line = row(load.title, value, reference.get(load.title))
        if load.title in reference:
            line += f" ({reference['processor'][load.title] / mine['processor'][load.title]:.1f})"
        if load.limits and load.title in reference:
            # Turned round, as a verdict takes less for better.
            line += judged(reference[load.title] / value, (1 / load.limits[0], 1 / load.limits[1]))
        print(line)


def row(title: str, mine: float, reference: float | None, *, less: bool = False) -> str:
    """What both have, and how many times better ours is; `less` of it is better."""
    text = f"  {title:<48}{mine:>10.1f}"
    if reference is None:
        return text
    return text + f"{reference:>14.1f}{reference / mine if less else mine / reference:>8.1f}"


def judged(value: float, limits: tuple[float, float] | None) -> str:
    return "" if limits is None else f"   {verdict(value, *limits)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only loads that have this in their name")
    parser.add_argument("--starts", type=int, default=5, help="starts of ours, of which the median counts (default 5)")
    options = parser.parse_args()
    run(options.only, options.starts)
