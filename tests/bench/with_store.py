"""
Measures what a store in its service costs a master: catalogs a second with `store = sqlite` beside `store = none`, both running.

The catalogs are those of many nodes in turn; in each run of a node its facts differ (as they do: uptime, memory), in some loads its
resources, too. The masters take turns. `off` and `on` are answers a second, and milliseconds of processor time of an answer by process:
those of the store are spent behind the others (`store_niceness`), which the rate shows and the sum does not.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.bench import sites
from tests.bench.costs import family, processor_seconds, verdict
from tests.bench.server import SITE, Load, Peer, Request, answered, answers, rate
from tests.support.processes import master
from tests.support.raw_master import RawClient

NODES = 60
MOST_LOSS = (1 / 0.9, 1 / 0.95)  # times the rate without a store, must and aim
ANY_NODE = "path /\nauth any\nallow *\n"
LOADS = (  # title, resources, whether facts and resources differ from run to run, connections, requests
    ("of 100, unchanged, other facts, 4 at once", 100, True, False, 4, 360),
    ("of 100, unchanged, other facts, one by one", 100, True, False, 1, 180),
    ("of 100, nothing changed, 4 at once", 100, False, False, 4, 360),
    ("of 100, all resources changed, 4 at once", 100, True, True, 4, 240),
)
SETTLED = 0.02  # seconds of processor time in half a second: less is idle


def catalog(size: int, *, other_facts: bool, other_resources: bool) -> Request:
    """Return the request for a catalog of so many resources, each time of the next node."""
    runs = itertools.count()

    async def ask(peer: Peer, client: RawClient) -> None:
        run = next(runs)
        node = f"node{run % NODES}.example.com"
        facts = {**sites.FACTS, "bench_size": size, "bench_round": run if other_resources else -1, "clientcert": node}
        if other_facts:
            facts["uptime_seconds"] = run
        values = quote(json.dumps({"name": node, "values": facts}), safe="")
        form = f"environment=production&facts_format=application%2Fjson&facts={quote(values, safe='')}".encode()
        target = f"/puppet/v3/catalog/{node}?environment=production"
        kind = "application/x-www-form-urlencoded"
        answer = await answered(client, "POST", target, form, Accept="application/json", Content_Type=kind)
        if answer.body.count(b'"/srv/bench/') < size:
            raise RuntimeError(f"{peer.name}: a catalog of {size} resources has too few")

    return ask


def spent(pid: int) -> dict[str, float]:
    """Return the seconds of processor time of a master by kind of process."""
    seconds: dict[str, float] = {}
    for process in family(pid):
        line = Path(f"/proc/{process}/cmdline").read_bytes()
        kind = "store" if b"the store" in line else "compiling" if b"compiling" in line else "master"
        seconds[kind] = seconds.get(kind, 0.0) + processor_seconds(process)
    return seconds


async def settle(pid: int) -> None:
    """Return when the master's store has written what it had."""
    before = -1.0
    for _ in range(240):
        now = sum(spent(pid).values())
        if now - before < SETTLED:
            return
        before = now
        await asyncio.sleep(0.5)


async def compare(peers: dict[str, Peer], rounds: int) -> dict[str, Any]:
    """Return rates and processor time of each load."""
    results: dict[str, Any] = {}
    for peer in peers.values():
        await peer.bootstrap()
    for title, size, other_facts, other_resources, connections, number in LOADS:
        rates: dict[str, list[float]] = {name: [] for name in peers}
        costs: dict[str, dict[str, float]] = {name: {} for name in peers}
        asks = {
            name: Load(title, catalog(size, other_facts=other_facts, other_resources=other_resources), connections, 0, 0) for name in peers
        }
        for number_of_round in range(rounds + 1):
            for name, peer in peers.items():
                before = spent(peer.pid)
                answers_a_second = await rate(peer, asks[name], number)
                await settle(peer.pid)
                if number_of_round:  # the first one warms up
                    rates[name].append(answers_a_second)
                    for kind, seconds in spent(peer.pid).items():
                        costs[name][kind] = costs[name].get(kind, 0.0) + (seconds - before[kind]) * 1000 / number / rounds
        off, on = (statistics.median(rates[name]) for name in ("off", "on"))
        results[title] = {"off": off, "on": on, "processor": costs}
        shares = "; ".join(f"{name}: " + ", ".join(f"{kind} {value:.1f}" for kind, value in costs[name].items()) for name in peers)
        print(f"  catalogs {title:<44}{off:>8.1f}{on:>8.1f}{on / off:>8.3f}  {verdict(off / on, *MOST_LOSS)}  ms: {shares}", flush=True)
    return results


def run(rounds: int = 5) -> dict[str, Any]:
    """Measure, print a table, and return the numbers by the title of the load."""
    print("a master without a store and with one, answers a second", flush=True)
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as name, ExitStack() as stack:
        peers = {}
        for kind, store in (("off", "none"), ("on", "sqlite")):
            root = Path(name) / kind
            (root / "conf").mkdir(parents=True)
            (root / "conf" / "auth.conf").write_text(ANY_NODE)
            process = stack.enter_context(master(root, autosign="true", store=store))
            process.write(SITE)
            process.start()
            answers(process.port)
            peers[kind] = Peer(kind, process.port, process.pid, root / "client")
        return asyncio.run(compare(peers, rounds))
