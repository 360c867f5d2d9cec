"""
Measures masters that listen, ours and Debian's puppetserver, through TLS: answers a second by kind of request.

Both serve the same site to the same client, which shares the machine with them. The client keeps its connections, as agents do
within a run. Facts that a manifest reads differ from request to request, so that every catalog is compiled, but for those
of an unchanged node. puppetserver has two JRubies, caches environments without limit and is warmed up.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import shutil
import ssl
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

from certs import bundles, csr, keys
from certs.keys import KeyKind
from master.testing import RawAnswer, RawClient
from tests.bench import sites
from tests.bench.costs import memory_of
from tests.interop import puppetserver
from tests.processes import master

CERTNAME = "bench.example.com"
TIMEOUT = 120.0  # seconds for one answer
BIG = 10 * 2**20
MUST, AIM = 2.0, 4.0  # times puppetserver's catalogs a second
SITE = {
    "environment.conf": "environment_timeout = unlimited\n",
    "manifests/site.pp": """
        node default {
          Integer[1, Integer($facts['bench_size'])].each |$i| {
            file { "/srv/bench/${i}": ensure => file, content => "file ${i} of ${facts['bench_round']}\\n", mode => '0644' }
          }
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


def catalog(size: int, *, changing: bool = True) -> Request:
    """A catalog of so many resources; `changing`: of facts that were never the same."""

    async def ask(peer: Peer, client: RawClient) -> None:
        facts = {**sites.FACTS, "bench_size": size, "bench_round": next(peer.rounds) if changing else -1, "clientcert": CERTNAME}
        values = quote(json.dumps({"name": CERTNAME, "values": facts}), safe="")
        form = f"environment=production&facts_format=application%2Fjson&facts={quote(values, safe='')}"
        target = f"/puppet/v3/catalog/{CERTNAME}?environment=production"
        kind = "application/x-www-form-urlencoded"
        answer = await answered(client, "POST", target, form.encode(), Accept="application/json", Content_Type=kind)
        if answer.body.count(b'"/srv/bench/') < size:
            raise RuntimeError(f"{peer.name}: a catalog of {size} resources has too few")

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
    catalogs: bool = False


def loads() -> list[Load]:
    found = []
    for size, ours, theirs in ((10, 400, 120), (100, 200, 60), (1000, 60, 16)):
        found += [Load(f"catalogs of {size}, {n} at once", catalog(size), n, ours, theirs, catalogs=True) for n in (1, 4, 8)]
    found += [
        Load("the same of 100, nothing changed, 4 at once", catalog(100, changing=False), 4, 400, 60, catalogs=True),
        Load("file_metadata, 4 at once", metadata, 4, 800, 400),
        Load("file_content 10 kB, 4 at once", file("small", 10_230), 4, 800, 400),
        Load("file_content 10 MB, 2 at once", file("big", BIG), 2, 40, 40),
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

    began = time.monotonic()
    await asyncio.gather(*map(work, clients))
    seconds = time.monotonic() - began
    for client in clients:
        await client.close()
    return number / seconds


async def warm(peer: Peer, number: int) -> None:
    for size in (10, 100, 1000):
        await rate(peer, Load("", catalog(size), 4, 0, 0), number)


@contextmanager
def ours(folder: Path) -> Iterator[Peer]:
    with master(folder / "ours", autosign="true") as process:
        process.write(SITE)
        process.start()
        yield Peer("ours", process.port, process.pid, folder / "ours-client")


@contextmanager
def theirs(folder: Path) -> Iterator[Peer | None]:
    if not puppetserver.JAR.exists():
        yield None
        return
    root = Path(tempfile.mkdtemp(prefix="bunraku-bench-", dir="/var/tmp"))  # its own user has to enter
    root.chmod(0o755)
    try:
        with puppetserver.started(root, jrubies=2, heap="2g") as server:
            production = server.root / "code" / "environments" / "production"
            shutil.rmtree(production)
            for name, text in SITE.items():
                (production / name).parent.mkdir(parents=True, exist_ok=True)
                (production / name).write_text(text)
            yield Peer("puppetserver", server.port, server.pid, folder / "their-client")
    finally:
        shutil.rmtree(root)


async def measured(peer: Peer, *, reference: bool, only: str) -> dict[str, float]:
    await peer.bootstrap()
    await warm(peer, 60 if reference else 20)
    found: dict[str, float] = {}
    for load in loads():
        if only in load.title:
            found[load.title] = await rate(peer, load, load.theirs if reference else load.ours)
    found["memory"] = memory_of(peer.pid)[1]
    return found


def run(only: str = "") -> dict[str, Any]:
    """Measure one after the other, and print; the numbers by title."""
    print("masters that listen, answers a second (puppetserver: 2 JRubies, warmed up)", flush=True)
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as name:
        folder = Path(name)
        with ours(folder) as peer:
            mine = uvloop.run(measured(peer, reference=False, only=only))
        with theirs(folder) as other:
            reference = uvloop.run(measured(other, reference=True, only=only)) if other is not None else {}
    if not reference:
        print("  Debian's puppetserver is not installed; there is nothing to compare with")
    print(f"  {'':<48}{'ours':>10}{'puppetserver':>14}{'times':>8}")
    judged = {load.title for load in loads() if load.catalogs}
    for title, value in mine.items():
        text = f"  {'memory afterwards, MB' if title == 'memory' else title:<48}{value:>10.1f}"
        if title in reference:
            times = reference[title] / value if title == "memory" else value / reference[title]
            text += f"{reference[title]:>14.1f}{times:>8.1f}"
            if title in judged:
                text += "   aim met" if times >= AIM else "   must met" if times >= MUST else "   MISSED"
        print(text)
    return {"ours": mine, "puppetserver": reference}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only what has this in its name")
    run(parser.parse_args().only)
