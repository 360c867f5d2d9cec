"""What the queue has acknowledged stays in it until it is removed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from pathlib import Path

import pytest

from shared.errors import OutOfSpace, Unavailable
from shared.queue.discarded import DiscardedLimits
from shared.queue.segments import SegmentDamaged
from shared.queue.spool import Spool, SpoolLimits
from shared.wire.packed_catalogs import PackedCatalog
from store.commands.submission import Submission
from tests.support.command_queue import submission
from tests.support.power import Disk

ROOMY = SpoolLimits(reserve=0)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != "lock")


async def test_commands_come_out_in_the_order_in_which_they_went_in(tmp_path: Path) -> None:
    async with Spool(tmp_path / "queue") as spool:
        uuids = [await spool.add(submission(f"web{number}", number)) for number in range(3)]
        await spool.wait()
        commands = spool.take(2) + spool.take(2)
        assert [command.uuid for command in commands] == uuids
        assert spool.take(1) == []
        assert [spool.payload(command) for command in commands] == [submission(f"web{n}", n).payload for n in range(3)]
        assert spool.depth == 3
        await spool.remove(commands)
        assert spool.depth == 0
        assert names(spool.folder) == []


async def test_a_crowd_shares_the_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Spool(tmp_path / "queue") as spool:
        syncs = 0
        real = os.fsync

        def fsync(fd: int) -> None:
            nonlocal syncs
            syncs += 1
            time.sleep(0.002)
            real(fd)

        monkeypatch.setattr(os, "fsync", fsync)
        uuids = await asyncio.gather(*(spool.add(submission(f"web{number}", number)) for number in range(1000)))
        assert syncs <= 2 * 8
        assert [command.uuid for command in spool.take(2000)] == uuids


async def test_what_was_not_removed_comes_again_after_a_restart_in_its_order_whatever_the_clock_says(tmp_path: Path) -> None:
    now = [2_000_000]
    for round_ in range(3):
        async with Spool(tmp_path, clock=lambda: now[0]) as spool:
            for number in range(3):
                await spool.add(submission("web1", 3 * round_ + number))
                now[0] -= 1000  # the clock goes back
            await asyncio.gather(*(spool.add(submission("web2", 3 * round_ + number)) for number in range(3)))
            spool.take(100)
    async with Spool(tmp_path) as spool:
        commands = spool.take(100)
        assert spool.depth == len(commands) == 18
        for name in ("web1", "web2"):
            payloads = [spool.payload(command) for command in commands if command.certname == name]
            assert payloads == [submission(name, number).payload for number in range(9)]
        await spool.remove(commands[:17])
    async with Spool(tmp_path) as spool:
        # The last file had three commands, and is removed as a whole.
        assert [command.certname for command in spool.take(100)] == ["web2"] * 3


async def test_only_one_process_has_the_queue(tmp_path: Path) -> None:
    async with Spool(tmp_path):
        with pytest.raises(Unavailable, match=f"locked by process {os.getpid()}"):
            await Spool(tmp_path).__aenter__()
    async with Spool(tmp_path) as spool:
        await spool.add(submission())


@pytest.mark.parametrize("limits", [SpoolLimits(commands=2), SpoolLimits(bytes=2 * len(submission().payload))], ids=["number", "bytes"])
async def test_a_full_queue_refuses_until_there_is_room(tmp_path: Path, limits: SpoolLimits) -> None:
    async with Spool(tmp_path, limits) as spool:
        results = await asyncio.gather(*(spool.add(submission()) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [str, str, Unavailable]
        await spool.remove(spool.take(1))
        await spool.add(submission())


@pytest.mark.parametrize("point", ["queue.written", "queue.synced", "queue.renamed", "queue.added"])
async def test_a_full_disk_refuses_leaves_nothing_behind_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    async with Spool(tmp_path, ROOMY) as spool:
        await spool.add(submission("web0"))
        before = names(tmp_path)
        monkeypatch.setenv("BUNRAKU_FAILPOINTS", f"{point}=enospc")
        results = await asyncio.gather(*(spool.add(submission()) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [OutOfSpace] * 3
        assert names(tmp_path) == before
        assert spool.depth == 1
        monkeypatch.delenv("BUNRAKU_FAILPOINTS")
        await spool.add(submission("web1"))
        assert [command.certname for command in spool.take(9)] == ["web0", "web1"]


async def test_the_queue_leaves_the_database_some_space(tmp_path: Path) -> None:
    async with Spool(tmp_path, SpoolLimits(reserve=2**62)) as spool:
        with pytest.raises(OutOfSpace, match=f"The file system of {tmp_path} is full: less than {2**42} MiB are free"):
            await spool.add(submission())


async def test_another_fault_of_the_disk_reaches_the_sender(tmp_path: Path) -> None:
    async with Spool(tmp_path / "queue", ROOMY) as spool:
        (tmp_path / "queue").rename(tmp_path / "elsewhere")
        with pytest.raises(FileNotFoundError):
            await spool.add(submission())
        (tmp_path / "elsewhere").rename(tmp_path / "queue")
        await spool.add(submission())


async def test_a_sender_that_goes_away_takes_nobody_with_it(tmp_path: Path) -> None:
    async with Spool(tmp_path) as spool:
        impatient = asyncio.create_task(spool.add(submission("web0")))
        patient = asyncio.create_task(spool.add(submission("web1")))
        await asyncio.sleep(0)
        impatient.cancel()
        await patient
        assert [command.certname for command in spool.take(9)] == ["web0", "web1"]


async def test_a_command_larger_than_a_group_has_a_file_of_its_own(tmp_path: Path) -> None:
    async with Spool(tmp_path, SpoolLimits(group_bytes=1000, group_commands=4)) as spool:
        sizes = [10, 5000, 10, 10, 10, 10, 10]
        await asyncio.gather(*(spool.add(submission(payload=b"x" * size)) for size in sizes))
        commands = spool.take(9)
        assert [command.length for command in commands] == sizes
        assert [command.sequence for command in commands] == [1, 2, 3, 3, 3, 3, 4]


async def test_a_discarded_command_lies_beside_its_reason(tmp_path: Path) -> None:
    async with Spool(tmp_path) as spool:
        uuid = await spool.add(submission("web1"))
        (command,) = spool.take(1)
        await spool.discard(command, "it is wrong")
        assert (spool.depth, names(tmp_path)) == (0, [])
        payload, reason = sorted((tmp_path / "discarded").iterdir())
        assert payload.name == f"{command.received}-{uuid}.json"
        assert payload.read_bytes() == submission("web1").payload
        assert json.loads(reason.read_text()) == {
            "command": "deactivate node",
            "version": 3,
            "certname": "web1",
            "uuid": uuid,
            "received": command.received,
            "reason": "it is wrong",
        }


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_discarded_catalog_is_unpacked_where_that_is_possible(tmp_path: Path, is_whole: bool) -> None:
    packed = PackedCatalog.of({"certname": "web1", "resources": [], "edges": []}).pack()
    sent = packed if is_whole else packed[:-3]
    async with Spool(tmp_path) as spool:
        await spool.add(Submission("replace catalog", 9, "web1", None, None, sent, "packed"))
        (command,) = spool.take(1)
        assert spool.payload(command) == sent
        await spool.discard(command, "it is wrong")
    payload, _ = sorted((tmp_path / "discarded").iterdir())
    text = b'{"certname":"web1","resources":[],"edges":[]}'
    assert (payload.suffix, payload.read_bytes()) == ((".json", text) if is_whole else (".packed", sent))


async def test_old_discarded_commands_make_room_for_new_ones(tmp_path: Path) -> None:
    limits = SpoolLimits(discarded=DiscardedLimits(commands=2, bytes=100))
    for sizes in ([10, 10, 10], [70], [40]):
        async with Spool(tmp_path, limits) as spool:
            for size in sizes:
                await spool.add(submission(payload=b"x" * size))
            for command in spool.take(9):
                await spool.discard(command, "")
    assert sorted(path.stat().st_size for path in (tmp_path / "discarded").iterdir() if path.suffix == ".json") == [40]
    assert len(list((tmp_path / "discarded").iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"{}\n", b'{"format":2,"commands":[]}\n', b'{"format":1,"commands":[{"uuid":"a"}]}\n', None])
async def test_a_damaged_file_is_kept_and_the_others_come_out(tmp_path: Path, damage: bytes | None) -> None:
    async with Spool(tmp_path) as spool:
        for number in range(3):
            await spool.add(submission(f"web{number}"))
    path = tmp_path / names(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    (tmp_path / ".0000000000000009.commands.tmp").write_bytes(b"half")
    async with Spool(tmp_path) as spool:
        assert [command.certname for command in spool.take(9)] == ["web0", "web2"]
        assert len(names(tmp_path)) == 2
        assert len(names(tmp_path / "discarded")) == 2


async def test_a_damaged_payload_is_noticed(tmp_path: Path) -> None:
    async with Spool(tmp_path) as spool:
        await spool.add(submission(payload=b"abc"))
        (command,) = spool.take(1)
        (name,) = names(tmp_path)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-1] + b"x")
        with pytest.raises(SegmentDamaged):
            spool.payload(command)
        (tmp_path / name).unlink()
        with pytest.raises(SegmentDamaged):
            spool.payload(command)
        await spool.discard(command, "damaged")
        assert spool.depth == 0


@pytest.mark.slow
async def test_what_was_acknowledged_survives_a_power_cut_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "queue"
    async with Spool(folder, ROOMY):
        pass
    disk = Disk(folder)
    acknowledged: set[str] = set()
    luck = random.Random(7)
    cuts = 0

    async def check(expected: set[str]) -> None:
        nonlocal cuts
        for round_ in range(4):
            after = disk.after(tmp_path / f"after{cuts}.{round_}", luck if round_ else None)
            with monkeypatch.context() as without:
                without.setattr("os.fsync", lambda fd: None)
                async with Spool(after, ROOMY) as spool:
                    commands = spool.take(99)
                    assert expected <= {command.uuid for command in commands}
                    for command in commands:
                        if command.uuid in expected:
                            spool.payload(command)
        cuts += 1

    def cut() -> None:  # in the thread that writes
        asyncio.run(check(set(acknowledged)))

    disk.cut = cut
    with disk.watched(monkeypatch):
        async with Spool(folder, ROOMY) as spool:
            for number in range(6):
                group = await asyncio.gather(*(spool.add(submission(f"web{n}", number)) for n in range(number + 1)))
                acknowledged |= set(group)
                if number == 3:
                    commands = spool.take(3)
                    acknowledged -= {command.uuid for command in commands}
                    await spool.remove(commands)
            disk.cut = lambda: None
    assert cuts >= 12
