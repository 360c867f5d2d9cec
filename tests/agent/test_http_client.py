"""The HTTP client: pools, trust, limits, redirects, retries; against a real TLS server."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.servers.bodies import LimitedBody, retry_after
from agent.servers.http import Connecting, HttpClient
from agent.servers.pace import Bounds
from agent.servers.server import DialectCache, Server, dialect_of, version_of
from agent.servers.sites import Exchange, HttpLimits, Proxy, Site, agent_headers
from agent.servers.tls import Verifier
from shared.errors import BadData, PeerAnswered, PeerError, PeerNotTrusted, PeerUnreachable, TooLarge
from shared.wire.dialects import LEGACY, MODERN
from tests.support.awaited import connections
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import turns


def verifier(ca: ThrowAwayCa, root: Path, **changes: Any) -> Verifier:
    layout = ca.ssldir(root / "ssl", "agent.test")
    values = {
        "authorities": layout.localcacert,
        "crls": layout.hostcrl,
        "revocation": "chain",
        "now": lambda: datetime.now(UTC),
        "certificate": layout.hostcert,
        "key": layout.hostprivkey,
    }
    return Verifier(**{**values, **changes})


@pytest.fixture(scope="module")
def ca() -> ThrowAwayCa:
    return ThrowAwayCa.new()


class Pair:
    """A client and a server; `exchanges` is what the client's observer saw."""

    def __init__(self, ca: ThrowAwayCa, root: Path, answer: Callable[[Ask], Reply], **options: Any) -> None:
        self.exchanges: list[Exchange] = []
        self.slept: list[float] = []
        self.master = FakeMaster(ca.serving(root), answer)
        checks = None if options.pop("unverified", False) else verifier(ca, root)
        self.client = HttpClient(checks, observer=self.exchanges.append, sleep=self._sleep, jitter=lambda: 0.0, **options)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def site(self) -> Site:
        return Site("localhost", self.master.port)

    async def ask(self, method: str = "GET", target: str = "/x", body: Any = None) -> tuple[int, bytes]:
        answer = await self.client.request(self.site, method, target, {"Accept": "s"}, body)
        return answer.status, await answer.read()


async def test_verified_connections_are_used_again_and_show_our_certificate(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=ask.target.encode()))
    async with pair.master.running(), pair.client:
        assert await pair.ask(target="/a%2Fb?x=%20y") == (200, b"/a%2Fb?x=%20y")
        assert await pair.ask("PUT", "/b", b"body") == (200, b"/b")
        assert await pair.ask("POST", "/c", b"form") == (200, b"/c")
    assert [(e.method, e.connection, e.reused, e.verified) for e in pair.exchanges] == [
        ("GET", 1, False, True),
        ("PUT", 1, True, True),
        ("POST", 1, True, True),
    ]
    assert [ask.certname for ask in pair.master.asked] == ["agent.test"] * 3
    assert pair.master.asked[1].body == b"body"


async def test_extra_headers_go_with_every_request_and_replace_none_of_ours(ca: ThrowAwayCa, tmp_path: Path) -> None:
    extra = {"X-Site": "Prague", "accept": "evil", "user-agent": "evil"}
    pair = Pair(ca, tmp_path, lambda ask: Reply(), headers=agent_headers("Puppet/7", extra))
    async with pair.master.running(), pair.client:
        await pair.ask()
    (asked,) = pair.master.asked
    assert (asked.headers["x-site"], asked.headers["accept"], asked.headers["user-agent"]) == ("Prague", "s", "Puppet/7")


@pytest.mark.parametrize("source", ["127.0.0.9", "192.0.2.200"])
async def test_connections_start_from_the_address_that_is_wanted(source: str, ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=ask.address.encode()), connecting=Connecting(source=source))
    async with pair.master.running(), pair.client:
        if source.startswith("127."):
            assert await pair.ask() == (200, source.encode())
        else:  # none of this machine's
            with pytest.raises(PeerUnreachable):
                await pair.ask()


