"""
TLS handshakes, computed in threads of their own: a signature takes milliseconds, and a thousand agents may connect at once.

asyncio and uvloop compute handshakes on the event loop, all that are ready in one iteration, and close the connection of a refused peer
without telling it why. Each handshake is therefore performed here, on the accepted socket, and its session is then handed over to a
transport of the loop.
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

from cryptography import x509

_HANDSHAKE, _CERTIFICATE = 22, 11  # in the numbers of TLS
_NO_COMPRESSED_CERTIFICATES = 1 << 33  # SSL_OP_NO_RX_CERTIFICATE_COMPRESSION of OpenSSL 3.2, which Python's ssl has no name for
_RECEIVE_SIZE = 16 * 1024  # bytes read at once; a peer's part of a handshake is a few thousand
_LEAST_HELLO = 64  # bytes; no ClientHello is shorter
_BYTES_RECEIVED_OFFSET = 128  # the offset of tcpi_bytes_received in the kernel's tcp_info


class Session:
    """
    The session after a handshake, with the methods of an ssl.SSLObject that transports use.

    OpenSSL keeps the buffers that it began with. A transport has its own, `incoming` and `outgoing`; each method copies their bytes.
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
        """Send the last bytes of the handshake, which is done already."""
        with self._buffers_carried():
            pass

    def pending(self) -> int:
        """Return the bytes that can be read, or at least tried to; uvloop does not ask for more when there are none."""
        return self._tls.pending() + self._received.pending

    def read(self, size: int, buffer: bytearray | None = None) -> int | bytes:
        with self._buffers_carried():
            return self._tls.read(size) if buffer is None else self._tls.read(size, buffer)

    def write(self, data: bytes) -> int:
        with self._buffers_carried():
            return self._tls.write(data)

    def unwrap(self) -> None:
        with self._buffers_carried():
            self._tls.unwrap()

    @contextlib.contextmanager
    def _buffers_carried(self) -> Iterator[None]:
        if self.incoming.pending:
            self._received.write(self.incoming.read())
        try:
            yield
        finally:
            if self._sent.pending:
                self.outgoing.write(self._sent.read())


session_for_transport: ContextVar[Session | None] = ContextVar("session for transport", default=None)
"""The session for the transport that the current task is about to make; None: the transport begins a handshake itself."""


class ServedContext(ssl.SSLContext):
    """
    An SSLContext that gives transports the session in `session_for_transport`; without one it begins a handshake as usual.

    OpenSSL forgets the certificate of a peer that it refuses, and TLS 1.3 encrypts it: only this callback ever sees it.
    """

    def __init__(self, protocol: int) -> None:
        self._msg_callback = _remember_certificate  # a property of ssl.SSLContext, which typeshed lacks
        if ssl.OPENSSL_VERSION_INFO >= (3, 2):
            self.options |= _NO_COMPRESSED_CERTIFICATES  # the callback could not read them

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        handed_over = session_for_transport.get()
        if handed_over is None:
            return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        handed_over.incoming, handed_over.outgoing = incoming, outgoing
        return handed_over  # type: ignore[return-value]  # it has the methods that transports use


def _remember_certificate(tls: ssl.SSLObject, direction: str, _version: int, content: int, message: int, data: bytes) -> None:
    """Keep the peer's message with its certificates at the session; OpenSSL calls this for each message of a handshake."""
    if direction == "read" and message == _CERTIFICATE and content == _HANDSHAKE:
        tls.__dict__["certificate_message"] = data


def _first_certificate(message: bytes) -> x509.Certificate | None:
    """Return the first certificate in a message of TLS 1.2 or 1.3; None when there is none."""
    # RFC 5246 7.4.2: type, length, length of the list. RFC 8446 4.4.2 has the length of a context, 0 for a client, before the last.
    start = 7 if int.from_bytes(message[4:7]) == len(message) - 7 else 8
    try:
        return x509.load_der_x509_certificate(message[start + 3 : start + 3 + int.from_bytes(message[start : start + 3])])
    except ValueError:
        return None


class Handshake:
    """
    The handshake with a peer at a non-blocking socket.

    Args:
        patience: Seconds that the peer may take in all.
        turn: Returns the current tick of the clock that `turns_waited` counts.
    """

    def __init__(self, peer: socket.socket, patience: float, turn: Callable[[], int]) -> None:
        self.peer = peer
        self._patience = patience
        self._turn = turn
        self._waited = 0
        self._since: int | None = turn()  # when we began to wait for the peer; None: it waits for us
        self.has_received = False  # any byte of the peer
        self.has_answered = False  # we did, with our certificate as a rule
        self.refused_certificate: x509.Certificate | None = None  # of a peer that was refused; nobody has verified it

    @property
    def turns_waited(self) -> int:
        """The number of turns that the peer has taken for its part."""
        return self._waited + (0 if self._since is None else self._turn() - self._since)

    @property
    def is_silent(self) -> bool:
        """True if the peer has not sent anything; False where the kernel does not report it."""
        try:
            info = self.peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED_OFFSET + 8)
        except OSError:
            return False
        return len(info) == _BYTES_RECEIVED_OFFSET + 8 and int(struct.unpack_from("=Q", info, _BYTES_RECEIVED_OFFSET)[0]) < _LEAST_HELLO

    async def perform(self, context: Callable[[], ssl.SSLContext], threads: Executor) -> Session:
        """
        Return the session. `context` is called when the peer has begun.

        Raises:
            ssl.SSLError: The peer is refused, and was sent the reason.
            OSError: The peer has left.
            TimeoutError: The peer took too long.
        """
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        # The context is asked for only after the first byte: a connection that waits uses the newest trust.
        received.write(await self._exchange(b""))
        tls = context().wrap_bio(received, sent, server_side=True)
        while True:
            try:
                with self._without_waiting():
                    # A signature takes milliseconds, in which the loop could answer connected agents (decision 021).
                    await asyncio.get_running_loop().run_in_executor(threads, tls.do_handshake)
            except ssl.SSLWantReadError:
                received.write(await self._exchange(sent.read()))
            except ssl.SSLError:
                self.refused_certificate = _first_certificate(tls.__dict__.get("certificate_message", b""))
                with contextlib.suppress(OSError):  # a peer that has left, or reads nothing, is not told
                    self.peer.send(sent.read())
                raise
            else:
                tls.__dict__.pop("certificate_message", None)
                return Session(tls, received, sent)

    @contextlib.contextmanager
    def _without_waiting(self) -> Iterator[None]:
        self._waited, self._since = self.turns_waited, None
        try:
            yield
        finally:
            self._since = self._turn()

    async def _exchange(self, message: bytes) -> bytes:
        """Send `message` and return the peer's answer to it; raise ConnectionResetError when it has left."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with asyncio.timeout(max(self._patience, 0.001)):
            await loop.sock_sendall(self.peer, message)
            self.has_answered = self.has_answered or bool(message)
            received = await loop.sock_recv(self.peer, _RECEIVE_SIZE)
        # The limit is for the peer's part in all, so that sending one byte at a time gains nothing.
        self._patience -= loop.time() - started
        if not received:
            raise ConnectionResetError("The peer has left")
        self.has_received = True
        return received
