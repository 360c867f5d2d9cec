"""Handshakes in threads: how many at once, what goes on beside them, what is said at their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from httpd.limits import ServerLimits
from httpd.tasks import HANDSHAKE
from httpd.tls.handshakes import Handshake, ServedContext
from tests.support.raw_master import CaFolder, RunningMaster
from tests.support.waiting import advance, turns, until

Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]


class Gated(ssl.SSLObject):
    """An SSLObject that computes only while the gate is open. `now` wait there, or did at the same time at `most`."""

    gate = threading.Event()
    lock = threading.Lock()
    now = most = 0

    def do_handshake(self) -> None:
        with Gated.lock:
            Gated.now += 1
            Gated.most = max(Gated.most, Gated.now)
        try:
            assert Gated.gate.wait(10)
            super().do_handshake()
        finally:
            with Gated.lock:
                Gated.now -= 1


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> type[Gated]:
    monkeypatch.setattr(ServedContext, "sslobject_class", Gated)
    Gated.gate.set()
    Gated.now = Gated.most = 0
    return Gated


async def test_a_few_are_computed_at_once_and_who_is_connected_is_served_meanwhile(serve: Serve, gated: type[Gated]) -> None:
    async with serve(limits=ServerLimits(handshake_threads=2)) as master:
        connected = await master.client("agent1")
        assert (await connected.ask("GET", "/status/v1/simple")).status == 200
        gated.gate.clear()
        herd = [asyncio.create_task(master.client("agent1")) for _ in range(6)]
        await until(lambda: gated.now == 2)
        for _ in range(5):
            assert (await connected.ask("GET", "/status/v1/simple")).status == 200
        assert gated.now == 2
        gated.gate.set()
        for client in await asyncio.gather(*herd):
            assert (await client.ask("GET", "/status/v1/simple")).text == "running"
        assert gated.most == 2


async def test_who_waits_for_us_is_not_cut_for_being_slow(serve: Serve, gated: type[Gated]) -> None:
    limits = ServerLimits(handshake_threads=1, max_handshakes=2, handshake_timeout=0.5)
    async with serve(limits=limits) as master:
        gated.gate.clear()
        herd = [asyncio.create_task(master.client("agent1", timeout=30)) for _ in range(6)]
        assert master.server.listener is not None
        begun = master.server.listener._handshakes
        await until(lambda: gated.now == 1 and [each.has_received for each in begun.values()] == [True] * 2)
        advance(1)
        await turns(20)
        gated.gate.set()
        for client in await asyncio.gather(*herd):
            assert (await client.ask("GET", "/status/v1/simple")).text == "running"
        assert master.server.listener.refused.total() == 0


class Slow(ThreadPoolExecutor):
    """Threads that take 100 turns of the clock for each thing."""

    turn = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.turn += 100
        return super().submit(fn, *args, **kwargs)


async def test_only_what_the_peer_takes_is_counted(ca: CaFolder) -> None:
    served = ServedContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(ca.certificate_of("puppet"), ca.key_of("puppet"))
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ca.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="puppet").do_handshake()
    ours, theirs = socket.socketpair()
    with ours, theirs, Slow(1) as threads:
        ours.setblocking(False)
        handshake = Handshake(ours, 10, lambda: threads.turn)
        task = asyncio.create_task(handshake.perform(lambda: served, threads))
        threads.turn += 3
        assert handshake.turns_waited == 3
        theirs.send(hello.read())
        await until(lambda: threads.turn > 100 and handshake.turns_waited >= 3)
        await until(lambda: bool(select.select([theirs], [], [], 0)[0]))
        assert handshake.turns_waited == 3
        threads.turn += 2
        assert handshake.turns_waited == 5
        theirs.close()
        with pytest.raises(OSError):
            await task


async def test_what_comes_with_the_last_word_of_a_handshake_is_read(serve: Serve) -> None:
    async with serve() as master:
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = master.ca.context().wrap_bio(heard, said, server_hostname="puppet")
        reader, writer = await asyncio.open_connection("127.0.0.1", master.port)

        async def exchanged() -> None:
            writer.write(said.read())
            data = await asyncio.wait_for(reader.read(65536), 10)
            assert data
            heard.write(data)

        for _ in range(2):
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
                break
            await exchanged()
        body = b"x" * 50_000  # several records
        client.write(b"PUT /status/v1/simple HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + body)
        await exchanged()
        assert client.read(12) == b"HTTP/1.1 405"
        writer.close()


async def test_R_41_a_handshake_that_fails_as_nobody_foresaw_is_logged_and_counted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*arguments: object) -> None:
        raise ValueError("nobody foresaw it")

    async with serve() as master:
        with monkeypatch.context() as patched:
            patched.setattr(Handshake, "perform", fail)
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await master.client("agent1")
        assert master.server.supervisor.failures[HANDSHAKE] == 1
        assert f"The task '{HANDSHAKE}' failed: ValueError('nobody foresaw it')" in caplog.text
        agent = await master.client("agent1")
        assert (await agent.ask("GET", "/status/v1/simple")).status == 200


def _end_before_anything(port: int, ca: CaFolder) -> None:
    socket.create_connection(("127.0.0.1", port)).close()


def _end_within_the_hello(port: int, ca: CaFolder) -> None:
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(b"\x16\x03\x01\x02\x00\x01")


def _end_on_the_certificate(port: int, ca: CaFolder) -> None:
    """As an agent that looks at the name behind OpenSSL's back, and closes without an alert."""
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ca.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="puppet").do_handshake()
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(hello.read())
        assert peer.recv(65536)


