"""A TLS relay between an agent and a server that keeps what both said; it shows the server the certificate that the agent showed."""

from __future__ import annotations

import contextlib
import http.client
import io
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.processes import OurAgent, RealAgent

PATIENCE = 60.0  # seconds without a byte on a connection


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer: its first line, its headers by lower-case name, its body as it was meant."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and what came back."""

    began: float
    request: Message
    answer: Message

    @property
    def method(self) -> str:
        return self.request.line.split()[0]

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.request.line.split()[1]).path)

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.request.line.split()[1]).query, keep_blank_values=True)

    @property
    def status(self) -> int:
        return int(self.answer.line.split()[1])


@dataclass(slots=True)
class Connection:
    """What was said on one connection, and when."""

    asked: list[tuple[float, bytes]] = field(default_factory=list)
    answered: bytearray = field(default_factory=bytearray)

    def exchanges(self) -> Iterator[Exchange]:
        asked, answered = io.BytesIO(b"".join(data for _, data in self.asked)), io.BytesIO(bytes(self.answered))
        while True:
            began = self._when(asked.tell())
            request = _message(asked)
            if request is None or (answer := _message(answered, body=not request.line.startswith("HEAD "))) is None:
                return
            yield Exchange(began, request, answer)

    def _when(self, offset: int) -> float:
        for moment, data in self.asked:
            if offset < len(data):
                return moment
            offset -= len(data)
        return 0.0


def _message(stream: io.BytesIO, *, body: bool = True) -> Message | None:
    line = stream.readline().decode("latin-1").rstrip("\r\n")
    if not line:
        return None
    found = http.client.parse_headers(stream)
    headers = {name.lower(): ", ".join(found.get_all(name, [])) for name in found}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Message(line, headers, b"".join(_chunks(stream)))
    empty = not body or line.split()[1] in ("204", "304")
    return Message(line, headers, b"" if empty else stream.read(int(headers.get("content-length", "0"))))


def _chunks(stream: io.BytesIO) -> Iterator[bytes]:
    while size := int(stream.readline().partition(b";")[0] or b"0", 16):
        yield stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass


class Recorder:
    """
    Args:
        upstream: the port of a server that is called localhost.
        ssl: the server's ssldir, whose certificate the relay shows in its place.
        agent: whose certificate and key it shows the server, once the agent shows one.
    """

    def __init__(self, upstream: int, ssl: Path, agent: RealAgent | OurAgent) -> None:
        self._upstream = upstream
        self._own = (ssl / "certs/localhost.pem", ssl / "private_keys/localhost.pem", ssl / "certs/ca.pem")
        self._pair = (agent.certificate, agent.ssl / "private_keys" / f"{agent.certname}.pem")
        self._connections: list[Connection] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def exchanges(self) -> Sequence[Exchange]:
        """All of them so far, in the order in which they began."""
        return sorted((each for connection in self._connections for each in connection.exchanges()), key=lambda each: each.began)

    @contextlib.contextmanager
    def running(self) -> Iterator[Recorder]:
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        certificate, key, ca = self._own
        towards_agent = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ca))
        towards_agent.load_cert_chain(certificate, key)
        towards_agent.verify_mode = ssl.CERT_OPTIONAL
        towards_server = ssl.create_default_context(cafile=str(ca))
        with contextlib.suppress(OSError), client:
            client.settimeout(PATIENCE)
            with towards_agent.wrap_socket(client, server_side=True) as agent:
                if agent.getpeercert():
                    towards_server.load_cert_chain(*self._pair)
                connected = socket.create_connection(("127.0.0.1", self._upstream), PATIENCE)
                with towards_server.wrap_socket(connected, server_hostname="localhost") as server:
                    connection = Connection()
                    self._connections.append(connection)
                    keep = {server: connection.answered.extend, agent: lambda data: connection.asked.append((time.monotonic(), data))}
                    _relay({agent: server, server: agent}, keep)


def _relay(other: dict[ssl.SSLSocket, ssl.SSLSocket], keep: dict[ssl.SSLSocket, Callable[[bytes], None]]) -> None:
    """Brings what comes from one to the other, until either ends; in one thread, as OpenSSL wants it."""
    with contextlib.suppress(OSError):
        while True:
            ready = [each for each in other if each.pending()] or select.select(list(other), [], [], PATIENCE)[0]
            for source in ready:
                source.settimeout(0)
                try:
                    data = source.recv(65536)
                except ssl.SSLWantReadError:  # a part of a record, or one that is only TLS's own
                    continue
                if not data:
                    return
                keep[source](data)
                other[source].settimeout(PATIENCE)
                other[source].sendall(data)
            if not ready:
                return
