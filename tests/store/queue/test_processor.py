"""Whatever happens to the database and to this process, each accepted command is stored or discarded, in the order of its node."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import Unavailable
from shared.queue.spool import Spool, SpoolLimits
from store.commands.commands import PayloadRejected, ReceivedCommand, ReplaceFacts, Unfinished
from store.commands.submission import Submission
from store.queue.processor import CommandProcessor, ProcessorLimits, Receipt
from tests.support.command_queue import FakeWriter, running, submission
from tests.support.waiting import until

QUICK = ProcessorLimits(shortest_delay=0.001, longest_delay=0.01, attempts=4)


def facts(certname: str, second: int, **values: object) -> Submission:
    payload = {"certname": certname, "environment": None, "producer_timestamp": f"2025-11-01T00:00:{second:02}Z", "values": values}
    return Submission("replace facts", 4, certname, None, None, gzip.compress(json.dumps(payload).encode()), "gzip")


def discarded(spool: Spool) -> list[str]:
    folder = spool.folder / "discarded"
    return [json.loads(path.read_text())["reason"] for path in sorted(folder.glob("*.reason"))] if folder.exists() else []


async def test_commands_of_a_thousand_nodes_are_stored_in_batches_and_in_the_order_of_each_node(tmp_path: Path) -> None:
    writer = FakeWriter()
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        for number in range(3):
            await asyncio.gather(*(processor.submit(submission(f"web{node}", number)) for node in range(1000)))
        await writer.until_stored(3000)
        await until(lambda: spool.depth == 0)
        assert sorted(writer.stored) == sorted((f"web{node}", number) for node in range(1000) for number in range(3))
        for node in range(1000):
            assert [number for name, number in writer.stored if name == f"web{node}"] == [0, 1, 2] if node < 50 else True
        assert writer.calls < 100
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
        counts = processor.counts
        assert (counts["seen"], counts["processed"]) == (3000, 3000)


async def test_commands_wait_while_the_database_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    writer = FakeWriter(is_away=True)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        for number in range(250):
            await processor.submit(submission(f"web{number % 20}", number))
        await until(lambda: writer.calls > 30)
        assert (writer.stored, spool.depth, discarded(spool)) == ([], 250, [])
        writer.is_away = False
        await writer.until_stored(250)
        for node in range(20):
            numbers = [number for name, number in writer.stored if name == f"web{node}"]
            assert numbers == sorted(numbers)
        assert processor.counts["retried"] > 20
    warnings = [record.message for record in caplog.records if "at the moment" in record.message or "again" in record.message]
    assert len(warnings) == 2, "one line when the database goes, one when it comes back"


async def test_PDB_11_a_poisonous_command_is_discarded_and_the_others_are_stored(tmp_path: Path) -> None:
    writer = FakeWriter(poison={"web2", "web4", "web5", "web6", "web7"})
    async with Spool(tmp_path) as spool:
        for number in range(10):
            await spool.add(submission(f"web{number}", number))
        async with running(CommandProcessor(spool, writer, QUICK)) as processor:
            await until(lambda: spool.depth == 0)
            assert [number for _, number in writer.stored] == [0, 1, 3, 8, 9]
            assert discarded(spool) == ["ValueError: poison"] * 5
            counts = processor.counts
            assert (counts["processed"], counts["fatal"], counts["discarded"]) == (5, 5, 5)


async def test_PDB_12_what_the_writer_refuses_is_discarded_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = FakeWriter(error=PayloadRejected("resources have a title of 20000 characters"))
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        await asyncio.gather(*(processor.submit(submission(f"web{number}")) for number in range(20)))
        await until(lambda: spool.depth == 0)
        assert discarded(spool) == ["resources have a title of 20000 characters"] * 20
    assert {record.levelname for record in caplog.records} == {"WARNING"}


async def test_commands_that_make_the_database_give_up_do_not_stop_the_others_for_long(tmp_path: Path) -> None:
    writer = FakeWriter(slow={"web0", "web1", "web2", "web3"})
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)):
        for number in range(2):
            for node in range(4):
                await spool.add(submission(f"web{node}", number))
        for number in range(4 * QUICK.attempts):
            await spool.add(submission("web9", number))
            await writer.until_stored(number + 1)
        await until(lambda: spool.depth == 0)
        assert writer.stored == [("web9", number) for number in range(4 * QUICK.attempts)]
        assert discarded(spool) == ["DatabaseUnavailable: the database is away"] * 8


async def test_a_lone_command_waits_as_long_as_the_database_is_away(tmp_path: Path) -> None:
    writer = FakeWriter(is_away=True)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)):
        await spool.add(submission("web1", 1))
        await until(lambda: writer.calls > 5 * QUICK.attempts)
        assert (spool.depth, discarded(spool)) == (1, [])
        writer.is_away = False
        await writer.until_stored(1)


async def test_when_nothing_at_all_can_be_stored_few_commands_are_discarded(tmp_path: Path) -> None:
    writer = FakeWriter(error=RuntimeError("attempt to write a readonly database"))
    limits = replace(QUICK, attempts=1000)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, limits)):
        for number in range(50):
            await spool.add(submission(f"web{number}", number))
        await until(lambda: writer.calls > 300)
        assert len(discarded(spool)) <= 3
        writer.error = None
        await until(lambda: spool.depth == 0)
        assert len(writer.stored) >= 47


async def test_a_rejected_payload_is_discarded_and_its_sender_told(tmp_path: Path) -> None:
    writer = FakeWriter()
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        receipt = await processor.submit(submission(payload=b"nojson", wait=5))
        assert (receipt.has_waited, receipt.is_processed) == (True, True)
        assert receipt.error is not None and "not JSON" in receipt.error
        await until(lambda: spool.depth == 0)
        assert discarded(spool) == [receipt.error]
        unsupported = replace(submission(wait=5), version=4)
        assert (await processor.submit(unsupported)).error == "Unsupported command deactivate node version 4"


async def test_a_sender_waits_for_its_command_as_long_as_it_wants(tmp_path: Path) -> None:
    writer = FakeWriter()
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        receipt = await processor.submit(submission("web1", wait=5))
        assert receipt == Receipt(receipt.uuid, has_waited=True, is_processed=True)
        assert not (await processor.submit(submission("web1"))).has_waited
        writer.is_away = True
        receipt = await processor.submit(submission("web2", wait=0.03))
        assert receipt == Receipt(receipt.uuid, has_waited=True, is_processed=False)
        writer.is_away = False
        await writer.until_stored(3)


async def test_only_so_many_senders_wait(tmp_path: Path) -> None:
    writer = FakeWriter(is_away=True)
    limits = replace(QUICK, waiters=1, longest_wait=0.05)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, limits)) as processor:
        first = asyncio.create_task(processor.submit(submission("web1", wait=1000)))
        await asyncio.sleep(0)
        assert not (await processor.submit(submission("web2", wait=1000))).is_processed
        assert not first.done()
        assert not (await first).is_processed


async def test_a_refused_command_is_not_waited_for(tmp_path: Path) -> None:
    async with Spool(tmp_path, SpoolLimits(commands=0)) as spool, running(CommandProcessor(spool, FakeWriter(), QUICK)) as processor:
        with pytest.raises(Unavailable):
            await processor.submit(submission(wait=1000))


async def test_a_command_that_asks_for_nothing_is_processed(tmp_path: Path) -> None:
    writer = FakeWriter()
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        empty = Submission("replace catalog inputs", 1, "web1", None, 5.0, b'{"certname":"web1"}', "identity")
        assert (await processor.submit(empty)).is_processed
        assert writer.calls == 0


class Facts:
    """A writer that keeps the facts it gets."""

    def __init__(self) -> None:
        self.batches: list[list[ReplaceFacts]] = []

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        self.batches.append([received.command for received in commands if isinstance(received.command, ReplaceFacts)])


async def test_of_facts_in_one_batch_only_the_newest_of_a_node_are_written(tmp_path: Path) -> None:
    writer = Facts()
    async with Spool(tmp_path) as spool:
        for second, certname in ((1, "web1"), (9, "web2"), (3, "web1"), (2, "web2"), (3, "web1")):
            await spool.add(facts(certname, second))
        processor = CommandProcessor(spool, writer, QUICK)
        async with running(processor):
            await until(lambda: not spool.depth)
        times = [(command.certname, command.producer_timestamp // 1_000_000 % 60) for command in writer.batches[0]]
        assert times == [("web2", 9), ("web2", 2), ("web1", 3)]
        assert processor.counts["ignored"] == 2


async def test_a_batch_has_only_so_many_bytes(tmp_path: Path) -> None:
    writer = Facts()
    async with Spool(tmp_path) as spool:
        for number in range(7):
            await spool.add(facts(f"web{number}", 1, text="x" * 1000))
        async with running(CommandProcessor(spool, writer, replace(QUICK, batch_bytes=2500))):
            await until(lambda: not spool.depth)
    assert [len(batch) for batch in writer.batches] == [3, 3, 1]


async def test_PDB_09_a_payload_that_grows_beyond_the_limit_is_discarded(tmp_path: Path) -> None:
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, FakeWriter(), replace(QUICK, payload_bytes=1000))) as processor:
        receipt = await processor.submit(replace(facts("web1", 1, text="x" * 10_000), seconds_to_wait=5.0))
        assert receipt.error == "the payload is longer than 1000 bytes"


async def test_a_faulty_command_stays_in_the_queue_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FakeWriter()
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)) as processor:
        monkeypatch.setenv("BUNRAKU_FAILPOINTS", "queue.discarding=enospc")
        receipt = await processor.submit(submission(payload=b"nojson", wait=5))
        assert receipt.error
        await spool.add(submission("web1"))  # the file system has room for this one
        await writer.until_stored(1)
        await until(lambda: spool.depth == 1)
        assert discarded(spool) == []
        monkeypatch.delenv("BUNRAKU_FAILPOINTS")
        await until(lambda: spool.depth == 0)
        assert discarded(spool) == [receipt.error]


async def test_an_unreadable_file_is_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    writer = FakeWriter()
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)):
        monkeypatch.setenv("BUNRAKU_FAILPOINTS", "queue.reading=enospc")
        await spool.add(submission("web1"))
        await until(lambda: caplog.text.count("The queue cannot be read just now") >= 2)
        assert (writer.calls, spool.depth, discarded(spool)) == (0, 1, [])
        monkeypatch.delenv("BUNRAKU_FAILPOINTS")
        await writer.until_stored(1)


async def test_what_was_under_way_at_the_end_is_carried_out_after_the_next_start(tmp_path: Path) -> None:
    writer = FakeWriter(is_away=True)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)):
        await asyncio.gather(*(spool.add(submission(f"web{number}", number)) for number in range(5)))
        await until(lambda: writer.calls > 2)
    writer.is_away = False
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, QUICK)):
        await writer.until_stored(5)
    assert [number for _, number in writer.stored] == [0, 1, 2, 3, 4]


class PartialWriter(FakeWriter):
    """A writer for which the commands of the nodes in `parts` are large: each takes so many calls, alone."""

    def __init__(self, **parts: int) -> None:
        super().__init__()
        self.parts = parts

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        large = [received.command.certname for received in commands if self.parts.get(received.command.certname)]
        if large:
            if len(commands) == 1:
                self.parts[large[0]] -= 1
            await asyncio.sleep(0.001)  # as at a database: a loop that only turns would keep the spool's threads from running
            raise Unfinished
        await super().write(commands)


@pytest.mark.slow
async def test_PDB_12_commands_of_other_nodes_are_stored_while_a_large_one_is_written_in_parts(tmp_path: Path) -> None:
    writer = PartialWriter(large=10**9)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, replace(QUICK, longest_delay=1e6))) as processor:
        await processor.submit(submission("large", 0))
        await processor.submit(submission("large", 1))
        for number in range(300):
            await processor.submit(submission(f"web{number % 20}", number))
            if number % 100 == 99:
                await writer.until_stored(number + 1)
        assert 0 < writer.parts["large"] < 10**9
        writer.parts["large"] = 3
        assert "large" not in {name for name, _ in writer.stored}
        await writer.until_stored(302)
        await until(lambda: spool.depth == 0)
        assert writer.stored[-2:] == [("large", 0), ("large", 1)]
        assert discarded(spool) == []
        assert processor.counts["processed"] == 302


async def test_PDB_12_a_large_command_in_parts_does_not_keep_others_from_being_read(tmp_path: Path) -> None:
    writer = PartialWriter(large=10**9)
    limits = replace(QUICK, batch_bytes=100)
    async with Spool(tmp_path) as spool, running(CommandProcessor(spool, writer, limits)) as processor:
        padding = b'{"certname":"large","producer_timestamp":"2025-11-01T00:00:00Z"}' + b" " * 1000
        await processor.submit(submission("large", payload=padding))
        await until(lambda: writer.parts["large"] < 10**9)
        for number in range(20):
            await processor.submit(submission(f"web{number}", number))
        await writer.until_stored(20)
