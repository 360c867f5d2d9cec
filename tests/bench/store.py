"""
Measures stores: ours on SQLite and on PostgreSQL, and Debian's PuppetDB on PostgreSQL: start, memory, what commands and queries cost.

All get the same commands of the same invented nodes over plain HTTP, on sixteen connections whose clients wait until their command is
stored; then the queries of Puppetboard's overview and of collectors, on one connection. PostgreSQL is configured as Debian does it; the
JVM has a heap of 512 MB, and is warmed up with commands of each kind until its rate stands still. The rate that counts is commands a second
of processor time of all processes of a side, the database included: it is little moved by whatever else the machine does. A start
is one with tables that are there, from the command to the first answer to a query. Memory has shared pages shared out (PSS).
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench import store_data
from tests.bench.costs import memory_of_all, processor_seconds_of_all, verdict
from tests.bench.store_data import SizedCommand
from tests.support.ports import reserved_port
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.processes import clean_environment
from tests.support.raw_master import RawClient
from tests.support.real_puppetdb import RealPuppetDb, configure, missing_programs, running_puppetdb

ROOT = Path(__file__).parent.parent.parent
NODES = 1000
CONNECTIONS = 16
TIMEOUT = 180.0  # seconds for an answer
STARTED = 60.0  # seconds for our store
SETTLED = 3.0  # seconds until memory is looked at
COMMANDS = (3.0, 6.0)  # times PuppetDB's commands a second of processor time, must and aim
QUERIES = (1.5, 1.0)  # of PuppetDB's time
MEMORY = (0.1, 0.1)  # of PuppetDB's, on SQLite
UNCHANGED = 0.001  # seconds of processor time that are the aim for an unchanged catalog
STILL = 0.05  # a rate that has grown by less stands still
LAST_BATCHES, MOST_BATCHES = 3, 15
JAVA = ("-Xmx512m",)
POSTGRESQL = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "128MB",
    "autovacuum": "on",
    "max_connections": "100",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """
    How much is measured.

    Attributes:
        large_nodes: The nodes with a catalog of 1,000 resources, beside `nodes` with one of 100.
        commands: How many of each kind are measured at most.
        warming: How many of each kind are stored in a batch that warms up, at most.
        queries: How often each query is asked.
        settled: The seconds after a start until memory is looked at.
    """

    nodes: int = NODES
    large_nodes: int = 25
    commands: int = 200
    warming: int = 40
    queries: int = 100
    settled: float = SETTLED


DEFAULT = Scope()


@dataclass(slots=True)
class Side:
    """A store that runs; `pids` are its own process, and its database's where it has one."""

    name: str
    port: int
    pids: tuple[int, ...]
    costs: dict[str, float] = field(default_factory=dict)
    round: int = 0  # of the commands that were stored last

    def spent(self) -> float:
        """Return the seconds of processor time of all its processes so far."""
        return sum(map(processor_seconds_of_all, self.pids))

    def memory(self) -> float:
        """Return the MiB of all its processes."""
        return sum(map(memory_of_all, self.pids))

    async def connect(self) -> RawClient:
        return RawClient(*await asyncio.open_connection("127.0.0.1", self.port, limit=2**24), timeout=TIMEOUT)


# --- commands

Maker = Callable[[int, int], SizedCommand]
"""Makes the command of a node, by its number, for a round."""


@dataclass(frozen=True, slots=True)
class Load:
    """Commands of a kind; `is_changing`: what they say differs from round to round; `is_large`: from nodes with large catalogs."""

    title: str
    make: Maker
    is_changing: bool = True
    is_large: bool = False

    def commands(self, scope: Scope, round: int, number: int) -> Iterator[SizedCommand]:
        """Yield `number` commands, of one node after the other."""
        first, nodes = (scope.nodes, scope.large_nodes) if self.is_large else (0, scope.nodes)
        return (self.make(first + i % nodes, round) for i in range(number))


