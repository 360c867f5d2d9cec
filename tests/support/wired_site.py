"""A whole master for tests to attack: its own termini, CA and compiler behind the rules, listening in this process."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from certs import csr, keys
from certs.files.bundles import dump
from certs.keys import KeyKind
from master.wiring import Master, running
from shared.settings import MasterSettings, load
from tests.support.raw_master import RawAnswer, RawClient

V3 = "/puppet/v3"
ENV = "?environment=production"
FORM = "application/x-www-form-urlencoded"
CANARY = "canary-5f2c"


@dataclass(slots=True)
class WiredSite:
    """A whole master in a folder, and agents that have enrolled with it."""

    root: Path
    settings: MasterSettings
    master: Master
    open: list[RawClient] = field(default_factory=list)

    async def client(self, name: str | None = None) -> RawClient:
        """A connection as `name`, which is enrolled first when it must be; anonymous without one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.settings.cadir / "ca_crt.pem")
        if name is not None:
            certificate, key = self.root / f"{name}.pem", self.root / f"{name}.key"
            if not certificate.exists():
                await self.enrol(name)
            context.load_cert_chain(certificate, key)
        made = await RawClient.connect(self.master.port, context, server="localhost")
        self.open.append(made)
        return made

    async def enrol(self, name: str) -> None:
        key = KeyKind("ec").generate()
        stranger = await self.client()
        request = dump([csr.build(key, name)])
        assert (await stranger.ask("PUT", f"/puppet-ca/v1/certificate_request/{name}", request, Content_Type="text/plain")).status == 200
        keys.save(self.root / f"{name}.key", key)
        (self.root / f"{name}.pem").write_bytes((await stranger.ask("GET", f"/puppet-ca/v1/certificate/{name}")).body)

    async def catalog(
        self,
        client: RawClient,
        name: str,
        facts: dict[str, object],
        *,
        named: str = "",
        environment: str = "production",
        accept_encoding: str = "",
    ) -> RawAnswer:
        document = json.dumps({"name": named or name, "values": facts})
        body = f"facts_format=application%2Fjson&facts={quote_plus(quote(document, safe=''))}".encode()
        headers = {"Accept_Encoding": accept_encoding} if accept_encoding else {}
        return await client.ask("POST", f"{V3}/catalog/{name}?environment={environment}", body, Content_Type=FORM, **headers)

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the CA and of the stores, by path."""
        roots = [self.settings.cadir, self.settings.vardir]
        return {str(p): p.read_bytes() for root in roots for p in root.rglob("*") if p.is_file() and "code_cache" not in p.parts}


@pytest.fixture
async def wired(tmp_path: Path) -> AsyncIterator[WiredSite]:
    async with wired_site(tmp_path) as made:
        yield made


@asynccontextmanager
async def wired_site(tmp_path: Path, **more: str) -> AsyncIterator[WiredSite]:
    """A whole master in a folder; `more` are settings of it."""
    environments = tmp_path / "conf" / "code" / "environments"
    for name, text in {
        "production/manifests/site.pp": """
            node 'agent2' { notify { 'canary-5f2c': } }
            node default { notify { "${trusted['certname']} ${facts['colour']}": } if $facts['role'] { include $facts['role'] } }
        """,
        "production/modules/open/files/a..b": "dots\n",
        "production/modules/open/manifests/init.pp": "class open { notify { 'opened': } }",
        "secret/manifests/site.pp": f"notify {{ '{CANARY}': }}",
        "secret/modules/hidden/lib/facter/x.py": f"# {CANARY}\n",
        "secret/modules/hidden/files/x": CANARY,
    }.items():
        (environments / name).parent.mkdir(parents=True, exist_ok=True)
        (environments / name).write_text(text)
    (tmp_path / "outside").write_text(CANARY)
    classifier = tmp_path / "enc"
    classifier.write_text("#!/bin/sh\nprintf 'environment: production\\nclasses: []\\n'\n")
    classifier.chmod(0o755)
    flags = {
        "confdir": str(tmp_path / "conf"), "vardir": str(tmp_path / "var"), "rundir": str(tmp_path / "run"),
        "logdir": str(tmp_path / "log"),
        "certname": "localhost", "autosign": "true", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0",
        "node_terminus": "exec", "external_nodes": str(classifier), "compile_workers": "1",
        "node_cache_terminus": "write_only_yaml", **more,
    }  # fmt: skip
    settings = load(MasterSettings, section="master", flags=flags)
    async with running(settings) as master:
        made = WiredSite(tmp_path, settings, master)
        try:
            yield made
        finally:
            for client in made.open:
                await client.close()
