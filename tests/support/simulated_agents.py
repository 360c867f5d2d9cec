"""
Agents that do everything of a run that a master sees, and nothing else: many of them fit into one process.

They speak scheme B as Puppet 7 does: a node, plugin and plugin facts metadata, a catalog for facts, metadata of the catalog's
sources, a report. 429 and 503 with Retry-After are obeyed; a kept connection is opened anew when the server has closed it meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from certs import certificates, csr, keys
from certs.files import bundles
from certs.keys import KeyKind
from tests.support.codings import ACCEPTED_BY_RUBY, decode
from tests.support.raw_master import RawAnswer, RawClient

TTL = 86_400  # seconds that certificates made here are valid
FIRST_SERIAL = 1_000_000_000  # far above those of the CA
RETRIES = 100  # as real agents
CATALOG = "application/vnd.puppet.rich+json, application/json"
JSON = "application/json"
FAILURES = (OSError, EOFError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError)


class RunFailed(Exception):
    """A run that came to no report."""


@dataclass(slots=True)
class Record:
    """What all agents met: seconds by kind of request, waits that the master asked for, errors, reports that it took."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    runs: list[float] = field(default_factory=list)
    waits: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    reconnected: int = 0
    reports: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by certname the UUIDs

    def lost(self, reportdir: Path) -> list[str]:
        """`certname uuid` of reports that the master took and did not store."""
        missing = []
        for name, sent in self.reports.items():
            stored = b"".join(path.read_bytes() for path in (reportdir / name).glob("*.yaml"))
            missing += [f"{name} {each}" for each in sent if each.encode() not in stored]
        return missing


@dataclass(frozen=True, slots=True)
class Server:
    """Where agents go; the CA may be elsewhere."""

    port: int
    ca_port: int
    name: str = "localhost"
    timeout: float = 600.0  # seconds for one answer