async def test_unverified_connections_are_never_used_twice_and_show_nothing(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=b"ok"), unverified=True)
    async with pair.master.running(), pair.client:
        await pair.ask(target="/production/certificate/ca?")
        await pair.ask(target="/puppet-ca/v1/certificate/ca")
        for method, target in (("GET", "/x"), ("PUT", "/production/certificate/ca"), ("GET", "/production/node/certificate/ca2")):
            with pytest.raises(PeerNotTrusted, match="identity is not verified"):
                await pair.ask(method, target)
    assert [ask.connection for ask in pair.master.asked] == [1, 2]
    assert [ask.certname for ask in pair.master.asked] == [None, None]
    assert pair.master.asked[0].headers["connection"] == "close"


async def test_a_keepalive_of_zero_means_a_connection_for_each_request(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(), limits=HttpLimits(keepalive=0))
    async with pair.master.running(), pair.client:
        await pair.ask()
        await pair.ask()
        assert pair.master.connections == 2


async def test_a_closed_client_waits_for_no_farewell_of_a_server(ca: ThrowAwayCa, tmp_path: Path) -> None:
    def serve() -> None:
        raw, _ = listener.accept()
        with ca.serving(tmp_path).wrap_socket(raw, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            over.wait(60)  # and reads nothing of what the client still says

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(asyncio.to_thread(serve))
        try:
            client = HttpClient(verifier(ca, tmp_path), limits=HttpLimits(keepalive=0))
            await client.request(Site("localhost", listener.getsockname()[1]), "GET", "/x", {}, None)
            await client.close()
            await turns(3)
            assert connections(asyncio.get_running_loop()) == []
        finally:
            over.set()
            await serving


async def test_a_post_is_repeated_when_the_server_had_closed_the_idle_connection(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(headers={"Connection": "keep-alive"}, cut=0 if ask.connection == 1 else None))
    async with pair.master.running(), pair.client:
        assert (await pair.ask("GET", "/first"))[0] == 200
        assert (await pair.ask("POST", "/catalog", b"facts"))[0] == 200
    assert [(ask.method, ask.connection) for ask in pair.master.asked] == [("GET", 1), ("POST", 2)]


@pytest.mark.parametrize("packing", [gzip.compress, zlib.compress, lambda data: zlib.compress(data)[2:-4], lambda data: data])
def test_compressed_bodies_are_unpacked(packing: Callable[[bytes], bytes]) -> None:
    packed = packing(b"x" * 5000)
    encoding = {gzip.compress: "gzip", zlib.compress: "deflate"}.get(packing, "identity" if packed == b"x" * 5000 else "deflate")
    limited = LimitedBody(encoding, 5000)
    for start in range(0, len(packed), 7):
        limited.feed(packed[start : start + 7])
    assert limited.end() == b"x" * 5000


@pytest.mark.parametrize(
    ("encoding", "body"), [("br", b"x"), ("gzip", b"not gzip"), ("gzip, gzip", b"x"), ("gzip", gzip.compress(b"abc", mtime=0)[:-3])]
)
def test_an_encoding_that_cannot_be_read_is_an_error(encoding: str, body: bytes) -> None:
    def read() -> bytes:
        limited = LimitedBody(encoding, 100)
        limited.feed(body)
        return limited.end()

    with pytest.raises(BadData):
        read()


async def test_a_bomb_stops_at_the_limit(ca: ThrowAwayCa, tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=bomb, headers={"Content-Encoding": "gzip"}), limits=HttpLimits(body=100_000))
    async with pair.master.running(), pair.client:
        with pytest.raises(TooLarge, match="100000 bytes"):
            await pair.ask()


async def test_AG_22_an_answer_that_drips_is_given_up_whatever_it_is_for(ca: ThrowAwayCa, tmp_path: Path) -> None:
    bounds = Bounds(rate=1 << 20, window=0.1)
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=bytes(1000), drip=0.02), limits=HttpLimits(bounds=bounds))
    async with pair.master.running(), pair.client:
        with pytest.raises(PeerUnreachable, match=r"The answer of localhost for .* arrives too slowly") as caught:
            await pair.ask()
    assert "http_least_rate" in caught.value.hint


