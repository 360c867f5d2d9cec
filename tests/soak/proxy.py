"""What stands between agents and a master, and cuts connections in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PIECE = 65_536
IDLE = 300.0  # seconds that nothing comes before a connection is given up
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 seconds


@dataclass(slots=True)
class Proxy:
    """Octets to 127.0.0.1 and back; `port` is where agents go, `cut` how many connections it has ended in the middle."""

    target: int
    port: int = 0
    cut: int = 0
    _open: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = field(default_factory=set)

    def cut_some(self, share: float, chance: random.Random) -> None:
        """End this share of the connections now, with a FIN or with an RST."""
        for both in [each for each in self._open if chance.random() < share]:
            self._open.discard(both)
            self.cut += 1
            reset = chance.random() < 0.5
            for writer in both:
                if reset:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        both = (writer, to_writer)
        self._open.add(both)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(_pump(reader, to_writer))
                pumps.create_task(_pump(to_reader, writer))
        finally:
            self._open.discard(both)
            for each in both:
                each.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side ends, whoever does."""
    with contextlib.suppress(OSError, TimeoutError):
        while (piece := await asyncio.wait_for(reader.read(PIECE), IDLE)) and not writer.is_closing():
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()
            return
    writer.transport.abort()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[Proxy]:
    """One that listens on a free port of 127.0.0.1."""
    made = Proxy(target)
    serving: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
