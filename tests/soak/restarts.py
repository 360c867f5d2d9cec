"""Agents that loop while their master is restarted again and again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.fleet import facts_of
from tests.support.processes import MasterProcess
from tests.support.simulated_agents import Record, RunFailed, Server, SimulatedAgent, with_certificates

TIMEOUT = 120.0  # seconds for one answer
ATTEMPTS = 8  # runs that an agent tries for one
PAUSE = 1.0  # seconds between two of these, growing
INTERVAL = 20.0  # seconds, at most, between two runs
GAP = 10.0  # seconds between two restarts


async def restarted(
    process: MasterProcess, folder: Path, names: Sequence[str], times: int, record: Record, chance: random.Random
) -> tuple[list[str], str]:
    """What went wrong, and how well it went; `record` gets what agents met."""
    await asyncio.to_thread(with_certificates, names, folder, process.ca)
    server = Server(process.port, process.port, timeout=TIMEOUT)
    agents = [SimulatedAgent(name, folder, server, record, facts_of(name) | {"round": 0}, longest_wait=INTERVAL) for name in names]
    over = asyncio.Event()
    began = time.monotonic()
    loops = [asyncio.create_task(looping(agent, over, chance)) for agent in agents]
    problems, down = [], 0.0
    try:
        for _ in range(times):
            await asyncio.sleep(GAP)
            stopped = time.monotonic()
            code = await asyncio.to_thread(process.stop)
            if code:
                problems.append(f"the master ended with {code}")
            await asyncio.to_thread(process.start)
            down = max(down, time.monotonic() - stopped)
    finally:
        over.set()
        for result in await asyncio.gather(*loops, return_exceptions=True):
            if isinstance(result, RunFailed):
                problems.append(str(result))
            elif isinstance(result, BaseException):
                raise result
    # What a master may do to those who are there while it goes: end their connections, and be away. Nothing else.
    problems += [f"{number} × {text}" for text, number in record.errors.items() if text.startswith("RunFailed")]
    well = f"{len(record.runs)} runs of {len(agents)} agents in {time.monotonic() - began:.0f} s, {times} restarts"
    return problems, f"{well}, {record.errors.total()} runs tried again; away for {down:.1f} s at most"


async def looping(agent: SimulatedAgent, over: asyncio.Event, chance: random.Random) -> None:
    """Runs until the restarts are over; then one more."""
    while not over.is_set():
        try:
            await asyncio.wait_for(over.wait(), chance.uniform(0, INTERVAL))
        except TimeoutError:
            pass
        await agent.run_until_done(ATTEMPTS, PAUSE)
    await agent.run_until_done(ATTEMPTS, PAUSE)
