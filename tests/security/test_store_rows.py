"""The rows of the fault table about what a master stores of its nodes: full, slow and torn."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from master.reports.processors import Logged, Processed, Store
from master.reports.writers import Writers
from master.termini.facts import StoredFacts
from shared.errors import BadRequest, OutOfSpace, Unavailable
from shared.indirector import Binding
from shared.indirector.core import Request, Terminus
from shared.indirector.termini import Json, Yaml
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.models.report import REPORT, Report
from shared.testing import Shelf
from tests.support.waiting import turns, until


def report(host: str = "agent1") -> Report:
    return Report(name=host, time="2026-11-20T21:48:31Z", status="unchanged")


class Disk:
    """A disk on which every report waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let = threading.Event()
        self.busy = 0
        write = Store._write

        def slow(store: Store, host: str, what: Report) -> None:
            self.busy += 1
            assert self.let.wait(20)
            write(store, host, what)

        monkeypatch.setattr(Store, "_write", slow)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk(monkeypatch)
    yield made
    made.let.set()


async def test_R_25_a_slow_store_takes_no_thread_that_others_wait_for(disk: Disk, tmp_path: Path) -> None:
    reports = Binding(REPORT, Processed({"store": Store(tmp_path)}))
    sent = [asyncio.create_task(reports.save(report(f"n{number}"))) for number in range(50)]
    await until(lambda: disk.busy == 2)
    catalogs = Json(CATALOG, tmp_path / "catalogs")  # as all termini do it: in the threads that all share
    async with asyncio.timeout(60):
        for number in range(20):
            await Binding(CATALOG, catalogs).save(Catalog(name=f"n{number}"))
    assert disk.busy == 2
    disk.let.set()
    assert await asyncio.gather(*sent) == [["store"]] * 50
    assert len(list(tmp_path.glob("n*/*.yaml"))) == 50


async def test_R_25_beyond_the_queue_reports_are_turned_away_at_once(disk: Disk, tmp_path: Path) -> None:
    store = Store(tmp_path, writers=Writers(threads=1, queue=3, delay=lambda: 0.5))
    reports = Binding(REPORT, Processed({"store": store}, timeout=20))
    sent = [asyncio.create_task(reports.save(report(f"n{number}"))) for number in range(3)]
    await until(lambda: disk.busy == 1)
    await turns(5)
    with pytest.raises(Unavailable) as refused:
        await reports.save(report("late"))
    assert refused.value.retry_after == 165
    disk.let.set()
    await asyncio.gather(*sent)
    assert await reports.save(report("late")) == ["store"]


async def test_R_41_a_writing_that_fails_after_its_caller_has_left_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    writers, begun, may_go_on = Writers(threads=1, queue=2), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def write() -> None:
        loop.call_soon_threadsafe(begun.set)
        assert may_go_on.wait(60)
        raise OSError("the disk is gone")

    caller = asyncio.create_task(writers.run(write))
    await asyncio.wait_for(begun.wait(), 60)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    may_go_on.set()
    await writers.run(lambda: None)
    assert "A report was not written: OSError('the disk is gone')" in caplog.text


async def test_R_25_a_writing_that_nobody_waits_for_any_more_still_counts(disk: Disk, tmp_path: Path) -> None:
    store = Store(tmp_path, writers=Writers(threads=1, queue=1))
    reports = Binding(REPORT, Processed({"store": store}, timeout=0.05))
    assert await reports.save(report("slow")) == ["store"]  # it took too long, which is logged; the agent is answered
    with pytest.raises(Unavailable):
        await reports.save(report("next"))
    disk.let.set()
    await until(lambda: list(tmp_path.glob("slow/*.yaml")))


async def test_R_25_a_full_store_is_507_unless_another_processor_has_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", "report.store=enospc")
    with pytest.raises(OutOfSpace) as full:
        await Binding(REPORT, Processed({"store": Store(tmp_path)})).save(report())
    assert full.value.status == 507
    assert await Binding(REPORT, Processed({"store": Store(tmp_path), "log": Logged()})).save(report()) == ["store", "log"]
    assert "Report processor failed: store of agent1: OutOfSpace" in caplog.text
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    monkeypatch.delenv("BUNRAKU_FAILPOINTS")
    assert await Binding(REPORT, Processed({"store": Store(tmp_path)})).save(report()) == ["store"]


WHOLE = {
    "facts": (FACTS, Facts(name="agent1", values={"os": "x", "colour": "blue"})),
    "node": (NODE, Node(name="agent1", classes={"a": None}, parameters={"colour": "blue"})),
    "catalog": (CATALOG, Catalog(name="agent1", classes=["a"])),
}
TORN: dict[str, Any] = {
    "empty": lambda body: b"",
    "cut in the middle": lambda body: body[: len(body) // 2],
    "zeros, as after a power cut": lambda body: bytes(len(body)),
    "random octets": lambda body: bytes(range(128, 256)) * 4,
    "of another kind": lambda body: b"[1, 2]\n",
    "a plain word": lambda body: b"true\n",
    "with another tag": lambda body: b"--- !ruby/object:ERB\nsrc: id\n",
    "nested without end": lambda body: b"[" * 100_000,
    "a bomb of aliases": lambda body: (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9))
    ),
}


@pytest.mark.parametrize("how", TORN)
@pytest.mark.parametrize("form", [Yaml, Json])
@pytest.mark.parametrize("what", WHOLE)
async def test_R_26_a_torn_file_is_passed_over_with_a_warning_and_written_anew(
    tmp_path: Path, what: str, form: Any, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    indirection, instance = WHOLE[what]
    stored: Any = Binding(indirection, form(indirection, tmp_path))
    await stored.save(instance)
    await stored.save(instance.model_copy(update={"name": "agent2"}))
    path = next(tmp_path.glob("agent1.*"))
    path.write_bytes(TORN[how](path.read_bytes()))
    assert await stored.find("agent1") is None
    assert f"Ignoring {path}, which does not hold a {what}" in caplog.text
    assert [each.name for each in await stored.search("*")] == ["agent2"]
    await stored.save(instance)
    again = await stored.find("agent1")
    assert again is not None and again.name == "agent1"
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


async def test_R_26_a_torn_cache_is_asked_past(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    terminus: Terminus[Any] = Shelf(Node(name="agent1", parameters={"colour": "fresh"}))
    nodes = Binding(NODE, terminus, cache=Yaml(NODE, tmp_path))
    assert (await nodes.find("agent1")).parameters["colour"] == "fresh"  # type: ignore[union-attr]
    (tmp_path / "agent1.yaml").write_bytes(b"--- !ruby/object:Puppet::Node\nparame")
    assert (await nodes.find("agent1")).parameters["colour"] == "fresh"  # type: ignore[union-attr]


async def test_R_26_a_torn_file_of_facts_costs_that_node_its_facts_only(tmp_path: Path) -> None:
    stored = StoredFacts(Yaml(FACTS, tmp_path))
    for name in ("agent1", "agent2"):
        await stored.save(Request(key=name, body=Facts(name=name, values={"colour": "blue"})))
    (tmp_path / "agent1.yaml").write_bytes(b"")
    found = await stored.search(Request(key="*", options={"facts.colour": "blue"}))
    assert json.dumps([str(each.name if hasattr(each, "name") else each) for each in found or []]) == '["agent2"]'
    with pytest.raises(BadRequest):
        await stored.find(Request(key="../agent1"))