async def test_retry_after_is_obeyed_within_limits(ca: ThrowAwayCa, tmp_path: Path) -> None:
    waits = iter(["1000000000", "0", "-5", "7", "nonsense"])
    pair = Pair(ca, tmp_path, lambda ask: Reply(503, b"busy", {"Retry-After": next(waits)}), limits=HttpLimits(longest_wait=60, retries=9))
    async with pair.master.running(), pair.client:
        assert await pair.ask() == (503, b"busy")
    assert pair.slept == [60, 1, 1, 7]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5.0), ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0), ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0), ("soon", None), ("", None), ("-3", 0.0)],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after(text, 10.0) == seconds


async def test_redirects_within_the_origin_are_followed_three_times(ca: ThrowAwayCa, tmp_path: Path) -> None:
    def answer(ask: Ask) -> Reply:
        hop = int(ask.path[2:] or "0")
        return Reply(307, headers={"Location": f"/r{hop + 1}?q"}) if hop < limit else Reply(body=ask.body)

    limit = 3
    pair = Pair(ca, tmp_path, answer)
    async with pair.master.running(), pair.client:
        assert await pair.ask("PUT", "/r0", b"kept") == (200, b"kept")
        limit = 50
        with pytest.raises(PeerAnswered, match="more than 3"):
            await pair.ask("GET", "/r0")


async def test_a_body_that_ends_early_is_an_error_not_a_short_body(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=b"x" * 1000, cut=10))
    async with pair.master.running(), pair.client:
        with pytest.raises(PeerUnreachable, match="was lost"):
            await pair.ask()


async def test_a_silent_server_is_given_up(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(hang=True), limits=HttpLimits(read=0.05))
    async with pair.master.running(), pair.client:
        with pytest.raises(PeerUnreachable, match="did not answer in time"):
            await pair.ask()


async def test_nobody_listening_says_so(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply())
    pair.master.port = 1
    async with pair.client:
        with pytest.raises(PeerUnreachable, match="Could not connect to localhost:1: Connection refused"):
            await pair.ask()


async def test_a_stream_comes_in_chunks_and_may_not_be_compressed(ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=b"x" * 300_000, headers={"Content-Encoding": "gzip"} if ask.path == "/gz" else {}))
    async with pair.master.running(), pair.client:
        opened = await pair.client.request(pair.site, "GET", "/x", {}, compressed=False)
        assert sum([len(chunk) async for chunk in opened.chunks()]) == 300_000
        packed = await pair.client.request(pair.site, "GET", "/gz", {}, compressed=False)
        with pytest.raises(BadData, match="not asked for"):
            [chunk async for chunk in packed.chunks()]
    assert pair.master.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("host", "exceptions", "proxied"),
    [
        ("puppet", ("localhost",), True),
        ("localhost", ("localhost",), False),
        ("a.example.com", (".example.com",), False),
        ("a.example.com", ("*.example.com",), False),
        ("a.example.com", ("example.com",), False),
        ("badexample.com", ("example.com",), True),
        ("x", ("*",), False),
    ],
)
def test_no_proxy_names_hosts_and_domains(host: str, exceptions: tuple[str, ...], proxied: bool) -> None:
    assert Proxy("proxy", exceptions=exceptions).serves(host) is proxied
    assert Proxy(exceptions=exceptions).serves(host) is False


