"""A fake for tests: a TLS server that answers as the test says and remembers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

MAX_HEAD = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as it came over the wire; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int  # counts from 1
    certname: str | None
    address: str = ""  # where the connection came from

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Reply:
    """What to answer. `cut`: only so many bytes of the body, then the connection ends; `hang`: never answer; `drip`: seconds per byte."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: bool = False
    drip: float = 0.0


@dataclass
class FakeMaster:
    """A server on 127.0.0.1, or at a Unix socket, that answers what `answer` says, over TLS unless it has no context."""

    context: ssl.SSLContext | None
    answer: Callable[[Ask], Reply]
    asked: list[Ask] = field(default_factory=list)
    port: int = 0
    connections: int = 0
    socket: Path | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeMaster]:
        """Listen until the block ends; a second time on the same port."""
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._serve(reader, writer)
            except asyncio.CancelledError:
                pass  # the server ends; Python 3.11 would log a task that was cancelled as an error
            finally:
                tasks.discard(task)
                writer.close()

        if self.socket is not None:
            server: asyncio.Server = await asyncio.start_unix_server(serve, self.socket)
        else:
            server = await asyncio.start_server(serve, "127.0.0.1", self.port, ssl=self.context)
            self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        tls = writer.get_extra_info("ssl_object")
        peer = tls.getpeercert() if tls is not None else {}
        name = next((value for part in (peer or {}).get("subject", ()) for field, value in part if field == "commonName"), None)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while head := await _head(reader):
                method, target, headers = head
                address = "" if self.socket is not None else writer.get_extra_info("peername")[0]
                ask = Ask(method, target, headers, await _body(reader, headers), number, name, address)
                self.asked.append(ask)
                if not await self._reply(ask, writer):
                    break
        writer.close()
        with suppress(ConnectionError, ssl.SSLError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), 1)

    async def _reply(self, ask: Ask, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        reply = self.answer(ask)
        if reply.hang:
            await asyncio.sleep(3600)
        body = b"" if ask.method == "HEAD" else reply.body
        headers = {"Content-Length": str(len(body)), "Content-Type": "text/plain", **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items() if value)]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if reply.drip else body[: reply.cut]))
        await writer.drain()
        for byte in body if reply.drip else b"":
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(reply.drip)
        return reply.cut is None and ask.headers.get("connection") != "close"


async def _head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    return method, target, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return body
    return await reader.readexactly(int(headers.get("content-length", "0")))
