"""When a process with an event loop looks at its garbage."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.process import memory


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def collected(looks: list[tuple[bool, bool]], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seconds, by their number, in which all is collected; each second is deserted or idle, as `looks` say."""
    done = asyncio.Event()
    found: list[int] = []
    second = 0

    def deserted() -> bool:
        nonlocal second
        second += 1
        if second > len(looks):
            done.set()
            return False
        return looks[second - 1][0]

    def collect() -> int:
        found.append(second)
        return 0

    monkeypatch.setattr(memory, "_SECOND", 0.0)
    monkeypatch.setattr("gc.collect", collect)
    task = asyncio.create_task(memory.collect_garbage_forever(deserted, lambda: looks[second - 1][1]))
    await asyncio.wait_for(done.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return found


ALONE, IDLE, BUSY = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        pytest.param([BUSY] * 20 + [ALONE] * 20, [21], id="when all have gone, once"),
        pytest.param([BUSY, ALONE] * 12, [10, 20], id="not each time that one has gone"),
        pytest.param([BUSY] * 70 + [IDLE] * 20, [71], id="when it rests"),
        pytest.param([BUSY] * 250, [120, 240], id="even if it never rests"),
    ],
)
async def test_all_is_looked_at(looks: list[tuple[bool, bool]], found: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert await collected(looks, monkeypatch) == found
    assert gc.get_threshold()[1] < 10
    assert gc.get_threshold()[2] > 1000


# Four threads that are there at the same time ask for memory. Then glibc tells of its heaps.
HEAPS = """
import ctypes, sys, threading
from shared.process.memory import use_single_malloc_arena
glibc = ctypes.CDLL(None)
glibc.fopen.restype = ctypes.c_void_p
if sys.argv[2:]:
    use_single_malloc_arena()
meeting = threading.Barrier(4)
def ask():
    meeting.wait()
    kept = [bytes(1000) for _ in range(1000)]
    meeting.wait()
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
told = ctypes.c_void_p(glibc.fopen(sys.argv[1].encode(), b"w"))
glibc.malloc_info(0, told)
glibc.fclose(told)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_all_threads_take_memory_from_one_heap_when_told_to(tmp_path: Path) -> None:
    def heaps(*told: str) -> int:
        subprocess.run([sys.executable, "-c", HEAPS, str(tmp_path / "told"), *told], check=True, timeout=60)
        return (tmp_path / "told").read_text().count("<heap ")

    assert heaps() > 1
    assert heaps("one") == 1


FAULTS = """
import resource, zlib
from shared.process import memory
memory.keep_memory_of_bodies()
packed = zlib.compress(b"x" * 400_000)
def unpack():
    body = zlib.decompress(packed)
    return len(body)
for _ in range(20):
    unpack()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(200):
    unpack()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_the_memory_of_a_body_is_there_for_the_next_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(done.stdout) < 200  # pages; 3,000 with a limit of 1 MiB, which is one of the pieces that Python unpacks into


EXHAUSTING = """
from shared.process.memory import lift_memory_limit, limit_memory
kept = [None] * 1_000_000
limit_memory(20_000_000)
try:
    for number in range(len(kept)):
        kept[number] = [number]
except MemoryError:
    lift_memory_limit()
    print(len(bytes(50_000_000)), number < 900_000)
"""


def test_a_process_that_has_used_all_its_memory_can_say_so() -> None:
    done = subprocess.run([sys.executable, "-c", EXHAUSTING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("50000000 True\n", "")