class ConnectProxy:
    """A proxy that knows CONNECT; `heads` are the requests it got."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self._open: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        host, _, port = head.split()[1].decode().rpartition(":")
        there, onward = await asyncio.open_connection(host, int(port))
        self._open += [writer, onward]
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pipe(reader, onward), self._pipe(there, writer))

    async def _pipe(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                target.write(data)
        target.close()

    async def close(self) -> None:
        for writer in self._open:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def test_a_proxy_carries_the_connection_and_the_server_is_verified_all_the_same(ca: ThrowAwayCa, tmp_path: Path) -> None:
    middle = ConnectProxy()
    proxy = await asyncio.start_server(middle.serve, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    (tmp_path / "b").mkdir()
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=b"through"), connecting=Connecting(Proxy("127.0.0.1", port, "user", "pass")))
    false = Pair(ThrowAwayCa.new(), tmp_path / "b", lambda ask: Reply(), connecting=Connecting(Proxy("127.0.0.1", port)))
    false.client.verifier = pair.client.verifier
    async with proxy:
        async with pair.master.running(), pair.client:
            assert await pair.ask() == (200, b"through")
            await pair.ask()
        async with false.master.running(), false.client:
            with pytest.raises(PeerNotTrusted, match="certificate verify failed"):
                await false.ask()
    await middle.close()
    assert len(middle.heads) == 2
    assert b"Proxy-Authorization: Basic " in middle.heads[0]
    assert pair.master.asked[0].certname == "agent.test"
    assert "proxy-authorization" not in pair.master.asked[0].headers
    assert false.master.asked == []


@pytest.mark.parametrize(
    ("header", "version", "dialect"),
    [("3.8.7", (3, 8, 7), LEGACY), ("7.23.0", (7, 23, 0), MODERN), ("5.3", (5, 3), MODERN), (None, None, None), ("x", None, None)],
)
def test_the_version_tells_the_dialect(header: str | None, version: tuple[int, ...] | None, dialect: object) -> None:
    assert version_of(header) == version
    assert dialect_of(version) is dialect


def legacy(ask: Ask) -> Reply:
    return Reply(404, b"Could not find environment 'status'", {"X-Puppet-Version": "3.8.7"})


def modern(ask: Ask) -> Reply:
    return Reply(200, b"running")


def mute(ask: Ask) -> Reply:
    return Reply(200 if ask.path == "/production/certificate/ca" else 404, b"?")


@pytest.mark.parametrize(("answer", "dialect", "asked"), [(legacy, LEGACY, 1), (modern, MODERN, 1), (mute, LEGACY, 2)])
async def test_the_dialect_is_asked_for_once_and_remembered(
    ca: ThrowAwayCa, tmp_path: Path, answer: Callable[[Ask], Reply], dialect: object, asked: int
) -> None:
    pair = Pair(ca, tmp_path, answer)
    memory = tmp_path / "state" / "dialects.json"
    async with pair.master.running(), pair.client:
        server = Server(pair.site, pair.client, DialectCache.load("auto", memory), lambda: "production")
        assert await server.dialect() is dialect
        assert await server.dialect() is dialect
        again = Server(pair.site, pair.client, DialectCache.load("auto", memory), lambda: "production")
        assert await again.dialect() is dialect
    assert len(pair.master.asked) == asked


@pytest.mark.parametrize(
    ("version", "configured", "digest"),
    [
        ("3.8.7", None, "md5"),
        ("3.8.7", "sha256", "md5"),
        ("5.5.22", None, "md5"),
        ("5.5.22", "sha256", "sha256"),
        ("6.28.0", None, "md5"),
        ("7.0.0", None, "sha256"),
        ("8.10.0", "md5", "md5"),
        (None, None, "sha256"),
    ],
)
async def test_a_bucket_is_spoken_to_in_the_digest_of_its_servers_age(
    ca: ThrowAwayCa, tmp_path: Path, version: str | None, configured: str | None, digest: str
) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(200, b"running", {"X-Puppet-Version": version} if version else {}))
    async with pair.master.running(), pair.client:
        for remembered in ({}, {str(pair.site): LEGACY if version == "3.8.7" else MODERN}):
            server = Server(pair.site, pair.client, DialectCache(known=dict(remembered)), lambda: "production")
            assert await server.digest(configured) == digest


async def test_a_server_that_was_upgraded_is_asked_anew(tmp_path: Path) -> None:
    dialects = DialectCache(known={"puppet:8140": LEGACY})
    dialects.learn(Site("puppet", 8140), {"x-puppet-version": "7.23.0"})
    assert dialects.get(Site("puppet", 8140)) is None


@pytest.mark.parametrize(("ciphers", "agreed"), [("ECDHE-ECDSA-AES256-GCM-SHA384", True), ("ECDHE-RSA-AES256-GCM-SHA384", False)])
async def test_ciphers_of_tls_1_2_are_those_that_are_wanted(ciphers: str, agreed: bool, ca: ThrowAwayCa, tmp_path: Path) -> None:
    pair = Pair(ca, tmp_path, lambda ask: Reply(body=b"x"), connecting=Connecting(ciphers=ciphers))
    assert pair.master.context is not None
    pair.master.context.maximum_version = ssl.TLSVersion.TLSv1_2  # the server's key is an EC one
    async with pair.master.running(), pair.client:
        if agreed:
            assert await pair.ask() == (200, b"x")
        else:
            with pytest.raises(PeerError):
                await pair.ask()
