"""A started master, a process of its own, and raw requests to it over TLS sockets: no client normalises what is sent."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from certs import csr, keys
from certs.files.bundles import dump
from certs.keys import KeyKind
from tests.support.processes import MasterProcess, master

CANARY = "canary-5f2c"
TIMEOUT = 10.0  # seconds for one answer; longer is a hang
OPEN = "path /\nauth any\nallow *\n"  # rules that let everybody do everything, so that requests reach what is behind them


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer; status 0: the connection was ended without one."""

    status: int
    body: bytes = b""


@dataclass
class Started:
    """The master, with a node of its own secrets (agent2) and files around it that nobody may see."""

    process: MasterProcess
    folder: Path
    kept: dict[str | None, ssl.SSLSocket] = field(default_factory=dict)

    def context(self, name: str | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.process.ca / "ca_crt.pem")
        if name is not None:
            context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context

    def enrol(self, name: str) -> None:
        key = KeyKind("ec").generate()
        keys.save(self.folder / f"{name}.key", key)
        body = dump([csr.build(key, name)])
        target = f"/puppet-ca/v1/certificate_request/{name}"
        assert self.ask("PUT", target, body, name=None, headers={"Content-Type": "text/plain"}).status == 200
        (self.folder / f"{name}.pem").write_bytes(self.ask("GET", f"/puppet-ca/v1/certificate/{name}", name=None).body)

    def connect(self, name: str | None) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.process.port), timeout=TIMEOUT)
        return self.context(name).wrap_socket(plain, server_hostname="localhost")

    def send(self, data: bytes, *, name: str | None = "agent1") -> Answered:
        """The first answer to these bytes, on a connection of their own. TimeoutError: a hang."""
        with self.connect(name) as tls:
            return _exchanged(tls, data, "GET")[0]

    def ask(
        self, method: str, target: str | bytes, body: bytes = b"", *, name: str | None = "agent1", headers: dict[str, str] | None = None
    ) -> Answered:
        """One request on a connection that is kept; the target is sent as it is."""
        lines = {"Host": "localhost", "Accept": "*/*", "Content-Length": str(len(body)), **(headers or {})}
        raw = target.encode("latin-1") if isinstance(target, str) else target
        head = "".join(f"{key}: {value}\r\n" for key, value in lines.items())
        data = b"%s %s HTTP/1.1\r\n%s\r\n" % (method.encode(), raw, head.encode("latin-1")) + body
        kept = self.kept.pop(name, None)
        tls = kept or self.connect(name)
        answer, stays = _exchanged(tls, data, method)
        if answer.status == 0 and kept is not None:  # it may have been ended before this was sent
            tls = self.connect(name)
            answer, stays = _exchanged(tls, data, method)
        if stays:
            self.kept[name] = tls
        return answer

    def close(self) -> None:
        for tls in self.kept.values():
            tls.close()

    def check_alive(self) -> None:
        assert self.ask("GET", "/status/v1/simple", name=None).status == 200
        assert self.ask("GET", "/puppet/v3/node/agent1?environment=production").status == 200


def _exchanged(tls: ssl.SSLSocket, data: bytes, method: str) -> tuple[Answered, bool]:
    """What is answered, and whether the connection may be used again; otherwise it is closed."""
    answer = http.client.HTTPResponse(tls, method=method)
    try:
        tls.sendall(data)
        answer.begin()
        found = Answered(answer.status, answer.read() + str(answer.headers).encode())
    except (http.client.HTTPException, ConnectionError, ssl.SSLError):
        found = Answered(0)
    finally:
        answer.close()
    stays = found.status != 0 and not answer.will_close
    if not stays:
        tls.close()
    return found, stays


@contextmanager
def started(root: Path, *, auth: str = "", **settings: str) -> Iterator[Started]:
    """The master in a folder of its own; `auth` is its auth.conf."""
    with master(root / "master", autosign="true", key_type="ec", **settings) as process:
        process.write(
            {
                "manifests/site.pp": f"node 'agent2' {{ notify {{ '{CANARY}': }} }}\nnode default {{ notify {{ 'own': }} }}\n",
                "modules/open/files/f": "open\n",
                "modules/open/manifests/init.pp": "class open { }\n",
                "secret.txt": f"{CANARY}\n",
            }
        )
        (process.root / "outside").write_text(CANARY)
        if auth:
            (process.root / "conf").mkdir(exist_ok=True)
            (process.root / "conf/auth.conf").write_text(auth)
        made = Started(process.start(), root)
        for name in ("agent1", "agent2"):
            made.enrol(name)
        facts = quote(quote(f'{{"name":"agent2","values":{{"secret":"{CANARY}"}}}}', safe=""))
        form = f"facts_format=application%2Fjson&facts={facts}".encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        own = made.ask("POST", "/puppet/v3/catalog/agent2?environment=production", form, name="agent2", headers=kind)
        assert own.status == 200 and CANARY.encode() in own.body  # so that its absence elsewhere means something
        try:
            yield made
        finally:
            made.close()
