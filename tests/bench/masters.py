"""
Measures what a run costs with `state` in PostgreSQL beside files: the processor time of all processes, those of the database included.

Both masters serve a deployed version of the same site. A run is that of an agent of Puppet 7: two listings of plugins, a catalog for facts
that differ each time, a report with all resources. The masters take turns; the numbers are medians of the rounds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from tests.bench import realistic, sites
from tests.bench.costs import family, processor_seconds, verdict
from tests.bench.server import CERTNAME, SITE, Load, Peer, answered, answers, catalog_of, rate, spent
from tests.support.control_repository import ControlRepository
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.processes import MasterProcess, master
from tests.support.raw_master import RawClient
from tests.support.simulated_agents import report_of

SIZE = 100  # resources of the unchanged node
CONNECTIONS = 2
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "128MB"}
LISTING = "environment=production&recurse=true&links=follow&checksum_type=sha256&source_permissions=ignore"

Facts = Callable[[int], dict[str, Any]]
Run = Callable[[Peer, RawClient], Awaitable[None]]


def unchanged(number: int) -> dict[str, Any]:
    """Return the facts of a node whose catalog depends on none of those that differ."""
    return {**sites.FACTS, "bench_size": SIZE, "bench_round": -1, "uptime_seconds": number, "clientcert": CERTNAME}


def run_of(facts: Facts) -> Run:
    numbers = itertools.count()

    async def run(peer: Peer, client: RawClient) -> None:
        for mount in ("pluginfacts", "plugins"):
            await answered(client, "GET", f"/puppet/v3/file_metadatas/{mount}?{LISTING}", Accept="application/json")
        catalog = json.loads(await catalog_of(client, facts(next(numbers))))
        report = json.dumps(report_of(catalog, CERTNAME, str(uuid.uuid4()))).encode()
        await answered(client, "PUT", f"/puppet/v3/report/{CERTNAME}?environment=production", report, Content_Type="application/json")

    return run


def loads() -> list[tuple[str, Facts, int, tuple[float, float]]]:
    """Return title, facts, runs of a round, and how many times the cost with files is good enough: must and aim."""
    found: list[tuple[str, Facts, int, tuple[float, float]]] = [(f"unchanged node of {SIZE} resources", unchanged, 80, (1.3, 1.15))]
    if why := realistic.why_not():
        print(f"  without realistic catalogs: {why}", flush=True)
    else:
        found.append(("realistic catalog", lambda number: realistic.facts(CERTNAME, number), 12, (1.15, 1.05)))
    return found


def written(postgresql: PostgresqlServer) -> tuple[float, float]:
    """Return the kilobytes of its log that PostgreSQL has written, and those of the database."""
    with psycopg.connect(postgresql.address("puppet")) as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0', pg_database_size(current_database())").fetchone()
    assert row is not None
    return float(row[0]) / 1000, float(row[1]) / 1000


async def compare(peers: dict[str, Peer], postgresql: PostgresqlServer, rounds: int) -> dict[str, Any]:
    """Return the milliseconds of a run by title and place of the state, and the kilobytes that PostgreSQL writes for it."""
    results: dict[str, Any] = {}
    for peer in peers.values():
        await peer.bootstrap()
    for title, facts, number, limits in loads():
        costs: dict[str, list[float]] = {name: [] for name in peers}
        asks = {name: Load(title, run_of(facts), CONNECTIONS, 0, 0) for name in peers}
        in_database, logged_before = 0.0, written(postgresql)
        for number_of_round in range(rounds + 2):
            for name, peer in peers.items():
                before, before_database = spent(peer.pid), sum(map(processor_seconds, family(postgresql.pid)))
                await rate(peer, asks[name], number)
                of_database = sum(map(processor_seconds, family(postgresql.pid))) - before_database if name == "postgresql" else 0.0
                if number_of_round > 1:  # the first ones warm up
                    costs[name].append((spent(peer.pid) - before + of_database) * 1000 / number)
                    in_database += of_database * 1000 / number / rounds
        files, shared = (statistics.median(costs[name]) for name in ("files", "postgresql"))
        runs = number * (rounds + 2)
        logged, grown = ((after - before) / runs for before, after in zip(logged_before, written(postgresql), strict=True))
        results[title] = {"files": files, "postgresql": shared, "database": in_database, "logged": logged, "grown": grown}
        line = f"  {title:<36}{files:>8.1f}{shared:>8.1f}{in_database:>8.1f}{shared / files:>8.3f}"
        print(f"{line}  {verdict(shared / files, *limits):<8}  {logged:.1f} kB logged, {grown:.1f} kB kept", flush=True)
    return results


def deployed(process: MasterProcess) -> None:
    """Start a master whose production is a version of its control repository."""
    process.site.parent.mkdir(parents=True)
    done = process.puppet("deploy", "production")
    if done.code:
        raise RuntimeError(done.text)
    process.start()
    answers(process.port)


def run(rounds: int = 5) -> dict[str, Any]:
    """Measure, print a table, and return the numbers by the title of the load."""
    programs = postgresql_programs()
    if programs is None:
        print("masters with state in PostgreSQL: its server is not installed")
        return {}
    print("a run with state in files and in PostgreSQL: ms of processor time; those in PostgreSQL's processes; times", flush=True)
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as name, ExitStack() as stack:
        root, peers = Path(name), {}
        postgresql = PostgresqlServer(programs, **DURABLE)
        stack.callback(postgresql.remove)
        postgresql.run_sql("CREATE DATABASE puppet")
        repository = ControlRepository(root / "control")
        if not realistic.why_not():
            realistic.write(repository.folder, CERTNAME)
        repository.commit(SITE)
        for kind, state in (("files", "files"), ("postgresql", postgresql.address("puppet"))):
            settings = {
                "autosign": "true",
                "state": state,
                "basemodulepath": str(root / "none"),
                "deploy_repository": str(repository.folder),
            }
            process = stack.enter_context(master(root / kind, **settings))
            deployed(process)
            peers[kind] = Peer(kind, process.port, process.pid, root / kind / "client")
        return asyncio.run(compare(peers, postgresql, rounds))
