"""Fakes for tests: a CA that is thrown away, and a TLS server that answers as the test says and remembers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from certs import bundles, certificates, crl, keys
from certs.keys import KeyKind, PrivateKey
from certs.ssldir import SslDir

YEAR = 365 * 86400
MAX_HEAD = 64 * 1024


@dataclass
class ThrowAwayCa:
    """An authority with EC keys (fast), its CRL, and what it signed."""

    key: PrivateKey
    certificate: x509.Certificate
    serial: int = 1
    revoked: list[int] = field(default_factory=list)

    @classmethod
    def new(cls, name: str = "Puppet CA: test") -> ThrowAwayCa:
        key = KeyKind("ec").generate()
        return cls(key, certificates.self_signed_authority(key, name, serial=1, ttl=5 * YEAR, now=datetime.now(UTC)))

    @property
    def pem(self) -> bytes:
        return bundles.dump([self.certificate])

    def crl_pem(self, *, now: datetime | None = None) -> bytes:
        """A CRL over all that was revoked."""
        moment = now or datetime.now(UTC)
        entries = [crl.entry(serial, moment) for serial in self.revoked]
        return bundles.dump([crl.signed(self.certificate, self.key, number=len(self.revoked), now=moment, entries=entries)])

    def sign(
        self, name: str, public: object, *, names: tuple[str, ...] = (), ttl: int = YEAR, now: datetime | None = None
    ) -> x509.Certificate:
        self.serial += 1
        return certificates.leaf(
            name,
            public,  # type: ignore[arg-type]
            issuer=self.certificate,
            issuer_key=self.key,
            serial=self.serial,
            ttl=ttl,
            now=now or datetime.now(UTC),
            alternative_names=[f"DNS:{each}" for each in names],
        )

    def sign_request(self, pem: bytes) -> bytes:
        """The certificate for a request, as an autosigning CA gives it."""
        request = x509.load_pem_x509_csr(pem)
        name = request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
        return bundles.dump([self.sign(str(name), request.public_key())])

    def context(self, folder: Path, name: str = "localhost", **options: object) -> ssl.SSLContext:
        """A server context with a fresh certificate for `name`; clients may show a certificate of this CA."""
        key = KeyKind("ec").generate()
        certificate = self.sign(name, key.public_key(), **{"names": (name,), **options})  # type: ignore[arg-type]
        return server_context(folder, key, certificate, self.pem)

    def ssldir(self, root: Path, name: str) -> SslDir:
        """An ssldir that has been through bootstrap."""
        layout = SslDir(root, name)
        layout.create()
        key = KeyKind("ec").generate()
        layout.save_key(key)
        layout.save_authorities(self.pem)
        layout.save_crls(self.crl_pem())
        layout.save_certificate(self.sign(name, key.public_key()))
        return layout


def server_context(folder: Path, key: PrivateKey, certificate: x509.Certificate, authorities: bytes) -> ssl.SSLContext:
    """A server context of these; asks for a client certificate and does not insist."""
    files = {"key": keys.private_pem(key), "cert": bundles.dump([certificate]), "ca": authorities}
    serial = certificate.serial_number
    for name, pem in files.items():
        (folder / f"server-{serial}-{name}.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(folder / f"server-{serial}-cert.pem"), str(folder / f"server-{serial}-key.pem"))
    context.load_verify_locations(str(folder / f"server-{serial}-ca.pem"))
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as it came over the wire; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int  # counts from 1
    certname: str | None

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Reply:
    """What to answer. `cut`: only so many bytes of the body, then the connection ends; `hang`: never answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: bool = False


@dataclass
class FakeMaster:
    """A TLS server on 127.0.0.1 that answers what `answer` says."""

    context: ssl.SSLContext
    answer: Callable[[Ask], Reply]
    asked: list[Ask] = field(default_factory=list)
    port: int = 0
    connections: int = 0

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
            finally:
                tasks.discard(task)

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
        peer = writer.get_extra_info("ssl_object").getpeercert()
        name = next((value for part in (peer or {}).get("subject", ()) for field, value in part if field == "commonName"), None)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while head := await _head(reader):
                method, target, headers = head
                ask = Ask(method, target, headers, await _body(reader, headers), number, name)
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
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body[: reply.cut])
        await writer.drain()
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