@dataclass(slots=True)
class SimulatedAgent:
    """
    One node. `folder` holds its key and certificate, `<certname>.key` and `.pem`, and `ca.pem`.

    Args:
        sources: how many files of the catalog are asked for.
        longest_wait: seconds; the most that Retry-After can ask for.
    """

    certname: str
    folder: Path
    server: Server
    record: Record
    facts: dict[str, Any] = field(default_factory=dict)
    sources: int = 4
    longest_wait: float = 1800.0
    _client: RawClient | None = None
    _context: ssl.SSLContext | None = None

    async def bootstrap(self) -> None:
        """From nothing to a certificate, which the CA must sign by itself."""
        anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE  # first contact
        client = await RawClient.connect(self.server.ca_port, anonymous, server=self.server.name, timeout=self.server.timeout)
        try:
            key = KeyKind("ec").generate()
            keys.save(self.folder / f"{self.certname}.key", key)
            ca = await self._of_ca(client, "GET", "certificate/ca")
            (self.folder / f"{self.certname}.ca").write_bytes(ca.body)
            await self._of_ca(client, "GET", "certificate_revocation_list/ca")
            request = bundles.dump([csr.build(key, self.certname)])
            await self._of_ca(client, "PUT", f"certificate_request/{self.certname}", request)
            signed = await self._of_ca(client, "GET", f"certificate/{self.certname}")
            (self.folder / f"{self.certname}.pem").write_bytes(signed.body)
        finally:
            await client.close()

    async def _of_ca(self, client: RawClient, method: str, path: str, body: bytes = b"") -> RawAnswer:
        began = time.monotonic()
        answer = await client.ask(method, f"/puppet-ca/v1/{path}", body, Accept="text/plain", Content_Type="text/plain" if body else "")
        self.record.seconds[f"{method} {path.partition('/')[0]}"].append(time.monotonic() - began)
        if answer.status != 200:
            raise RunFailed(f"{method} {path} was answered {answer.status}: {answer.body[:200]!r}")
        return answer

    async def run(self) -> None:
        """
        One run on one connection.

        Raises:
            RunFailed: an answer that ends the run. FAILURES: the connection.
        """
        began = time.monotonic()
        try:
            await self._run(str(uuid.uuid4()))
        finally:
            await self.close()
        self.record.runs.append(time.monotonic() - began)

    async def run_until_done(self, attempts: int, pause: float) -> None:
        """Runs until one succeeds; `pause` seconds, growing, between two, as a daemon's interval would be."""
        for attempt in range(1, attempts + 1):
            try:
                await self.run()
                return
            except (RunFailed, *FAILURES) as err:
                self.record.errors[_worded(err)] += 1
                if attempt == attempts:
                    raise RunFailed(f"{self.certname} did not get through in {attempts} runs: {_worded(err)}") from err
                await asyncio.sleep(pause * attempt)

    async def _run(self, number: str) -> None:
        environment = "environment=production"
        node = f"/puppet/v3/node/{self.certname}?{environment}&configured_environment=production&transaction_uuid={number}"
        await self._ask("node", "GET", node)
        listing = f"{environment}&recurse=true&links=follow&checksum_type=sha256&source_permissions=ignore&max_files=-1"
        for mount in ("pluginfacts", "plugins"):
            await self._ask(mount, "GET", f"/puppet/v3/file_metadatas/{mount}?{listing}")
        answer = await self._ask("catalog", "POST", f"/puppet/v3/catalog/{self.certname}?{environment}", self._asked(number), CATALOG)
        catalog = orjson.loads(answer.body)
        if catalog["name"] != self.certname:
            raise RunFailed(f"{self.certname} got the catalog of {catalog['name']}")
        for path in _sources(catalog)[: self.sources]:
            query = f"{environment}&links=manage&checksum_type=sha256&source_permissions=ignore"
            await self._ask("file_metadata", "GET", f"/puppet/v3/file_metadata/{path}?{query}")
        report = orjson.dumps(report_of(catalog, self.certname, number))
        await self._ask("report", "PUT", f"/puppet/v3/report/{self.certname}?{environment}", report, kind=JSON)
        self.record.reports[self.certname].append(number)

    def _asked(self, number: str) -> bytes:
        """The form of a catalog request; facts are escaped twice."""
        now = datetime.now(UTC).isoformat()
        facts = orjson.dumps({"name": self.certname, "values": self.facts | {"clientcert": self.certname}, "timestamp": now})
        fields = {
            "environment": "production",
            "facts_format": "application/json",
            "facts": quote(facts, safe=""),
            "transaction_uuid": number,
            "static_catalog": "true",
            "checksum_type": "sha256.sha384.sha512.sha224.md5",
        }
        return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items()).encode()

    async def _ask(
        self, what: str, method: str, target: str, body: bytes = b"", accept: str = JSON, kind: str = "application/x-www-form-urlencoded"
    ) -> RawAnswer:
        for _ in range(RETRIES):
            began = time.monotonic()
            answer = await self._exchanged(method, target, body, accept, kind if body else "")
            self.record.seconds[what].append(time.monotonic() - began)
            if answer.status == 200:
                return RawAnswer(200, answer.headers, decode(answer.body, answer.headers))
            wait = answer.headers.get("retry-after", "")
            if answer.status not in (429, 503) or not wait.isdigit():
                raise RunFailed(f"{what} was answered {answer.status}: {answer.body[:200]!r}")
            self.record.waits[what] += 1
            if answer.headers.get("connection") == "close":
                await self.close()
            await asyncio.sleep(min(float(wait), self.longest_wait))
        raise RunFailed(f"{what} was put off {RETRIES} times")

    async def _exchanged(self, method: str, target: str, body: bytes, accept: str, kind: str) -> RawAnswer:
        if self._client is not None and self._client.reader.at_eof():
            await self.close()
            self.record.reconnected += 1
        if self._client is None:
            began = time.monotonic()
            server = self.server
            self._client = await RawClient.connect(server.port, self.load(), server=server.name, timeout=server.timeout)
            self.record.seconds["connect"].append(time.monotonic() - began)
        answer = await self._client.ask(
            method,
            target,
            body,
            Host=f"{self.server.name}:{self.server.port}",
            Accept=accept,
            Accept_Encoding=ACCEPTED_BY_RUBY,
            Content_Type=kind,
            User_Agent="Puppet/7.23.0 Ruby/3.1.2-p20 (x86_64-linux-gnu)",
            X_Puppet_Version="7.23.0",
        )
        if answer.headers.get("connection") == "close":
            await self.close()
        return answer

    def load(self) -> ssl.SSLContext:
        """The agent's own side of TLS, read from disk once."""
        if self._context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(self.folder / "ca.pem")
            context.load_cert_chain(self.folder / f"{self.certname}.pem", self.folder / f"{self.certname}.key")
            self._context = context
        return self._context

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _worded(err: BaseException) -> str:
    return f"{type(err).__name__}: {err}"[:160]


