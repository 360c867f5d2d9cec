"""Two stores on one PostgreSQL under load, one of which is killed: what was acknowledged is stored, once, in the order of its time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from store.timestamps import format_timestamp
from tests.bench import store_data
from tests.bench.store_data import SizedCommand
from tests.support.postgresql import PostgresqlServer
from tests.support.raw_master import RawClient
from tests.support.store_process import StoreAt
from tests.support.waiting import until

RESOURCES = 20  # of a catalog
EVENTS = 3  # of a report
SHARED = range(4)  # nodes whose commands come to both stores, as where an agent changes its master
OWN = {"first": range(4, 7), "second": range(7, 10)}
SILENT = {"first": (100, 101), "second": (101, 102)}  # nodes that both stores remove all the time, with reports that they remove
DAY = 86_400_000_000
AWAY = (OSError, EOFError, TimeoutError)


@dataclass
class Acknowledged:
    """
    The times of the commands that were acknowledged, by the command's name and the node; how often each store has cleaned, and how often
    a command was sent to it in vain.
    """

    times: defaultdict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    cleanings: Counter[Path] = field(default_factory=Counter)
    refusals: Counter[Path] = field(default_factory=Counter)
    clock: Iterator[int] = field(default_factory=lambda: itertools.count(time.time_ns() // 1_000_000))

    def next_time(self) -> int:
        """Return a time later than all before, in microseconds, of whole milliseconds."""
        return 1000 * next(self.clock)

    async def until_more(self, runs: int) -> None:
        """Return when so many runs of each shared node have been acknowledged from now on, and each store has cleaned once."""
        names = [("store report", store_data.certname(number)) for number in SHARED]
        runs_before, cleanings_before = {name: len(self.times[name]) for name in names}, self.cleanings.copy()
        await until(lambda: all(len(self.times[name]) >= runs_before[name] + runs for name in names), within=150)
        await until(lambda: len(self.cleanings - cleanings_before) == len(OWN), within=150)


@dataclass
class Sender:
    """Sends commands to a store, each until it is acknowledged."""

    store: StoreAt
    acknowledged: Acknowledged
    client: RawClient | None = None

    async def send(self, command: SizedCommand, at: int) -> None:
        times = {"producer_timestamp": format_timestamp(at)}
        if command.name == "store report":
            times |= {"start_time": format_timestamp(at), "end_time": format_timestamp(at), "configuration_version": str(at)}
        body = json.dumps(command.payload | times).encode()
        target = f"/pdb/cmd/v1?command={command.name.replace(' ', '_')}&version={command.version}&certname={command.certname}"
        while not await self._is_taken(target, body):  # noqa: ASYNC110  # another process takes it
            await asyncio.sleep(0.05)
        self.acknowledged.times[command.name, command.certname].add(at)

    async def _is_taken(self, target: str, body: bytes) -> bool:
        try:
            if self.client is None:
                self.client = RawClient(*await asyncio.open_unix_connection(str(self.store.settings.store_socket)))
            return (await self.client.ask("POST", target, body)).status == 200
        except AWAY:
            self.acknowledged.refusals[self.store.folder] += 1
            await self.close()
            return False

    async def close(self) -> None:
        if self.client is not None:
            await self.client.close()
            self.client = None

    async def run_of(self, number: int, round: int) -> None:
        """Send what the store gets of one run of a node."""
        for command in (
            store_data.facts(number, round),
            store_data.catalog(number, round, RESOURCES),
            store_data.report(number, EVENTS),
        ):
            await self.send(command, self.acknowledged.next_time())

    async def leave(self, number: int) -> None:
        """Send what makes the store remove a node: an old report, which is removed by itself, too, and the node's deactivation."""
        long_ago = self.acknowledged.next_time() - 30 * DAY
        await self.send(store_data.facts(number, 0), long_ago)
        await self.send(store_data.report(number, EVENTS), long_ago)
        payload = {"certname": store_data.certname(number)}
        await self.send(SizedCommand("deactivate node", 3, payload), long_ago + 1000)


async def keep_sending(sender: Sender, numbers: range, end: asyncio.Event) -> None:
    for round in itertools.count():
        for number in numbers:
            if end.is_set():
                await sender.close()
                return
            await sender.run_of(number, round)


async def keep_leaving(sender: Sender, numbers: tuple[int, ...], end: asyncio.Event) -> None:
    while not end.is_set():
        for number in numbers:
            await sender.leave(number)
    await sender.close()


