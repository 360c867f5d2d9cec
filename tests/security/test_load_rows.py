"""The rows of a master under load: its event loop is never held up, and nothing grows."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from master.reports.processors import Store
from shared.process.memory import freeze_loaded_objects
from tests.support.bad_requests import bad_requests
from tests.support.raw_master import RawAnswer, RawClient
from tests.support.waiting import turns
from tests.support.wired_site import ENV, V3, WiredSite

pytestmark = [pytest.mark.slow, pytest.mark.alone]

BEAT = 0.005  # seconds between two looks at the clock
BOUND = 0.1  # seconds that a beat may be late, without the time in which threads of this process waited for a processor
ROUNDS = 3  # at most, until one keeps the bound: the machine has other things to do, which a single late beat does not tell apart


def waited() -> float:
    """Return the seconds in which threads of this process were ready and had no processor, as the kernel counts them."""
    nanoseconds = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            nanoseconds += int((task / "schedstat").read_text().split()[1])
    return nanoseconds / 1e9


class Lag:
    """How late the loop's beats were at worst: since it computed, was blocked, or waited for a thread that holds the interpreter."""

    seconds = 0.0

    def __repr__(self) -> str:
        return f"{self.seconds * 1000:.0f} ms"


@asynccontextmanager
async def measured() -> AsyncIterator[Lag]:
    """The lag of the running loop within the block."""
    lag = Lag()

    async def beats() -> None:
        while True:
            before, waited_before = time.monotonic(), waited()
            await asyncio.sleep(BEAT)
            late = time.monotonic() - before - BEAT
            if late > lag.seconds:
                lag.seconds = max(lag.seconds, late - max(0.0, waited() - waited_before))

    task = asyncio.create_task(beats())
    try:
        yield lag
    finally:
        task.cancel()


