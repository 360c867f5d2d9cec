"""
Agents that wait for orders to run, simulated, at a master of its own process: `make bench BENCH="--only waiting"`.

Prints what an agent that waits costs the master beside its connection, how long the first order takes to reach an agent, how many runs
take place at the same time, and how long the master's event loop was held up.
"""

from __future__ import annotations

import asyncio
import json
import resource
import ssl
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from tests.bench.costs import Blocks, memory_of, processor_seconds
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, master
from tests.support.raw_master import RawClient
from tests.support.simulated_agents import report_of, with_certificates

WAIT = "/puppet/v1/orders?seconds=300"
RUNS = "/puppet/v1/runs"
JSON = "application/json"
CONCURRENCY = 20
RUN = 0.05  # seconds of a simulated run
IDLE = 20.0  # seconds of which the processor time is measured
BATCH = 50  # agents that connect at the same time


@dataclass
class Agents:
    """Agents by certname, whose requests are answered in `orders`."""

    process: MasterProcess
    clients: dict[str, RawClient] = field(default_factory=dict)
    requests: dict[str, asyncio.Task[Any]] = field(default_factory=dict)
    first: float = 0.0
    running: int = 0
    most: int = 0

    async def connect(self, names: list[str], folder: Path) -> None:
        """Open a connection for each, over which one request was answered."""
        for start in range(0, len(names), BATCH):
            await asyncio.gather(*(self._connect(name, folder) for name in names[start : start + BATCH]))

    async def _connect(self, name: str, folder: Path) -> None:
        context = ssl.create_default_context(cafile=str(self.process.ca / "ca_crt.pem"))
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        client = self.clients[name] = await RawClient.connect(self.process.port, context, server="localhost", timeout=600)
        assert (await client.ask("GET", "/status/v1/simple")).body == b"running"

    def wait(self) -> None:
        """Have all wait for an order; each reports after its run."""
        for name, client in self.clients.items():
            self.requests[name] = asyncio.create_task(self._run(name, client))

    async def _run(self, name: str, client: RawClient) -> None:
        order = json.loads((await client.ask("GET", WAIT)).body)
        self.first = self.first or time.monotonic()
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(RUN)
        report = report_of({"resources": [], "environment": "production"}, name, "5f1b4f59-5ee7-44d0-a5d0-1e7c1e6e7f10")
        body = json.dumps({**report, "job_id": order["id"]}).encode()
        self.running -= 1  # the master may order the next one as soon as it has read the report
        answer = await client.ask("PUT", f"/puppet/v3/report/{name}?environment=production", body, Content_Type=JSON)
        assert answer.status == 200, answer.text

    async def order(self, administrator: RawClient) -> tuple[float, float]:
        """Order all to run; return the seconds until the first has the order, and until all have ended."""
        self.first, began = 0.0, time.monotonic()
        body = json.dumps({"all": True, "concurrency": CONCURRENCY}).encode()
        answer = await administrator.ask("POST", RUNS, body, Content_Type=JSON)
        lines = [json.loads(line) for line in answer.body.splitlines()]
        assert lines[-1] == {"done": True}, lines[-1]
        await asyncio.gather(*self.requests.values())
        return self.first - began, time.monotonic() - began


async def measure(process: MasterProcess, folder: Path, number: int, metrics_port: int) -> dict[str, float]:
    """Print and return the numbers of so many agents."""
    names = [f"node{i:05}.test" for i in range(number)]
    with_certificates(names, folder, process.ca)
    agents = Agents(process)
    before = memory_of(process.pid)[1]
    await agents.connect(names, folder)
    connected = memory_of(process.pid)[1]
    agents.wait()
    await asyncio.sleep(1)
    waiting, used = memory_of(process.pid)[1], processor_seconds(process.pid)
    await asyncio.sleep(IDLE)
    share = (processor_seconds(process.pid) - used) / IDLE * 100
    context = ssl.create_default_context(cafile=str(process.ca / "ca_crt.pem"))
    own = process.root / "conf" / "ssl"
    context.load_cert_chain(own / "certs" / "localhost.pem", own / "private_keys" / "localhost.pem")
    administrator = await RawClient.connect(process.port, context, server="localhost", timeout=600)
    latencies = []
    for _ in range(3):
        first, took = await agents.order(administrator)
        latencies.append(first)
        agents.wait()
        await asyncio.sleep(1)
    blocks = Blocks.read(metrics_port)
    for task in agents.requests.values():
        task.cancel()
    await asyncio.gather(*agents.requests.values(), return_exceptions=True)
    for client in (administrator, *agents.clients.values()):
        client.writer.transport.abort()
    await asyncio.sleep(0)
    connection, wait = (connected - before) * 1024 / number, (waiting - connected) * 1024 / number
    print(f"{number} agents that wait for orders, a master on this machine")
    print(f"  {connection:.0f} KB for a connection, {wait:.1f} KB more for one that waits; {share:.1f} % of a processor while they wait")
    print(f"  the first has its order after {statistics.median(latencies) * 1000:.0f} ms, {agents.most} runs of {CONCURRENCY} at most")
    print(f"  {took:.1f} s for all runs of {RUN} s each; event loop held up for {blocks}")
    first = statistics.median(latencies)
    return {"agents": number, "connection_kb": connection, "waiting_kb": wait, "first_seconds": first, "most": agents.most}


def run(number: int) -> dict[str, float]:
    """Measure so many agents at a new master."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with reserved_port() as metrics_port, tempfile.TemporaryDirectory(prefix="bunraku-bench-") as root:
            limits = {"metrics_port": str(metrics_port), "metrics_bindaddress": "127.0.0.1", "max_connections": str(2 * number)}
            with master(Path(root) / "master", key_type="ec", **limits) as process:
                process.write({"manifests/site.pp": ""})
                process.start()
                return uvloop.run(measure(process, Path(root), number, metrics_port))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
