"""Records of what catalogs depend on, from compiling processes to disk."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from language.evaluation.dependencies import NodeDependencies
from master.dependencies.recorder import MAX_WAITING, CatalogRecorder, RecordSender
from master.dependencies.records import CatalogRecord, CatalogRecords


def record(answers: str = "a") -> CatalogRecord:
    return CatalogRecord(NodeDependencies(), "values", "configuration", (("read", "\0/x"),), answers, ("m/page",))


@asynccontextmanager
async def recording(recorder: CatalogRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.keep_written())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await recorder.close()


async def test_what_processes_send_is_on_disk_at_the_latest_when_the_master_ends(tmp_path: Path) -> None:
    recorder = CatalogRecorder(CatalogRecords(tmp_path / "records"), 2**20)
    async with recording(recorder):
        sender = RecordSender(recorder.outlet.send)
        for number in range(5):
            sender.add(f"n{number}", record())
        sender.send()
    assert [recorder.records.load(f"n{number}") is not None for number in range(5)] == [True] * 5
    loaded = recorder.records.load("n0")
    assert loaded is not None and (loaded.identity, loaded.inputs, loaded.sources) == (record().identity, record().inputs, record().sources)


async def test_records_on_disk_are_bounded(tmp_path: Path) -> None:
    size = 5 * len(record().pack())
    recorder = CatalogRecorder(CatalogRecords(tmp_path / "records"), size)
    async with recording(recorder):
        sender = RecordSender(recorder.outlet.send)
        for number in range(20):
            sender.add(f"n{number}", record(str(number)))
            sender.send()
            await asyncio.sleep(0)
    assert 0 < sum(path.stat().st_size for path in (tmp_path / "records").iterdir()) <= size


async def told_of_a_record(recorder: CatalogRecorder, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of a recorder that is sent one record, each without the folder."""
    with caplog.at_level(logging.WARNING, "puppet.compiler"):
        async with recording(recorder):
            sender = RecordSender(recorder.outlet.send)
            sender.add("n1", record())
            sender.send()
    return [entry.message.partition(" in ")[0] for entry in caplog.records]


async def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    told = await told_of_a_record(CatalogRecorder(CatalogRecords(tmp_path / "file/records"), 2**20), caplog)
    assert told == ["Could not save the dependency record of n1's catalog"]


async def test_records_that_cannot_be_removed_are_told_and_end_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "records" / "old" / "folder").mkdir(parents=True)
    told = await told_of_a_record(CatalogRecorder(CatalogRecords(tmp_path / "records"), 1), caplog)
    assert told == ["Could not remove old dependency records"]
    assert (tmp_path / "records" / "n1").exists()


def test_a_record_is_sent_once_and_waits_while_nobody_takes_it() -> None:
    taken: list[bytes] = []
    is_full = True

    def send(datagram: bytes) -> None:
        if is_full:
            raise BlockingIOError
        taken.append(datagram)

    sender = RecordSender(send)
    for number in range(2 * MAX_WAITING):
        sender.add(f"n{number}", record())
        sender.send()
    assert taken == []
    is_full = False
    sender.send()
    assert len(taken) == MAX_WAITING
    sender.add(f"n{2 * MAX_WAITING - 1}", record())
    sender.send()
    assert len(taken) == MAX_WAITING
    sender.add(f"n{2 * MAX_WAITING - 1}", record("another"))
    sender.send()
    assert len(taken) == MAX_WAITING + 1


def test_a_record_that_is_too_large_stops_no_other() -> None:
    taken: list[bytes] = []

    def send(datagram: bytes) -> None:
        if datagram.startswith(b"large"):
            raise OSError(errno.EMSGSIZE, "Message too long")
        taken.append(datagram)

    sender = RecordSender(send)
    sender.add("large", record())
    sender.add("small", record())
    sender.send()
    assert [datagram.partition(b"\0")[0] for datagram in taken] == [b"small"]