@contextmanager
def slow_disk(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    """Every write of a report takes so long."""
    write = Store._write

    def slow(store: Store, host: str, report: Any) -> None:
        time.sleep(seconds)
        write(store, host, report)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_write", slow)
        yield


def large_report(resources: int) -> bytes:
    """A report of 3.x in YAML."""
    status = "".join(
        f"  File[/f{n}]:\n    resource: File[/f{n}]\n    resource_type: File\n"
        f"    title: /f{n}\n    tags: [file, class]\n    changed: false\n    events: []\n"
        for n in range(resources)
    )
    head = "--- !ruby/object:Puppet::Transaction::Report\nhost: agent1\ntime: 2026-11-21 00:00:00.000000 Z\nkind: apply\nreport_format: 4\n"
    return f"{head}status: unchanged\nlogs: []\nmetrics: {{}}\nresource_statuses:\n{status}".encode()


def large_facts(megabytes: int) -> dict[str, object]:
    return {f"fact{n}": {"words": ["some", "words"] * 10, "number": n, "text": "x" * 800} for n in range(megabytes * 1000)}


async def ended_well(asked: Any, *statuses: int) -> None:
    answer: RawAnswer = await asked
    assert answer.status in (statuses or (200,)), answer


@pytest.fixture
def settled() -> Iterator[None]:
    """The garbage collector as a started master has it."""
    before = gc.get_threshold()
    freeze_loaded_objects()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.fixture
async def busy(wired: WiredSite, settled: None) -> WiredSite:
    """The site with a manifest that computes for agent1, and a module of many files."""
    site = wired.root / "conf/code/environments/production"
    manifest = "node 'agent1' { Integer[1, 2000000].each |$n| { $x = $n * 2 } }\nnode default { notify { 'quick': } }\n"
    (site / "manifests/site.pp").write_text(manifest)
    for number in range(500):
        path = site / f"modules/open/files/many/{number % 20}/f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 2000)
    return wired


Work = Callable[[WiredSite, RawClient], Any]
WORK: dict[str, Work] = {
    "a long compile": lambda site, client: site.catalog(client, "agent1", {}),
    "a large report in YAML, on a slow disk": lambda site, client: client.ask(
        "PUT", "/production/report/agent1", large_report(5000), Content_Type="text/yaml"
    ),
    "large facts in JSON": lambda site, client: client.ask(
        "PUT",
        f"{V3}/facts/agent1{ENV}",
        json.dumps({"name": "agent1", "values": large_facts(4)}).encode(),
        Content_Type="application/json",
    ),
    "a tree of files with their sums": lambda site, client: client.ask(
        "GET", f"{V3}/file_metadatas/modules/open/many{ENV}&recurse=true&links=manage&checksum_type=sha256"
    ),
    "a hundred small requests": lambda site, client: hundred(client),
}


async def hundred(client: RawClient) -> RawAnswer:
    for _ in range(99):
        await client.ask("GET", f"{V3}/node/agent1{ENV}")
    return await client.ask("GET", f"{V3}/node/agent1{ENV}")


@pytest.mark.parametrize("what", WORK)
async def test_R_19_the_loop_goes_on_whatever_is_worked_on(busy: WiredSite, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = await busy.client("agent1"), await busy.client("agent2")
    client.timeout = 60
    await busy.catalog(other, "agent2", {})  # a process that compiles is there
    seen: list[Lag] = []
    with slow_disk(monkeypatch, 0.3):
        for _ in range(ROUNDS):
            async with measured() as lag:
                working = asyncio.create_task(ended_well(WORK[what](busy, client)))
                while not working.done():
                    assert (await other.ask("GET", "/status/v1/simple")).text == "running"
                    await asyncio.sleep(0.01)
                await working
            seen.append(lag)
            if lag.seconds < BOUND:
                break
    print(what, seen)
    assert min(lag.seconds for lag in seen) < BOUND, seen


# --- many requests, some of them bad

SOAK = int(os.environ.get("BUNRAKU_SOAK_REQUESTS", "1200"))  # after the warm-up; a night's run asks for 100000
BAD = bad_requests("agent1", "agent2")


def standing() -> dict[str, int]:
    """What may not grow: resident memory in MiB, descriptors, threads and tasks of this process."""
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 2**20
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return {"MiB": resident, "descriptors": descriptors, "threads": threading.active_count(), "tasks": len(asyncio.all_tasks())}


async def mixed(site: WiredSite, count: int) -> None:
    """`count` requests on new and on kept connections, each tenth of them bad."""
    client = await site.client("agent1")
    catalogs = json.dumps({"name": "agent1", "values": {"colour": "blue"}}).encode()
    good: list[Callable[[], Any]] = [
        lambda: client.ask("GET", f"{V3}/node/agent1{ENV}"),
        lambda: client.ask("PUT", f"{V3}/facts/agent1{ENV}", catalogs, Content_Type="application/json"),
        lambda: client.ask("GET", f"{V3}/file_metadatas/modules/open{ENV}&recurse=true"),
        lambda: client.ask("GET", f"{V3}/file_content/modules/open/a..b{ENV}"),
        lambda: client.ask("GET", "/puppet-ca/v1/certificate_revocation_list/ca"),
        lambda: client.ask("GET", "/status/v1/services"),
        lambda: site.catalog(client, "agent1", {"colour": "blue"}),
    ]
    for number in range(count):
        if number % 10 == 9:
            method, target, body, headers = BAD[number // 10 % len(BAD)]
            assert (await client.ask(method, target, body, **headers)).status in (400, 403, 404)
        else:
            assert (await good[number % len(good)]()).status == 200
        if number % 25 == 24:
            await client.close()
            site.open.remove(client)
            client = await site.client("agent1")
    await client.close()
    site.open.remove(client)


async def test_R_21_nothing_grows_with_the_number_of_requests(wired: WiredSite) -> None:
    client = await wired.client("agent1")
    await client.until_running()
    await client.close()
    wired.open.remove(client)
    await mixed(wired, 400)
    await turns(50)  # in which closed connections go
    before = standing()
    await mixed(wired, SOAK)
    for _ in range(600):
        await asyncio.sleep(0.1)
        after = standing()
        if all(after[what] <= before[what] for what in ("descriptors", "threads", "tasks")):
            break
    print(before, after)
    assert after["descriptors"] <= before["descriptors"] + 3
    assert after["threads"] <= before["threads"] + 4  # the pool of threads grows to its size and no further
    assert after["tasks"] <= before["tasks"] + 1
    assert after["MiB"] <= before["MiB"] + 24
    assert list(wired.root.rglob("*.tmp")) == []
