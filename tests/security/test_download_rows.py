"""The row of bodies without end: too long, too slow, or more than the disk holds; each fails its resource, and the others are applied."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.servers.pace import Bounds, Pace
from agent.servers.sites import HttpLimits
from agent.servers.websources import WebSources
from shared.errors import PeerUnreachable, TooLarge
from shared.models.file_metadata import FileMetadata
from shared.types.file import File
from tests.support.fake_commands import MemorySources, apply


class Clock:
    """Seconds that pass only where a server lets us wait."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def body(self, *pieces: tuple[float, int]) -> AsyncIterator[bytes]:
        """Pieces of a body: after so many seconds so many bytes."""
        for seconds, size in pieces:
            self.now += seconds
            yield b"x" * size


async def size_of(bounds: Bounds, *pieces: tuple[float, int], busy: float = 0.0) -> int:
    """The bytes that come through; `busy`: seconds that we take for each piece."""
    clock, size = Clock(), 0
    async for chunk in Pace(bounds, "a body", clock).watch(clock.body(*pieces)):
        size += len(chunk)
        clock.now += busy
    return size


@pytest.mark.parametrize(
    ("bounds", "pieces", "problem"),
    [
        (Bounds(size=10), [(0, 6), (0, 5)], "a body is larger than 10 bytes"),
        (Bounds(rate=100, window=30), [(10, 1)] * 100, "a body arrives too slowly: 0 bytes a second"),
        (Bounds(rate=100, window=30), [(1, 100_000), *[(10, 1)] * 100], "a body arrives too slowly"),
        (Bounds(rate=1, window=30, seconds=60), [(10, 1000)] * 100, "a body did not arrive within 60 seconds"),
    ],
)
async def test_AG_22_a_body_that_is_too_long_or_too_slow_is_given_up(bounds: Bounds, pieces: list[tuple[float, int]], problem: str) -> None:
    with pytest.raises((PeerUnreachable, TooLarge), match=problem) as caught:
        await size_of(bounds, *pieces)
    assert caught.value.hint


async def test_AG_22_a_body_that_comes_well_is_taken_whole_however_slow_our_disk_is() -> None:
    assert await size_of(Bounds(size=1000, rate=10, window=30, seconds=60), *[(1, 100)] * 10, busy=1000) == 1000
    assert await size_of(Bounds(rate=0, seconds=0), *[(3600, 1)] * 10) == 10


class Endless(MemorySources):
    """A server whose content of one file never ends, with metadata of a short one."""

    bounds = Bounds(size=1 << 20)

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        if not source.endswith("endless"):
            async for block in super().content(source, metadata):
                yield block
            return

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(1 << 20):
                yield b"x" * 65536

        async for block in Pace(self.bounds, "the content").watch(pieces()):
            yield block


async def test_AG_22_a_content_without_end_fails_its_resource_and_the_others_are_applied(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    sources = Endless({"puppet:///m/endless": b"x", "puppet:///m/b": b"new"})
    done = await apply(
        File(str(tmp_path / "a"), {"source": "puppet:///m/endless", "backup": False, "show_diff": False}),
        File(str(tmp_path / "b"), {"source": "puppet:///m/b", "backup": False}),
        sources=sources,
    )
    assert any("the content is larger than 1048576 bytes" in message for message in done.messages)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "old" and (tmp_path / "b").read_text() == "new"


async def test_AG_22_a_web_server_that_sends_without_end_or_drips_is_left(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
        try:
            for _ in range(2000):
                writer.write(b"x" if b"/drip" in head else b"x" * 65536)
                await writer.drain()
                await asyncio.sleep(0.02 if b"/drip" in head else 0)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    web = WebSources(limits=HttpLimits(connect=10, read=10, bounds=Bounds(size=1 << 20, rate=1 << 20, window=0.1)))

    async def fetch(name: str) -> None:
        async for _ in web.content(f"http://127.0.0.1:{port}/{name}", None):
            pass

    async with server:
        with pytest.raises(TooLarge, match="larger than 1048576 bytes"):
            await fetch("endless")
        with pytest.raises(PeerUnreachable, match="arrives too slowly"):
            await fetch("drip")


FULL = """
import asyncio, json, os, sys
from tests.support.fake_commands import MemorySources, apply
from shared.types.file import File
given = {"backup": False, "show_diff": False}
sources = MemorySources({"puppet:///m/large": b"x" * (4 << 20)})
done = asyncio.run(apply(
    File(os.path.abspath("small/a"), {"source": "puppet:///m/large", **given}),
    File(os.path.abspath("small/b"), {"content": "b", **given}),
    sources=sources,
))
print(json.dumps([done.messages, sorted(os.listdir("small")), open("small/a").read()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounting needs root and unshare (util-linux)")
def test_AG_22_a_full_disk_is_said_and_leaves_the_old_file(tmp_path: Path) -> None:
    import json

    script = (
        f"set -e; cd {tmp_path}; mkdir small; mount -t tmpfs -o size=1m tmpfs small; echo old > small/a; exec {sys.executable} -c '{FULL}'"
    )
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if "permission denied" in done.stderr.lower():
        pytest.skip("this root may not mount")
    assert done.returncode == 0, done.stderr
    messages, names, old = json.loads(done.stdout)
    assert any("No space left on device in " in message and "the old content is unchanged" in message for message in messages), messages
    assert names == ["a", "b"] and old == "old\n"
