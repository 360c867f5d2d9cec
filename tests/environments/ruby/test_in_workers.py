"""Ruby below the processes that compile."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from master.pools.compile_pool import CompilePool
from master.pools.jobs import CompileJob
from shared.errors import CompileError
from tests.environments.ruby.site import PROGRAM
from tests.support.compile_jobs import compile_pool
from tests.support.needs import needs_ruby
from tests.support.waiting import until

pytestmark = [needs_ruby, pytest.mark.slow]
TEMPLATE = (
    '<% (File.write(@hang, "hangs"); loop { }) if @hang %><% 1.upto(9) { ($all ||= []) << "x" * 200_000_000 } if @big %>'
    "<% $kept ||= Process.pid %><%= $kept %>"
)


@asynccontextmanager
async def pool(root: Path, **limits: Any) -> AsyncIterator[CompilePool]:
    folder = root / "environments" / "production" / "manifests"
    folder.mkdir(parents=True)
    (folder / "site.pp").write_text(f"notify {{ inline_template('{TEMPLATE}'): }}")
    environments = Environments(EnvironmentSettings((str(root / "environments"),), ruby=PROGRAM))
    settings: dict[str, Any] = {"size": 1, "timeout": 20.0, "memory": 2**30, "queue": 10, "cache": root / "cache", "memo": 2**20}
    workers = compile_pool(environments, **{**settings, **limits})
    try:
        yield workers
    finally:
        await workers.processes.close()


async def process_of_ruby(workers: CompilePool, **facts: Any) -> int:
    job = CompileJob("n", "production", facts=facts, parameters=facts, trusted={"certname": "n"}, server_facts={"servername": "m"})
    catalog = json.loads((await workers(job)).body)
    return next(int(each["title"]) for each in catalog["resources"] if each["type"] == "Notify")


async def ended(pid: int) -> None:
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_one_process_of_ruby_serves_all_catalogs_and_ends_with_the_worker(tmp_path: Path) -> None:
    async with pool(tmp_path) as workers:
        pid = await process_of_ruby(workers, a=1)
        assert await process_of_ruby(workers, a=2) == pid
    await ended(pid)


async def test_compile_timeout_ends_ruby_and_names_the_place(tmp_path: Path) -> None:
    async with pool(tmp_path) as workers:
        pid, usual = await process_of_ruby(workers), workers.processes.timeout
        workers.processes.timeout = 1.0
        with pytest.raises(CompileError, match=r"took longer than compile_timeout \(1 seconds\).*site\.pp, line: 1"):
            await process_of_ruby(workers, hang=str(tmp_path / "hangs"))
        await ended(pid)
        workers.processes.timeout = usual
        assert await process_of_ruby(workers) != pid


async def test_what_a_compiling_process_may_take_of_memory_is_ruby_s_limit_too(tmp_path: Path) -> None:
    async with pool(tmp_path) as workers:
        with pytest.raises(CompileError, match="failed to allocate memory"):
            await process_of_ruby(workers, big=True)


async def test_ruby_ends_with_a_worker_that_was_killed_even_in_an_endless_loop(tmp_path: Path) -> None:
    async with pool(tmp_path) as workers:
        pid = await process_of_ruby(workers)
        asked = asyncio.create_task(process_of_ruby(workers, hang=str(tmp_path / "hangs")))
        await until((tmp_path / "hangs").exists)
        (worker,) = workers.processes._all
        os.kill(worker.process.pid, signal.SIGKILL)
        await ended(pid)
        asked.cancel()