def _refuse_the_name(port: int, ca: CaFolder) -> None:
    with socket.create_connection(("127.0.0.1", port)) as peer, pytest.raises(ssl.SSLError):
        ca.context().wrap_socket(peer, server_hostname="another.test")


DEPARTURES = {
    "port scan": (_end_before_anything, logging.INFO, "connected and left without a word of TLS", "only connected"),
    "half a hello": (_end_within_the_hello, logging.INFO, "broke off its TLS handshake before our answer", "connection lost"),
    "no word after the certificate": (
        _end_on_the_certificate,
        logging.WARNING,
        "after our answer: connection lost. See its own log",
        "connection lost",
    ),
    "alert": (
        _refuse_the_name,
        logging.WARNING,
        "after our answer: sslv3 alert bad certificate. See its own log",
        "sslv3 alert bad certificate",
    ),
}


@pytest.mark.parametrize(("leave", "level", "message", "reason"), DEPARTURES.values(), ids=DEPARTURES.keys())
async def test_who_leaves_a_handshake_is_not_said_to_have_been_refused(
    serve: Serve,
    caplog: pytest.LogCaptureFixture,
    leave: Callable[[int, CaFolder], None],
    level: int,
    message: str,
    reason: str,
) -> None:
    caplog.set_level(logging.INFO, "puppet.tls")
    async with serve() as master:
        listener = master.server.listener
        assert listener is not None
        await asyncio.to_thread(leave, master.port, master.ca)
        await until(lambda: listener.refused.total() == 1)
        assert list(listener.refused) == [reason]
        (record,) = [record for record in caplog.records if record.name == "puppet.tls" and "TLS" in record.getMessage()]
        assert record.levelno == level and message in record.getMessage()


async def test_many_port_scans_do_not_hide_an_agent_that_mistrusts_us(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet.tls")
    async with serve() as master:
        listener = master.server.listener
        assert listener is not None
        for leave in (_end_before_anything, _end_before_anything, _end_on_the_certificate):
            await asyncio.to_thread(leave, master.port, master.ca)
        await until(lambda: listener.refused.total() == 3)
    messages = [record.getMessage() for record in caplog.records if record.name == "puppet.tls"]
    assert any("without a word of TLS" in message for message in messages)
    assert sum("after our answer" in message for message in messages) == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_the_certificate_of_a_refused_peer_is_named(serve: Serve, caplog: pytest.LogCaptureFixture, version: ssl.TLSVersion) -> None:
    async with serve() as master:
        certificate = master.ca.issue("gone.example.com")
        master.ca.revoke(certificate)
        await master.server.tls.reload()
        context = master.ca.context("gone.example.com")
        context.minimum_version = context.maximum_version = version
        with contextlib.suppress(OSError):
            reader, _ = await asyncio.open_connection("127.0.0.1", master.port, ssl=context, server_hostname="puppet")
            await reader.read()
        await until(lambda: "Refused a TLS handshake" in caplog.text)
        assert (
            "Refused a TLS handshake of 127.0.0.1: certificate revoked (its certificate is of 'gone.example.com', "
            f"serial 0x{certificate.serial_number:04X})"
        ) in caplog.text
