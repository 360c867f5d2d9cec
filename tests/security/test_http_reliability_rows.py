"""The rows of the fault table that the HTTP layer holds."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.indirector.core import Stream, Terminus
from shared.testing import Shelf
from tests.support.raw_master import RawClient, RunningMaster
from tests.support.waiting import turns, until, until_late

V3 = "/puppet/v3"
ENV = "?environment=production"
Shelves = Any
Start = Any
GIB = 2**30


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Gate(Shelf[Any]):
    """A shelf whose find and save wait until the gate opens; `begun` and `ended` count."""

    def __init__(self, shelf: Shelf[Any]) -> None:
        super().__init__()
        self.instances = shelf.instances
        self.open = asyncio.Event()
        self.begun = self.ended = 0

    async def find(self, request: Any) -> Any:
        self.begun += 1
        await self.open.wait()
        self.ended += 1
        return await super().find(request)

    async def save(self, request: Any) -> Any:
        self.begun += 1
        await self.open.wait()
        self.ended += 1
        return await super().save(request)


async def sent(master: Any, gate: Gate) -> RawClient:
    """A client that has sent facts, whose answer `gate` holds up."""
    client: RawClient = await master.client("agent1")
    body = b'{"name":"agent1","values":{}}'
    head = f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    await client.send(head.encode() + body)
    await until(lambda: gate.begun == 1)
    return client


async def sent_and_left(master: Any, gate: Gate) -> None:
    """It is gone before it has the answer."""
    client = await sent(master, gate)
    client.writer.transport.abort()
    await until(lambda: all(each.transport is None for each in master.server.listener.server.open_connections))


async def test_R_13_a_client_that_leaves_does_not_break_off_what_was_begun(start: Start, shelves: Shelves) -> None:
    shelves["facts"] = gate = Gate(shelves["facts"])
    async with start() as master:
        await sent_and_left(master, gate)
        gate.open.set()
        await until(lambda: "agent1" in gate.instances)


async def test_R_13_an_answer_that_nobody_takes_is_no_error_in_the_log(
    start: Start, shelves: Shelves, caplog: pytest.LogCaptureFixture
) -> None:
    shelves["facts"] = gate = Gate(shelves["facts"])
    async with start() as master:
        await sent(master, gate)
        (connection,) = master.server.listener.server.open_connections
        connection.transport.close()  # the end of the peer has been noticed, and is not yet told
        gate.open.set()
        await until(lambda: not master.server.listener.server.open_connections)
        assert "agent1" in gate.instances
        assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_R_13_a_body_that_breaks_off_is_not_stored(start: Start, shelves: Shelves, caplog: pytest.LogCaptureFixture) -> None:
    async with start() as master:
        for name, kind in (("facts/agent1", "application/json"), ("file_bucket_file/md5/900150983cd24fb0d6963f7d28e17f72", "text/plain")):
            client = await master.client("agent1")
            head = f"PUT {V3}/{name}{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\n"
            await client.send(head.encode() + b"abc")
            await until(lambda: master.server.application.admission.active == 1)
            await client.close()
            await until(lambda: master.server.application.admission.active == 0)
        await until(lambda: not master.server.listener.server.open_connections)
        assert shelves["facts"].instances == {}
        assert shelves["file_bucket_file"].streams == {}
        assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.slow
async def test_R_15_a_stop_lets_requests_end_and_frees_the_port(start: Start, shelves: Shelves) -> None:
    shelves["catalog"] = gate = Gate(shelves["catalog"])
    async with start() as master:
        idle = await master.client("agent1")
        assert (await idle.ask("GET", "/status/v1/simple")).status == 200
        clients = [await master.client("agent1") for _ in range(15)]
        asked = [asyncio.create_task(client.ask("GET", f"{V3}/catalog/agent1{ENV}")) for client in clients]
        await until(lambda: gate.begun == 15)
        stopping = asyncio.create_task(master.server.stop(60.0))
        assert await idle.ended()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", master.port)
        assert not stopping.done()
        gate.open.set()
        answers = await asyncio.gather(*asked)
        assert {(answer.status, answer.headers["connection"]) for answer in answers} == {(200, "close")}
        await asyncio.wait_for(stopping, 60)
        assert master.server.listener.server.open_connections == []


@pytest.mark.slow
async def test_R_15_a_stop_waits_for_what_was_begun_by_a_client_that_left(start: Start, shelves: Shelves) -> None:
    shelves["facts"] = gate = Gate(shelves["facts"])
    async with start() as master:
        await sent_and_left(master, gate)
        stopping = asyncio.create_task(master.server.stop(60.0))
        await turns(50)
        assert not stopping.done()
        gate.open.set()
        await asyncio.wait_for(stopping, 60)
        assert "agent1" in gate.instances


@pytest.mark.slow
async def test_R_15_what_does_not_end_is_cut_at_the_drain_limit(start: Start, shelves: Shelves) -> None:
    shelves["catalog"] = gate = Gate(shelves["catalog"])
    async with start() as master:
        client = await master.client("agent1")
        asked = asyncio.create_task(client.ask("GET", f"{V3}/catalog/agent1{ENV}"))
        await until(lambda: gate.begun == 1)
        stopping = asyncio.create_task(master.server.stop(300))
        await turns(50)
        assert not stopping.done()
        await until_late(stopping, 300)
        await stopping
        with pytest.raises((EOFError, OSError)):
            await asked
        gate.open.set()


@pytest.mark.slow
async def test_R_22_without_descriptors_idle_connections_give_way(start: Start) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    async with start({"max_connections": 5000}) as master:
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 128 + 60, hard))
        try:
            clients = []
            for _ in range(60):  # each takes two descriptors, both ends being here
                try:
                    clients.append(await master.client())
                except OSError:
                    break
            assert len(clients) > 20
            for client in clients[:-10]:
                await client.close()
            fresh = await master.client("agent1")
            assert (await fresh.ask("GET", "/status/v1/simple")).text == "running"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
async def test_R_22_the_connection_cap_closes_the_idle_and_serves_the_new(start: Start) -> None:
    async with start({"max_connections": 16}) as master:
        clients = [await master.client("agent1" if number else None) for number in range(40)]
        assert (await clients[-1].ask("GET", "/status/v1/simple")).text == "running"
        assert master.server.listener.open_count <= 17
        assert await clients[0].ended()


@pytest.mark.slow
async def test_R_29_who_vanishes_in_the_middle_of_a_body_gives_the_slot_back(start: Start, shelves: Shelves) -> None:
    async with start({"body_timeout": 0.2, "body_rate": 10**6, "max_active_requests": 1}) as master:
        gone = await master.client("agent1")
        head = f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        await gone.send(head.encode())
        await until(lambda: master.server.application.admission.active == 1)
        other = await master.client("agent1")
        assert (await other.ask("GET", f"{V3}/node/agent1{ENV}")).status == 200


class Endless(Terminus[Any]):
    """Gives a GiB of zeros, and takes any length, without holding either; `taken` is the digest of what came."""

    def __init__(self, model: type[Stream]) -> None:
        self.model = model
        self.taken = ""
        self.most = 0

    async def find(self, request: Any) -> Any:
        async def zeros() -> AsyncIterator[bytes]:
            chunk = bytes(2**20)
            for _ in range(1024):
                self.most = max(self.most, resident())
                yield chunk

        return self.model(name=request.key, size=GIB, chunks=zeros)

    async def save(self, request: Any) -> None:
        digest = hashlib.md5()
        async for chunk in request.instance.chunks():
            digest.update(chunk)
            self.most = max(self.most, resident())
        self.taken = digest.hexdigest()


@pytest.mark.slow
async def test_a_gib_is_served_and_taken_in_constant_memory(start: Start, shelves: Shelves) -> None:
    from shared.models.file_bucket_file import FileBucketFile
    from shared.models.file_content import FileContent

    shelves["file_content"], shelves["file_bucket_file"] = served, taken = Endless(FileContent), Endless(FileBucketFile)
    async with start() as master:
        client = await master.client("agent1", timeout=120)
        before = resident()
        await client.send(b"GET /production/file_content/modules/m/big HTTP/1.1\r\nHost: x\r\nAccept: raw\r\n\r\n")
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"Content-Length: %d\r\n" % GIB in head
        left = GIB
        while left:
            left -= len(await client.reader.read(2**20))
        assert served.most - before < 64 * 2**20
        await client.send(
            b"PUT /production/file_bucket_file/md5/cd573cfaace07e7949bc0c46028904ff HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
            b"Content-Length: %d\r\n\r\n" % GIB
        )
        chunk = bytes(2**18)
        for _ in range(GIB // len(chunk)):
            await client.send(chunk)
        assert (await client.answer()).status == 200
        assert taken.taken == "cd573cfaace07e7949bc0c46028904ff"
        assert taken.most - before < 64 * 2**20


async def test_a_file_that_shrinks_while_it_is_sent_cuts_the_connection(start: Start, shelves: Shelves) -> None:
    content = shelves["file_content"].instances["modules/m/a"]
    async with start() as master:
        for size in (2, 10):
            shelves["file_content"].instances["modules/m/a"] = content.model_copy(update={"size": size})
            client = await master.client("agent1")
            with pytest.raises((EOFError, OSError)):
                answer = await client.ask("GET", f"{V3}/file_content/modules/m/a{ENV}")
                assert len(answer.body) != size
                assert await client.ended()
                raise EOFError


async def test_expect_continue_is_answered_after_the_rules_have_spoken(master: RunningMaster, shelves: Shelves) -> None:
    client = await master.client("agent1")
    body = b'{"name":"agent1","values":{}}'
    lines = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    await client.send(f"PUT {V3}/facts/agent1{ENV} HTTP/1.1\r\n{lines}".encode())
    assert (await client.answer()).status == 100
    await client.send(body)
    assert (await client.answer()).status == 200
    await client.send(f"PUT {V3}/facts/agent2{ENV} HTTP/1.1\r\n{lines}".encode())
    answer = await client.answer()
    assert (answer.status, answer.headers["connection"]) == (403, "close")
