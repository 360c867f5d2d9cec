"""What an agent and a master say to each other, overheard by somebody between them who has the keys of both."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

PATIENCE = 120.0  # seconds for one read
PIECE = 65536


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer; names of headers in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    answered: Mapping[str, str]
    answer: bytes
    known: bool  # whether the agent showed a certificate

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)


@dataclass(slots=True)
class Overheard:
    """Stands at `port`; `exchanges` is all that was said, oldest first."""

    upstream: int
    server_ssl: Path  # of the master, which is called localhost
    agent_ssl: Path
    certname: str
    exchanges: list[Exchange] = field(default_factory=list)
    port: int = 0
    _listening: socket.socket | None = None

    def listen(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        if self._listening is not None:
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()

    def _accept(self) -> None:
        assert self._listening is not None
        while True:
            try:
                taken, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._between, args=(taken,), daemon=True).start()

    def _between(self, taken: socket.socket) -> None:
        taken.settimeout(PATIENCE)
        as_master = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.server_ssl / "certs/ca.pem"))
        as_master.load_cert_chain(self.server_ssl / "certs/localhost.pem", self.server_ssl / "private_keys/localhost.pem")
        as_master.verify_mode = ssl.CERT_OPTIONAL
        as_agent = ssl.create_default_context(cafile=str(self.server_ssl / "certs/ca.pem"))
        with contextlib.suppress(OSError, ssl.SSLError), as_master.wrap_socket(taken, server_side=True) as agent:
            known = bool(agent.getpeercert())
            if known:
                key = self.agent_ssl / "private_keys" / f"{self.certname}.pem"
                as_agent.load_cert_chain(self.agent_ssl / "certs" / f"{self.certname}.pem", key)
            raw = socket.create_connection(("127.0.0.1", self.upstream), PATIENCE)
            with as_agent.wrap_socket(raw, server_hostname="localhost") as master:
                asking, answering = agent.makefile("rb"), master.makefile("rb")
                while asked := _message(asking):
                    master.sendall(asked.raw)
                    if not (said := _message(answering, asked.first.startswith("HEAD "))):
                        return
                    method, target, _ = asked.first.split(" ", 2)
                    status = int(said.first.split(" ", 2)[1])
                    self.exchanges.append(Exchange(method, target, asked.headers, asked.body, status, said.headers, said.body, known))
                    agent.sendall(said.raw)


@dataclass(frozen=True, slots=True)
class _Message:
    first: str
    headers: dict[str, str]
    body: bytes
    raw: bytes


def _message(stream: object, bodiless: bool = False) -> _Message | None:
    """The next message; None when the peer has gone."""
    read_line, read = stream.readline, stream.read  # type: ignore[attr-defined]
    first: bytes = read_line(PIECE)
    if not first:
        return None
    raw, headers = [first], {}
    while (line := read_line(PIECE)) not in (b"\r\n", b""):
        raw.append(line)
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    raw.append(b"\r\n")
    body: list[bytes] = []
    answers = first.startswith(b"HTTP/")
    if bodiless or (answers and first.split(b" ", 2)[1] in (b"204", b"304")):
        pass
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        while True:
            size = read_line(PIECE)
            chunk = read(int(size.split(b";")[0], 16))
            raw += [size, chunk, read_line(PIECE)]
            if not chunk:
                break
            body.append(chunk)
    elif "content-length" in headers:
        body.append(read(int(headers["content-length"])))
        raw += body
    elif answers:
        body.append(read())
        raw += body
    return _Message(first.decode("latin-1").strip(), headers, b"".join(body), b"".join(raw))


@contextmanager
def overheard(upstream: int, server_ssl: Path, agent_ssl: Path, certname: str) -> Iterator[Overheard]:
    between = Overheard(upstream, server_ssl, agent_ssl, certname)
    between.listen()
    try:
        yield between
    finally:
        between.close()
