"""What is saved again is written again only where its file holds something else by then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.filesystem.files import write_atomic
from shared.filesystem.written import SETTLED, WrittenFiles
from shared.indirector import Request
from shared.indirector.termini import Yaml
from shared.models.facts import FACTS, Facts

FACTS_OF_WEB1 = Facts(name="web1", values={"kernel": "Linux", "disks": {"vda": [1, 2]}}, timestamp="2026-01-01T00:00:00+00:00")


class CountedYaml(Yaml[Any]):
    """A terminus that counts how often it made the text of a file."""

    dumps = 0

    def dump(self, instance: Any) -> bytes:
        self.dumps += 1
        return super().dump(instance)


class Disk:
    """The facts of a node on disk, with a clock that a test moves."""

    def __init__(self, folder: Path) -> None:
        self.time = 0.0
        self.terminus = CountedYaml(FACTS, folder / "facts", durable=False, written=WrittenFiles(clock=lambda: self.time))
        self.path = folder / "facts" / "web1.yaml"

    async def save(self, facts: Facts = FACTS_OF_WEB1, *, later: float = SETTLED) -> int:
        """Save facts some seconds later, and return the inode of their file, which a new file changes."""
        self.time += later
        await self.terminus.save(Request("web1", body=facts))
        assert await self.terminus.find(Request("web1")) == facts
        return self.path.stat().st_ino

    async def settle(self) -> int:
        """Save often enough that the file is not even read for the next time."""
        for _ in range(3):
            inode = await self.save()
        return inode


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


async def test_the_same_is_written_once_and_soon_only_looked_at(disk: Disk) -> None:
    first = await disk.save()
    assert await disk.settle() == first
    dumps = disk.terminus.dumps
    assert await disk.save() == first
    assert disk.terminus.dumps == dumps


async def test_other_content_is_written_and_the_older_again_after_it(disk: Disk) -> None:
    await disk.settle()
    other = FACTS_OF_WEB1.model_copy(update={"values": {"kernel": "Hurd"}})
    await disk.save(other)
    await disk.save(FACTS_OF_WEB1)
    later = FACTS_OF_WEB1.model_copy(update={"timestamp": "2026-01-01T00:30:00+00:00"})
    await disk.save(later)


def _replace(path: Path) -> None:
    write_atomic(path, path.read_bytes().replace(b"Linux", b"linux"), mode=0o640)


def _edit(path: Path) -> None:
    """Change a file in place, its size and time staying as they are, as a restored backup may."""
    info = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Linux", b"linux"))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "replaced": _replace,
    "edited": _edit,
    "truncated": lambda path: path.write_bytes(b""),
    "made readable for everybody": lambda path: path.chmod(0o644),
    "a link to a file that holds the same": _link,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_settled", [True, False])
async def test_what_somebody_else_did_to_a_file_is_noticed_by_the_next_save(disk: Disk, change: str, is_settled: bool) -> None:
    await (disk.settle() if is_settled else disk.save())
    CHANGES[change](disk.path)
    await disk.save()
    assert not disk.path.is_symlink()
    assert disk.path.stat().st_mode & 0o777 == 0o640


async def test_a_change_in_the_same_tick_of_the_clock_is_noticed(disk: Disk) -> None:
    await disk.save(later=0)
    disk.path.write_bytes(disk.path.read_bytes().replace(b"Linux", b"linux"))  # perhaps under the very same times
    for _ in range(3):
        await disk.save(later=SETTLED / 10)
    assert disk.terminus.dumps == 4  # nothing is believed so soon: each one was compared with the file


async def test_another_process_that_writes_a_file_is_noticed(tmp_path: Path) -> None:
    ours, others = Disk(tmp_path), Disk(tmp_path)
    await ours.settle()
    await others.save(FACTS_OF_WEB1.model_copy(update={"values": {"kernel": "Hurd"}}))
    await ours.save()


async def test_a_durable_file_is_written_by_each_process_at_least_once(tmp_path: Path) -> None:
    inodes = []
    for _ in range(2):
        terminus = Yaml(FACTS, tmp_path, written=WrittenFiles())
        for _ in range(2):
            await terminus.save(Request("web1", body=FACTS_OF_WEB1))
            inodes.append((tmp_path / "web1.yaml").stat().st_ino)
    assert inodes[0] == inodes[1]
    assert inodes[1] != inodes[2]
    assert inodes[2] == inodes[3]


def test_only_so_many_files_are_remembered(tmp_path: Path) -> None:
    written = WrittenFiles(most=2)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"x")
        written.note(tmp_path / name, b"digest")
    assert [written.last(tmp_path / name) for name in ("a", "b", "c")] == [None, b"digest", b"digest"]


NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": "1"}, {"a": 1}),
        ({"a": None}, {"a": "null"}),
        ({"a": None}, {"a": NAN}),
        ({"a": {"1": 1}}, {"a": {1: 1}}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 0.0}, {"a": -0.0}),
    ],
)
def test_instances_that_differ_have_no_common_digest(left: dict[str, Any], right: dict[str, Any]) -> None:
    digests = [Facts(name="n", values=left).digest(), Facts(name="n", values=right).digest()]
    assert digests[0] is None or digests[0] != digests[1]


def test_instances_that_say_the_same_have_one_digest() -> None:
    assert Facts(name="n", values={"a": [1, None]}).digest() == Facts(name="n", values={"a": [1, None]}).digest() is not None
    assert Facts(name="n", timestamp="a").digest() != Facts(name="n", timestamp="b").digest()