def _sources(catalog: dict[str, Any]) -> list[str]:
    """The files below puppet:/// that a catalog names."""
    values = (each.get("parameters", {}).get("source") for each in catalog["resources"])
    return [value.removeprefix("puppet:///") for value in values if isinstance(value, str) and value.startswith("puppet:///")]


def report_of(catalog: dict[str, Any], certname: str, number: str) -> dict[str, Any]:
    """What Puppet 7 reports of a run of this catalog in which nothing changed."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "000+00:00")
    statuses = {}
    for each in catalog["resources"]:
        reference = f"{each['type']}[{each['title']}]"
        statuses[reference] = {
            "title": each["title"],
            "file": each.get("file"),
            "line": each.get("line"),
            "resource": reference,
            "resource_type": each["type"],
            "provider_used": "posix",
            "containment_path": ["Stage[main]", "Main", reference],
            "evaluation_time": 0.000314,
            "tags": each.get("tags", []),
            "time": now,
            "failed": False,
            "failed_to_restart": False,
            "changed": False,
            "out_of_sync": False,
            "skipped": False,
            "change_count": 0,
            "out_of_sync_count": 0,
            "events": [],
            "corrective_change": False,
        }
    return {
        "host": certname,
        "time": now,
        "configuration_version": catalog.get("version"),
        "transaction_uuid": number,
        "report_format": 12,
        "puppet_version": "7.23.0",
        "status": "unchanged",
        "transaction_completed": True,
        "noop": False,
        "noop_pending": False,
        "environment": "production",
        "logs": [{"level": "notice", "message": "Applied catalog in 0.31 seconds", "source": "Puppet", "tags": ["notice"], "time": now}],
        "metrics": {
            "resources": {"name": "resources", "label": "Resources", "values": [["total", "Total", len(statuses)]]},
            "changes": {"name": "changes", "label": "Changes", "values": [["total", "Total", 0]]},
            "events": {"name": "events", "label": "Events", "values": [["total", "Total", 0]]},
        },
        "resource_statuses": statuses,
        "corrective_change": False,
    }


def with_certificates(names: Sequence[str], folder: Path, ca: Path) -> None:
    """Keys and certificates for `names` into `folder`, signed with the key of the CA in the folder `ca`, past its inventory."""
    authority = bundles.certificate((ca / "ca_crt.pem").read_bytes())
    signing = keys.load(ca / "ca_key.pem")
    now = datetime.now(UTC)
    for serial, name in enumerate(names, FIRST_SERIAL):
        key = KeyKind("ec").generate()
        made = certificates.leaf(name, key.public_key(), issuer=authority, issuer_key=signing, serial=serial, ttl=TTL, now=now)
        keys.save(folder / f"{name}.key", key)
        (folder / f"{name}.pem").write_bytes(certificates.pem(made))
