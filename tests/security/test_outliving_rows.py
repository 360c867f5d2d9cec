"""The row of what a command leaves running: it lives on when the run is over, and the run does not wait for it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.providers.exec.running import ChildOptions, run
from shared.ral.commands import execute

PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
# The daemon prints more than a pipe holds, to both outputs and to those opened anew, as soon as it is let; then it says so.
DAEMON = """
while [ ! -e {folder}/go ]; do sleep 0.02; done
for _ in 1 2 3 4 5 6 7 8 9 10; do head -c 65536 /dev/zero; echo to-stderr >&2; echo anew >/dev/stdout; done
touch {folder}/lives; exec sleep 60
"""


async def by_exec(script: str) -> str:
    return (await run(["/bin/sh", "-c", script], "/bin/sh", ChildOptions(PATH))).output


async def by_a_provider(script: str) -> str:
    return (await execute(["/bin/sh", "-c", script])).text


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Path]:
    """A script for a command that leaves a daemon running, which the test ends."""
    script = tmp_path / "daemon"
    script.write_text(DAEMON.format(folder=tmp_path))
    yield script
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def turns(condition: Callable[[], bool]) -> AsyncIterator[None]:
    for _ in range(6000):
        if condition():
            return
        yield
        await asyncio.sleep(0.01)


def readers_of(pipe: str) -> list[int]:
    """The processes called `cat` that have a pipe open."""
    ids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "comm").read_text() == "cat\n" and os.readlink(folder / "fd/0") == pipe:  # noqa: PTH115  # no path
                ids.append(int(folder.name))
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("start", [by_exec, by_a_provider])
async def test_AG_18_a_daemon_that_a_command_left_prints_on_when_the_run_is_over(
    tmp_path: Path, daemon: Path, start: Callable[[str], Awaitable[str]]
) -> None:
    said = await start(f"echo begins; /bin/sh {daemon} & echo $! > {tmp_path}/pid; echo started")
    assert said == "begins\nstarted\n"
    pid = int((tmp_path / "pid").read_text())
    pipe = os.readlink(f"/proc/{pid}/fd/1")  # noqa: PTH115  # no path
    (tmp_path / "go").touch()
    async for _ in turns(lambda: (tmp_path / "lives").exists()):
        assert Path(f"/proc/{pid}").exists(), "the daemon ended"
    assert (tmp_path / "lives").exists(), "the daemon waits for somebody to read what it prints"
    os.kill(pid, signal.SIGKILL)
    async for _ in turns(lambda: not readers_of(pipe)):
        pass
    assert readers_of(pipe) == [], "who reads for the daemon ends with it"


async def test_AG_18_a_command_that_leaves_nothing_starts_nothing_further() -> None:
    pipe = (await by_exec("readlink /proc/self/fd/1")).strip()
    assert pipe.startswith("pipe:") and readers_of(pipe) == []