def _small(number: int, round: int) -> SizedCommand:
    return store_data.catalog(number, round, 100)


def _large(number: int, round: int) -> SizedCommand:
    return store_data.catalog(number, round, 1000)


FIRST = (
    Load("facts, first", store_data.facts),
    Load("catalog of 100, first", _small),
    Load("catalog of 1000, first", _large, is_large=True),
)
LOADS = (
    Load("facts, three changed", store_data.facts),
    Load("facts, unchanged", store_data.facts, is_changing=False),
    Load("catalog of 100, five changed", _small),
    Load("catalog of 100, unchanged", _small, is_changing=False),
    Load("catalog of 1000, five changed", _large, is_large=True),
    Load("catalog of 1000, unchanged", _large, is_changing=False, is_large=True),
    Load("report without events", lambda number, _: store_data.report(number, 0)),
    Load("report of 20 events", lambda number, _: store_data.report(number, store_data.EVENTS)),
)


async def submit(client: RawClient, command: SizedCommand) -> None:
    """Return when a command is stored."""
    parameters = {
        "command": command.name.replace(" ", "_"),
        "version": command.version,
        "certname": command.certname,
        "producer-timestamp": command.payload["producer_timestamp"],
        "secondsToWaitForCompletion": int(TIMEOUT),
    }
    body = gzip.compress(orjson.dumps(command.payload), 1)
    headers = {"Host": "127.0.0.1", "Content_Type": "application/json", "Content_Encoding": "gzip"}
    answer = await client.ask("POST", f"/pdb/cmd/v1?{urlencode(parameters)}", body, **headers)
    if answer.status != 200 or not json.loads(answer.body).get("processed"):
        raise RuntimeError(f"{command.name} was answered {answer.status}: {answer.body[:300]!r}")


async def store(side: Side, commands: Iterator[SizedCommand], number: int) -> tuple[float, float]:
    """Have so many commands stored; return the seconds that it took, and those of processor time, each for one command."""
    clients = [await side.connect() for _ in range(CONNECTIONS)]

    async def work(client: RawClient) -> None:
        for command in commands:
            await submit(client, command)

    before, began = side.spent(), time.monotonic()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(work(client))
    seconds, spent = time.monotonic() - began, side.spent() - before
    for client in clients:
        await client.close()
    return seconds / number, spent / number


async def measure_load(side: Side, load: Load, scope: Scope, number: int) -> tuple[float, float]:
    """Store commands of a kind, at most one a node, `number` of them or of those with large catalogs all; see `store`."""
    number = min(number, scope.large_nodes if load.is_large else scope.nodes)
    side.round += load.is_changing
    return await store(side, load.commands(scope, side.round, number), number)


async def populate(side: Side, scope: Scope) -> None:
    """Store facts, a catalog and three reports of each node, the first commands of a site."""
    for load in FIRST:
        number = scope.large_nodes if load.is_large else scope.nodes
        side.costs[load.title] = (await store(side, load.commands(scope, 0, number), number))[1]
    count = 3 * scope.nodes
    await store(side, (store_data.report(i % scope.nodes, 3 if i % 5 == 0 else 0) for i in range(count)), count)


async def warm(side: Side, scope: Scope) -> None:
    """Store commands of all kinds until the rate stands still."""
    rates: list[float] = []
    while len(rates) < MOST_BATCHES and not stands_still(rates):
        spent = 0.0
        for load in LOADS:
            spent += (await measure_load(side, load, scope, scope.warming))[1]
        rates.append(len(LOADS) / spent)
    print(f"  {side.name}: warmed up in {len(rates)} batches, {rates[0]:.1f} to {rates[-1]:.1f} commands a processor second", flush=True)


def stands_still(rates: Sequence[float]) -> bool:
    """Return whether the last three batches brought nothing over the best of those before them."""
    return len(rates) > LAST_BATCHES and max(rates[-LAST_BATCHES:]) < (1 + STILL) * max(rates[:-LAST_BATCHES])


