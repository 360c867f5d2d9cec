"""For tests of a master: a throw-away CA on disk, a server on a free port, and a client that sends bytes as they are."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509

from ca.authority import CaOptions
from ca.autosign import Autosign
from ca.service import CaService
from ca.setup import bootstrap
from ca.storage.folder import FolderStore
from certs import certificates, keys
from certs.files.cadir import CaFiles
from certs.keys import KeyKind
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tls.trust import TrustFiles
from master.endpoints.app import HANDSHAKE_HINT, MasterApp
from master.endpoints.metrics import describe_server
from master.endpoints.routes import MasterAppOptions
from master.observability.longtasks import master_supervisor
from master.observability.metrics import Metrics
from tests.support.throwaway_ca import ThrowAwayCa

PAUSE = 0.05  # seconds between two looks at a master's state


class CaFolder(ThrowAwayCa):
    """A throw-away CA below a folder; the files are those that a master's TLS reads."""

    def __init__(self, folder: Path, name: str = "Puppet CA: throw-away", *, now: datetime | None = None) -> None:
        self.folder = folder
        self.now = now or datetime.now(UTC)
        made = ThrowAwayCa.new(name, now=self.now)
        super().__init__(made.key, made.certificate)
        folder.mkdir(parents=True, exist_ok=True)
        self.bundle.write_bytes(self.pem)
        self.write_crl()

    @property
    def bundle(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def crl(self) -> Path:
        return self.folder / "crl.pem"

    def write_crl(self, **options: Any) -> None:
        """The CRL of what is revoked now, written to its file."""
        temporary = self.crl.with_suffix(".new")
        temporary.write_bytes(self.crl_pem(**({"now": self.now} | options)))
        temporary.replace(self.crl)

    def revoke(self, certificate: x509.Certificate) -> None:
        self.revoked.append(certificate.serial_number)
        self.write_crl()

    def issue(self, name: str, **options: Any) -> x509.Certificate:
        """A certificate, with its key, as `<name>.pem` and `<name>.key`; options as of certs.certificates.leaf."""
        key = KeyKind("ec").generate()
        made = self.sign(name, key.public_key(), **({"now": self.now} | options))
        self.certificate_of(name).write_bytes(certificates.pem(made))
        keys.save(self.key_of(name), key)
        return made

    def administrator(self, name: str) -> x509.Certificate:
        """A certificate that may administer the CA."""
        return self.issue(name, extensions=(certificates.text_extension("1.3.6.1.4.1.34380.1.3.39", "true"),))

    def certificate_of(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def key_of(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def trust(self, server: str) -> TrustFiles:
        """The files of a server with this name, whose certificate must have been issued."""
        return TrustFiles(self.certificate_of(server), self.key_of(server), self.bundle, self.crl)

    def context(self, name: str | None = None) -> ssl.SSLContext:
        """A client's context that trusts this CA, with the certificate of `name`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.bundle)
        if name is not None:
            context.load_cert_chain(self.certificate_of(name), self.key_of(name))
        return context


class RealCa(CaFolder):
    """The files and certificates of a whole CA (`master.ca`), with EC keys, for a server that carries the CA's endpoints."""

    def __init__(self, folder: Path, **rules: Any) -> None:
        self.folder = folder
        self.now = datetime.now(UTC)
        self.revoked = []  # the authority knows them
        self.trail: list[dict[str, object]] = []
        files = CaFiles.at(folder / "ca")
        ec = KeyKind("ec").generate
        make, given = CaOptions(master="puppet"), replace(CaOptions(master="puppet"), **rules)
        bootstrap.create(FolderStore(files), "Puppet CA: throw-away", ec, make, report=self.trail.append)
        self.authority = bootstrap.open_authority(FolderStore(files), given, report=self.trail.append)
        self.certificate, self.key = self.authority.certificate, self.authority.key

    @property
    def bundle(self) -> Path:
        return self.authority.store.files.cacert

    @property
    def crl(self) -> Path:
        return self.authority.store.files.cacrl

    def revoke(self, certificate: x509.Certificate) -> None:
        self.authority.revoke_serials([certificate.serial_number], by="a test")

    def issue(self, name: str, **options: Any) -> x509.Certificate:
        key = KeyKind("ec").generate()
        made = self.authority.issue(name, key.public_key(), by="a test", **options)
        self.certificate_of(name).write_bytes(certificates.pem(made))
        keys.save(self.key_of(name), key)
        return made

    def service(self, autosign: bool | Path = False) -> CaService:
        return CaService(self.authority, Autosign(autosign))


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What came back. `headers` by lower-case name."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode()


class RawClient:
    """A connection that sends bytes as given and reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float = 10.0) -> None:
        self.reader = reader
        self.writer = writer
        self.timeout = timeout

    @classmethod
    async def connect(cls, port: int, context: ssl.SSLContext, *, server: str = "puppet", timeout: float = 10.0) -> RawClient:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server)
        return cls(reader, writer, timeout)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> RawAnswer:
        """One request; header names are written with `_` for `-`. Accept defaults to */*, a length is added."""
        lines = {"Host": "puppet", "Accept": "*/*", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body or method in ("PUT", "POST"):
            lines.setdefault("Content-Length", str(len(body)))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
        await self.send(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
        return await self.answer(head=method == "HEAD")

    async def until_running(self, within: float = 30.0) -> None:
        """Return when the master says that all its services work; TimeoutError when it does not within so many seconds."""
        for _ in range(int(within / PAUSE)):
            if (await self.ask("GET", "/status/v1/simple")).status == 200:
                return
            await asyncio.sleep(PAUSE)
        raise TimeoutError(f"the master is not running after {within} s")

    async def answer(self, *, head: bool = False) -> RawAnswer:
        """The next answer; EOFError when the connection ended instead."""
        async with asyncio.timeout(self.timeout):
            try:
                raw = await self.reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as err:
                raise EOFError(err.partial) from err
            first, *rest = raw.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
            status = int(first.split(" ")[1])
            return RawAnswer(status, headers, b"" if head or status in (204, 304) or status < 200 else await self._body(headers))

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int((await self.reader.readuntil(b"\r\n")).strip(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readuntil(b"\r\n")
            return body
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        return await self.reader.read()

    async def ended(self, within: float = 60.0) -> bool:
        """Whether the server ends the connection within so many seconds; what still comes is dropped."""
        try:
            async with asyncio.timeout(within):
                while await self.reader.read(65536):
                    pass
        except TimeoutError:
            return False
        except (OSError, ssl.SSLError):
            return True
        return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(10):
                await self.writer.wait_closed()


@dataclass(slots=True)
class RunningMaster:
    """A server that listens, its CA, and clients of it. `port` on 127.0.0.1."""

    server: HttpServer
    ca: CaFolder
    port: int
    clients: list[RawClient] = field(default_factory=list)

    async def client(self, name: str | None = None, **options: Any) -> RawClient:
        """A new connection as `name` (a certificate is issued when there is none yet), or anonymous."""
        if name is not None and not self.ca.certificate_of(name).exists():
            self.ca.issue(name)
        made = await RawClient.connect(self.port, options.pop("context", None) or self.ca.context(name), **options)
        self.clients.append(made)
        return made


def master_server(**options: Any) -> HttpServer:
    """Return a server of the master's application; options as in MasterAppOptions and ServerOptions."""
    of_application, of_server = ({field.name for field in fields(kind)} for kind in (MasterAppOptions, ServerOptions))
    metrics = Metrics()
    options = {"handshake_hint": HANDSHAKE_HINT, "metrics": metrics.text, "on_answer": metrics.count_answer} | options
    assert options.keys() <= of_application | of_server
    application = MasterApp(MasterAppOptions(**{name: value for name, value in options.items() if name in of_application}))
    chosen = ServerOptions(**{name: value for name, value in options.items() if name in of_server})
    server = HttpServer(application, chosen, master_supervisor())
    describe_server(metrics, server, application.admission)
    return server


@asynccontextmanager
async def running(server: HttpServer, ca: CaFolder) -> AsyncIterator[RunningMaster]:
    """Start `server` on a free port of 127.0.0.1; stop it, and close the clients, at the end."""
    _, port = await server.start("127.0.0.1", 0)
    master = RunningMaster(server, ca, port)
    try:
        yield master
    finally:
        for client in master.clients:
            await client.close()
        await server.stop(1.0)
