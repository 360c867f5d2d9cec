"""
Measures what one request costs all processes of a master, from one client on one connection: `python tests/bench/front.py`.

A catalog of an unchanged node, the same with a fact that no manifest reads (as the uptime), catalogs of which every resource differs,
and reports. Numbers are milliseconds of processor time of an answer by kind of process, and how often a thread of the listening
process went to sleep, which is twice for each step that another thread does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench import sites
from tests.bench.costs import family
from tests.bench.fleet import facts_of
from tests.bench.server import CERTNAME, SITE, Peer, answered, answers
from tests.support.processes import MasterProcess
from tests.support.raw_master import RawClient

NANOSECOND = 1e-9
STAMP = "2026-01-01T00:00:00.000000000+00:00"
ANY_NODE = "path /\nauth any\nallow *\n"
SETTLED = 0.5  # seconds without requests in which the store may do what it has put off


@dataclass(frozen=True, slots=True)
class Spent:
    """What the processes of a master have used up: seconds of processor time by kind, sleeps of the listening one's threads."""

    seconds: dict[str, float]
    sleeps: int

    @classmethod
    def now(cls, pid: int) -> Spent:
        seconds: dict[str, float] = {}
        for process in family(pid):
            line = Path(f"/proc/{process}/cmdline").read_bytes()
            kind = "store" if b"the store" in line else "compiling" if b"compiling" in line else "listening"
            seconds[kind] = seconds.get(kind, 0.0) + sum(
                int(task.read_text().split()[0]) * NANOSECOND for task in Path(f"/proc/{process}/task").glob("*/schedstat")
            )
        statuses = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status")]
        return cls(seconds, sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in statuses))


def catalog_form(size: int, round_number: int, uptime: int, *, few: bool = False) -> bytes:
    """Return the form with the facts, `few` or as many as a host has, of a node with `size` files that depend on `round_number`."""
    facts = {**(sites.FACTS if few else facts_of(CERTNAME)), "bench_size": size, "bench_round": round_number, "uptime_seconds": uptime}
    values = quote(json.dumps({"name": CERTNAME, "values": facts, "timestamp": STAMP}, separators=(",", ":")), safe="")
    return f"environment=production&facts_format=application%2Fjson&facts={quote(values, safe='')}".encode()


async def ask_catalog(client: RawClient, form: bytes) -> None:
    kind = "application/x-www-form-urlencoded"
    target = f"/puppet/v3/catalog/{CERTNAME}?environment=production"
    await answered(client, "POST", target, form, Accept="application/json", Content_Type=kind)


def report_of(resources: int) -> bytes:
    """Return the report of a run in which nothing changed."""
    status = {
        "resource_type": "File", "file": "/site.pp", "line": 4, "evaluation_time": 0.001, "failed": False, "failed_to_restart": False,
        "changed": False, "out_of_sync": False, "skipped": False, "change_count": 0, "out_of_sync_count": 0, "events": [],
        "time": STAMP, "tags": ["file"], "containment_path": ["Stage[main]"], "corrective_change": False,
    }  # fmt: skip
    titles = [f"/srv/bench/{number}" for number in range(resources)]
    return json.dumps(
        {
            "host": CERTNAME, "time": STAMP, "configuration_version": 1, "report_format": 12,
            "puppet_version": "7.23.0", "status": "unchanged", "environment": "production", "noop": False, "noop_pending": False,
            "corrective_change": False, "transaction_completed": True, "master_used": "localhost:8140", "cached_catalog_status": "not_used",
            "transaction_uuid": "5f1b4f59-5ee7-44d0-a5d0-1e7c1e6e7f10", "catalog_uuid": "5f1b4f59-5ee7-44d0-a5d0-1e7c1e6e7f11",
            "logs": [], "metrics": {"time": {"name": "time", "label": "Time", "values": [["total", "Total", 1.5]]}},
            "resource_statuses": {f"File[{title}]": {**status, "title": title, "resource": f"File[{title}]"} for title in titles},
        }
    ).encode()  # fmt: skip


async def ask_report(client: RawClient, body: bytes) -> None:
    target = f"/puppet/v3/report/{CERTNAME}?environment=production"
    await answered(client, "PUT", target, body, Accept="application/json", Content_Type="application/json")


def loads() -> dict[str, tuple[Callable[[RawClient, bytes], Any], Callable[[int], bytes]]]:
    """Return by name what is asked and how the body of a numbered request is made."""
    return {
        "few facts, unchanged": (ask_catalog, lambda number: catalog_form(100, -1, 0, few=True)),
        "few facts, all changed": (ask_catalog, lambda number: catalog_form(100, number, number, few=True)),
        "nothing changed": (ask_catalog, lambda number: catalog_form(100, -1, 0)),
        "other facts": (ask_catalog, lambda number: catalog_form(100, -1, number)),
        "all of 100 changed": (ask_catalog, lambda number: catalog_form(100, number, number)),
        "report of 100": (ask_report, lambda number: report_of(100)),
    }


async def measure(peer: Peer, requests: int, rounds: int, only: str) -> dict[str, Any]:
    """Print a line for each load and return the numbers: medians of the rounds, after one that warms up."""
    await peer.bootstrap()
    client = await peer.connect()
    results: dict[str, Any] = {}
    first = 0
    for name, (ask, body) in loads().items():
        if only not in name:
            continue
        costs: list[dict[str, float]] = []
        for _ in range(rounds + 1):
            bodies = [body(first + number) for number in range(requests)]
            first += requests
            before = Spent.now(peer.pid)
            for each in bodies:
                await ask(client, each)
            await asyncio.sleep(SETTLED)
            after = Spent.now(peer.pid)
            cost = {kind: (after.seconds[kind] - before.seconds.get(kind, 0.0)) * 1000 / requests for kind in after.seconds}
            costs.append(cost | {"sleeps": (after.sleeps - before.sleeps) / requests})
        middle = {kind: statistics.median(cost[kind] for cost in costs[1:]) for kind in costs[-1]}
        results[name] = middle
        total = sum(value for kind, value in middle.items() if kind not in ("sleeps", "store"))
        parts = ", ".join(f"{kind} {value:.2f}" for kind, value in middle.items() if kind != "sleeps")
        print(f"  {name:<22}{total:>7.2f} ms ({parts}), {middle['sleeps']:.1f} sleeps", flush=True)
    await client.close()
    return results


def run(requests: int = 200, rounds: int = 3, only: str = "", store: str = "none", python: str = "") -> dict[str, Any]:
    """Start a master, measure, stop it."""
    print(f"a request of one client, processor time without the store's own; store = {store}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as folder:
        root = Path(folder)
        (root / "conf").mkdir()
        (root / "conf" / "auth.conf").write_text(ANY_NODE)
        process = MasterProcess(root, {"autosign": "true", "store": store, "compile_workers": "1"}, python=python or sys.executable)
        try:
            process.write(SITE)
            process.start()
            answers(process.port)
            results = asyncio.run(measure(Peer("ours", process.port, process.pid, root / "client"), requests, rounds, only))
            process.stop()
            return results
        finally:
            process.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200, help="requests of a round (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of which the median counts (default 3)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only loads that have this in their name")
    parser.add_argument("--store", default="none", choices=("none", "sqlite"), help="the master's store (default none)")
    parser.add_argument("--python", default="", metavar="PROGRAM", help="what the master is started with, for a profiler")
    options = parser.parse_args()
    run(options.requests, options.rounds, options.only, options.store, options.python)