# --- queries


@dataclass(frozen=True, slots=True)
class Query:
    title: str
    path: str
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        text = f"?{urlencode(self.parameters, quote_via=quote)}" if self.parameters else ""
        return f"/pdb/query/v4/{self.path}{text}"


def _ast(path: str, query: object, title: str, **parameters: str) -> Query:
    return Query(title, path, {"query": json.dumps(query), **parameters})


_PRODUCTION = ["=", "environment", "production"]
_NODES = ["and", ["=", "catalog_environment", "production"]]
_NEWEST = {"order_by": '[{"field": "end_time", "order": "desc"}]', "limit": "10", "offset": "0", "include_total": "true"}
_INVENTORY = ["or", *(["=", "name", name] for name in ("trusted", "networking", "kernelrelease", "puppetversion", "os"))]


def _collected(kind: str, *more: object) -> list[object]:
    return ["and", ["=", "type", kind], ["=", "exported", True], ["not", ["=", "certname", store_data.certname(0)]], *more]


def queries() -> tuple[Query, ...]:
    """Return the queries of Puppetboard's overview and of the pages beside it, and those of two collectors."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    of_today = ["and", [">=", "producer_timestamp", f"{today}T00:00:00.000000Z"], _PRODUCTION]
    return (
        Query("overview: environments", "environments"),
        _ast("nodes", ["extract", [["function", "count"]], _NODES], "overview: number of nodes"),
        _ast("resources", ["extract", [["function", "count"]], _PRODUCTION], "overview: number of resources"),
        _ast("nodes", _NODES, "overview: nodes"),
        _ast("event-counts", ["=", "latest_report?", True], "overview: event counts", summarize_by="certname"),
        _ast("reports", ["extract", [["function", "count"], "status"], of_today, ["group_by", "status"]], "overview: reports of a day"),
        _ast("reports", ["and", _PRODUCTION], "reports: the ten newest", **_NEWEST),
        _ast("facts", ["and", _INVENTORY, _PRODUCTION], "inventory: five facts of all nodes"),
        _ast("facts/kernel", ["and", _PRODUCTION], "fact: kernel of all nodes"),
        Query("node: one by its name", f"nodes/{store_data.certname(1)}"),
        Query("node: its facts", f"nodes/{store_data.certname(1)}/facts"),
        _ast("resources", _collected("Sshkey"), "collector: one of each node"),
        _ast("resources", _collected("Nagios_service", ["=", "tag", "site3"]), "collector: a tag, of each tenth node"),
    )


async def measure_query(side: Side, query: Query, number: int) -> dict[str, float]:
    """Ask `number` times; return the median and the 99th percentile, and the processor time, in seconds."""
    client = await side.connect()
    times = []
    for warming in (max(1, number // 5), number):
        before, times = side.spent(), []
        for _ in range(warming):
            began = time.perf_counter()
            answer = await client.ask("GET", query.target, Host="127.0.0.1", Accept="application/json")
            times.append(time.perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(f"{query.target} was answered {answer.status}: {answer.body[:300]!r}")
    spent = (side.spent() - before) / number
    await client.close()
    times.sort()
    return {"p50": statistics.median(times), "p99": times[int(0.99 * (len(times) - 1))], "processor": spent, "bytes": len(answer.body)}


async def measured(side: Side, scope: Scope, database: PostgresqlServer | None) -> dict[str, Any]:
    """Fill a store, and return what it costs: numbers of a start and memory, and by titles those of commands and queries."""
    await populate(side, scope)
    await warm(side, scope)
    commands: dict[str, dict[str, float]] = {}
    for load in LOADS:
        if not load.is_changing:  # what is sent next is there
            await measure_load(side, load, scope, scope.commands)
        seconds, spent = await measure_load(side, load, scope, scope.commands)
        commands[load.title] = {"seconds": seconds, "processor": spent}
    if database is not None:
        database.run_sql("VACUUM ANALYZE", NAME)  # as its own process does within a minute or two
    asked = {query.title: await measure_query(side, query, scope.queries) for query in queries()}
    side.costs["loaded_pss"] = side.memory()
    return {**side.costs, "commands": commands, "queries": asked}


# --- sides

NAME = "bench"  # of the database


def until_answered(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Return when the store on this port has answered a query."""
    deadline = time.monotonic() + STARTED
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        try:
            connection.request("GET", "/pdb/query/v4/environments")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise RuntimeError("the store did not start")
        time.sleep(0.01)


