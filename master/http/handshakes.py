"""
TLS handshakes, computed in threads of their own: a signature takes milliseconds, and a thousand agents come at once.

asyncio and uvloop compute them on the event loop, all that are ready in one turn, and close the connection of a peer that is refused
without telling it why. So each is spoken here, on the accepted socket, and handed over to a transport of the loop when it is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextvars import ContextVar

_HEARD = 16 * 1024  # bytes read at once; all that a peer has to say is a few thousand
_HELLO = 64  # bytes; no ClientHello is shorter
_BYTES_RECEIVED = 128  # its place in the kernel's tcp_info


class Session:
    """
    What a transport takes for an ssl.SSLObject, after the handshake.

    OpenSSL goes on with the buffers that it began with. A transport has its own, `incoming` and `outgoing`, so that what is in
    them is carried over.
    """

    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO

    def __init__(self, tls: ssl.SSLObject, received: ssl.MemoryBIO, sent: ssl.MemoryBIO) -> None:
        self._tls = tls
        self._received = received
        self._sent = sent
        self.getpeercert = tls.getpeercert
        self.cipher = tls.cipher
        self.compression = tls.compression

    def do_handshake(self) -> None:
        """It is done, but for what is still to be sent."""
        with self._carried():
            pass

    def pending(self) -> int:
        """Bytes that can be read, or at least tried to; uvloop does not ask for more when there are none."""
        return self._tls.pending() + self._received.pending

    def read(self, size: int, buffer: bytearray | None = None) -> int | bytes:
        with self._carried():
            return self._tls.read(size) if buffer is None else self._tls.read(size, buffer)

    def write(self, data: bytes) -> int:
        with self._carried():
            return self._tls.write(data)

    def unwrap(self) -> None:
        with self._carried():
            self._tls.unwrap()

    @contextlib.contextmanager
    def _carried(self) -> Iterator[None]:
        if self.incoming.pending:
            self._received.write(self.incoming.read())
        try:
            yield
        finally:
            if self._sent.pending:
                self.outgoing.write(self._sent.read())


handed_over: ContextVar[Session | None] = ContextVar("handed over", default=None)
"""The session for the transport that the current task is about to make."""


class ServedContext(ssl.SSLContext):
    """An SSLContext that gives transports the session in `handed_over`; without one it begins a handshake, as others do."""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        done = handed_over.get()
        if done is None:
            return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        done.incoming, done.outgoing = incoming, outgoing
        return done  # type: ignore[return-value]  # it has what transports use


class Handshake:
    """
    One with a peer at a socket that does not block.

    Args:
        patience: seconds that the peer may take for its part, all in all.
        turn: a clock, by which `waited` counts.
    """

    def __init__(self, peer: socket.socket, patience: float, turn: Callable[[], int]) -> None:
        self.peer = peer
        self._patience = patience
        self._turn = turn
        self._waited = 0
        self._since: int | None = turn()  # when we began to wait for the peer; None: it waits for us
        self.has_heard = False  # anything of the peer
        self.has_answered = False  # with our certificate, as a rule

    @property
    def waited(self) -> int:
        """How many turns the peer has taken for its part."""
        return self._waited + (0 if self._since is None else self._turn() - self._since)

    @property
    def silent(self) -> bool:
        """Whether the peer has not even begun; False where the kernel does not tell."""
        try:
            told = self.peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED + 8)
        except OSError:
            return False
        return len(told) == _BYTES_RECEIVED + 8 and int(struct.unpack_from("=Q", told, _BYTES_RECEIVED)[0]) < _HELLO

    async def done(self, context: Callable[[], ssl.SSLContext], threads: Executor) -> Session:
        """
        The session. The context is asked for when the peer has begun.

        Raises:
            ssl.SSLError: the peer is refused, and was told why. OSError: it has gone. TimeoutError: it took too long.
        """
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        received.write(await self._answer_to(b""))
        tls = context().wrap_bio(received, sent, server_side=True)
        while True:
            try:
                with self._our_part():
                    await asyncio.get_running_loop().run_in_executor(threads, tls.do_handshake)
            except ssl.SSLWantReadError:
                received.write(await self._answer_to(sent.read()))
            except ssl.SSLError:
                with contextlib.suppress(OSError):  # who has gone, or reads nothing, is not told
                    self.peer.send(sent.read())
                raise
            else:
                return Session(tls, received, sent)

    @contextlib.contextmanager
    def _our_part(self) -> Iterator[None]:
        self._waited, self._since = self.waited, None
        try:
            yield
        finally:
            self._since = self._turn()

    async def _answer_to(self, said: bytes) -> bytes:
        """What the peer says then."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(max(self._patience, 0.001)):
            await loop.sock_sendall(self.peer, said)
            self.has_answered = self.has_answered or bool(said)
            heard = await loop.sock_recv(self.peer, _HEARD)
        self._patience -= loop.time() - began
        if not heard:
            raise ConnectionResetError("The peer has gone")
        self.has_heard = True
        return heard