async def keep_cleaning(store: StoreAt, acknowledged: Acknowledged, end: asyncio.Event) -> None:
    """Have the store remove expired data, again and again: everything, and more often what may be in the way of the other one."""
    steps = itertools.cycle(("[]", *('["purge_nodes", "purge_reports"]',) * 9))
    while not end.is_set():
        client = await store.client()
        try:
            while not end.is_set():
                answer = await client.ask(
                    "POST", "/pdb/admin/v1/cmd", f'{{"command": "clean", "version": 1, "payload": {next(steps)}}}'.encode()
                )
                if answer.status == 409:  # what was asked for before the connection ended goes on
                    await asyncio.sleep(0.1)
                    continue
                assert answer.status == 200, answer.text
                acknowledged.cleanings[store.folder] += 1
        except AWAY:
            pass
        finally:
            await client.close()


async def until_empty(store: StoreAt) -> None:
    client = await store.client()
    async with asyncio.timeout(60):
        while json.loads((await client.ask("GET", "/status/v1/services")).body)["puppetdb-status"]["status"]["queue_depth"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await client.close()


def rows(server: PostgresqlServer, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.address("store")) as connection:
        return connection.execute(statement.encode()).fetchall()


def check_stored(server: PostgresqlServer, acknowledged: Acknowledged) -> None:
    """Check that the newest facts and catalogs are there, as a whole, and each report once."""
    certnames = [store_data.certname(number) for number in range(10)]
    stored = rows(
        server,
        "SELECT certname, factsets.producer_timestamp, catalogs.producer_timestamp, (SELECT count(*) FROM facts WHERE node_id = nodes.id), "
        "(SELECT count(*) FROM resources WHERE node_id = nodes.id), "
        "(SELECT count(*) FROM edges JOIN resources ON resources.id = source_id WHERE node_id = nodes.id) "
        "FROM nodes JOIN factsets ON factsets.node_id = nodes.id JOIN catalogs ON catalogs.node_id = nodes.id "
        "WHERE certname < 'n00100' ORDER BY certname",
    )
    size = len(store_data.facts(0, 0).payload["values"])
    newest = [[max(acknowledged.times[name, certname]) for name in ("replace facts", "replace catalog")] for certname in certnames]
    assert stored == [(certname, *times, size, RESOURCES, RESOURCES - 1) for certname, times in zip(certnames, newest, strict=True)]
    reports = rows(
        server,
        "SELECT certname, reports.producer_timestamp, count(events.id) FROM nodes JOIN reports ON reports.node_id = nodes.id "
        "LEFT JOIN events ON report_id = reports.id WHERE certname < 'n00100' GROUP BY reports.id, certname ORDER BY certname, 2",
    )
    assert reports == [(name, at, EVENTS) for name in certnames for at in sorted(acknowledged.times["store report", name])]


@pytest.mark.slow
async def test_two_stores_on_one_database_lose_and_double_nothing_when_one_is_killed(
    tmp_path: Path, postgresql: PostgresqlServer, postgresql_url: str
) -> None:
    flags = {"store": postgresql_url, "store_report_ttl": "2d", "store_node_purge_ttl": "2d"}
    stores = {name: StoreAt(tmp_path / name, flags) for name in OWN}
    acknowledged, end, earlier = Acknowledged(), asyncio.Event(), len(postgresql.log)
    for store in stores.values():
        store.folder.mkdir()
    async with contextlib.AsyncExitStack() as running, asyncio.timeout(150):
        await running.enter_async_context(stores["first"].child())
        killed = await running.enter_async_context(stores["second"].child())
        async with asyncio.TaskGroup() as group:
            for name, store in stores.items():
                for numbers in (SHARED, SHARED[::-1], OWN[name]):
                    group.create_task(keep_sending(Sender(store, acknowledged), numbers, end))
                group.create_task(keep_leaving(Sender(store, acknowledged), SILENT[name], end))
                group.create_task(keep_cleaning(store, acknowledged, end))
            for _ in range(2):
                await acknowledged.until_more(runs=3)
                killed.kill()
                await killed.wait()
                refused = acknowledged.refusals[stores["second"].folder]
                await until(lambda refused=refused: acknowledged.refusals[stores["second"].folder] >= refused + 3)
                killed = await running.enter_async_context(stores["second"].child())
            await acknowledged.until_more(runs=3)
            end.set()
        for store in stores.values():
            await until_empty(store)
            assert not (store.settings.store_dir / "queue" / "discarded").exists()
    check_stored(postgresql, acknowledged)
    assert "deadlock detected" not in postgresql.log[earlier:]