@contextmanager
def our_process(folder: Path, port: int, address: str) -> Iterator[int]:
    """Run our store; yield its process number once it has answered a query."""
    places = {name: folder / name for name in ("confdir", "vardir", "rundir", "logdir")}
    settings = {"store": address, "store_plain_port": port, "store_port": 0, "store_gc_interval": 0, "certname": "localhost", **places}
    command = [sys.executable, "-m", "bunraku", "db", "--no-daemonize", "--user", "root"]
    command += [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    folder.mkdir(exist_ok=True)
    with (folder / "output").open("ab") as output:
        environ = clean_environment(PYTHONPATH=str(ROOT))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", env=environ)
    try:
        until_answered(port, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait(STARTED)


@contextmanager
def postgresql(**settings: str) -> Iterator[PostgresqlServer]:
    """Run a PostgreSQL as Debian configures it, with an empty database."""
    programs = postgresql_programs()
    assert programs is not None
    server = PostgresqlServer(programs, **{**POSTGRESQL, **settings})
    try:
        server.run_sql(f"CREATE DATABASE {NAME}")
        yield server
    finally:
        server.remove()


@contextmanager
def started(name: str, port: int, start: Callable[[], Any], database: PostgresqlServer | None, settled: float) -> Iterator[Side]:
    """Start a store, which makes its tables, and again, which is measured; `start` runs it as a context that yields its process number."""
    with start():
        until_answered(port)
    began = time.perf_counter()
    with start() as pid:
        until_answered(port)
        seconds = time.perf_counter() - began
        time.sleep(settled)
        side = Side(name, port, (pid, *([database.pid] if database else [])), {"start": seconds})
        side.costs["idle_pss"] = side.memory()
        yield side


@contextmanager
def ours(folder: Path, database: PostgresqlServer | None, settled: float) -> Iterator[Side]:
    name, address = ("ours on PostgreSQL", database.address(NAME)) if database else ("ours on SQLite", "sqlite")
    with reserved_port() as port, started(name, port, lambda: our_process(folder, port, address), database, settled) as side:
        yield side


@contextmanager
def theirs(folder: Path, settled: float) -> Iterator[tuple[Side, PostgresqlServer]]:
    """Run Debian's PuppetDB."""
    with (
        reserved_port() as database_port,
        reserved_port() as port,
        postgresql(listen_addresses="127.0.0.1", port=str(database_port)) as database,
    ):
        database.run_sql("CREATE EXTENSION pg_trgm", NAME)
        puppetdb = RealPuppetDb(port, folder)
        configure(puppetdb, database_port, database=NAME)
        with started("PuppetDB", puppetdb.port, lambda: running_puppetdb(puppetdb, JAVA), database, settled) as side:
            yield side, database


def run(scope: Scope = DEFAULT, only: Sequence[str] = ("ours", "postgresql", "puppetdb")) -> dict[str, Any]:
    """
    Measure the stores of `only`, one after the other, and print a table.

    Returns the numbers of `ours`, `postgresql` (ours, on it) and `puppetdb`; {} for one that is not installed.
    """
    print(f"stores of {scope.nodes} nodes, {CONNECTIONS} clients (PuppetDB: warmed up until its rate stands still)", flush=True)
    found: dict[str, Any] = {key: {} for key in ("ours", "postgresql", "puppetdb")}
    with tempfile.TemporaryDirectory(prefix="bunraku-bench-") as name:
        folder = Path(name)
        if "ours" in only:
            with ours(folder / "sqlite", None, scope.settled) as side:
                found["ours"] = asyncio.run(measured(side, scope, None))
            size = sum(path.stat().st_size for path in (folder / "sqlite").rglob("store.sqlite*"))
            found["ours"]["bytes_per_node"] = size / scope.nodes
        if "postgresql" in only:
            if postgresql_programs() is None:
                print("  PostgreSQL's server is not installed (Debian: postgresql)")
            else:
                with postgresql() as database, ours(folder / "postgresql", database, scope.settled) as side:
                    found["postgresql"] = asyncio.run(measured(side, scope, database))
        if "puppetdb" in only:
            if missing := missing_programs():
                print(f"  {missing}; there is nothing to compare with")
            else:
                with theirs(folder / "puppetdb", scope.settled) as (side, database):
                    found["puppetdb"] = asyncio.run(measured(side, scope, database))
    table(found)
    return found


# --- the table


def table(found: dict[str, Any]) -> None:
    """Print the numbers of ours, on both databases, and of PuppetDB, with how many times better ours on SQLite is, and on PostgreSQL."""
    print(f"  {'':<44}{'SQLite':>10}{'PostgreSQL':>12}{'PuppetDB':>10}{'times':>16}")
    row("start, s", [side.get("start") for side in found.values()])
    for key, title in (("idle_pss", "memory after the start, MiB"), ("loaded_pss", "memory at the end, MiB")):
        row(title, [side.get(key) for side in found.values()], judge=lambda times: verdict(1 / times, *MEMORY))
    print("  processor time of a command, ms")
    for load in LOADS:
        values = [_milliseconds(side, "commands", load.title, "processor") for side in found.values()]
        row(load.title, values, judge=lambda times: verdict(1 / times, *(1 / limit for limit in COMMANDS)))
    print("  queries: the median, ms; then the 99th percentile, and processor time")
    for query in queries():
        for what in ("p50", "p99", "processor"):
            values = [_milliseconds(side, "queries", query.title, what) for side in found.values()]
            row(query.title if what == "p50" else f"    {what}", values, judge=lambda times: verdict(1 / times, *QUERIES))


def _milliseconds(side: dict[str, Any], kind: str, title: str, what: str) -> float | None:
    number = side.get(kind, {}).get(title, {}).get(what)
    return None if number is None else number * 1000


def row(title: str, values: Sequence[float | None], judge: Callable[[float], str] = lambda _: "") -> None:
    *mine, reference = values
    text = "".join(f"{value:>{width}.2f}" if value is not None else " " * width for value, width in zip(values, (10, 12, 10), strict=True))
    times = [reference / value if reference and value else None for value in mine]
    text += "".join(f"{each:>8.1f}" if each else " " * 8 for each in times)
    print(f"  {title:<44}{text}   {judge(times[0]) if times[0] else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"nodes (default {NODES})")
    parser.add_argument("--large-nodes", type=int, default=DEFAULT.large_nodes, help="nodes with catalogs of 1,000 resources")
    parser.add_argument("--commands", type=int, default=DEFAULT.commands, help="commands of each kind that are measured")
    parser.add_argument("--queries", type=int, default=DEFAULT.queries, help="how often each query is asked")
    parser.add_argument("--only", nargs="+", default=["ours", "postgresql", "puppetdb"], choices=("ours", "postgresql", "puppetdb"))
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the numbers to a file, as JSON")
    options = parser.parse_args()
    found = run(Scope(options.nodes, options.large_nodes, options.commands, queries=options.queries), options.only)
    if options.output:
        options.output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
