"""A master as an OCSP responder, asked by `openssl ocsp` and through the indirection `ocsp` with its REST terminus."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from agent.servers.http import HttpClient
from agent.servers.server import DialectCache, Server
from agent.servers.sites import Site
from agent.servers.tls import Verifier
from shared.indirector import Binding
from shared.indirector.rest import Rest
from shared.models.ocsp import OCSP, key_of
from shared.settings import AgentSettings, Conf, load
from shared.wire.dialects import LEGACY, MODERN, Dialect
from tests.support import ocsp_client
from tests.support.processes import Done, MasterProcess, OurAgent, master

pytestmark = pytest.mark.slow

OPEN = "path /puppet-ca/v1/ocsp\nmethod find, save\nauth any\nallow *\n"
OPEN_A = "path /ocsp\nmethod find, save\nauth any\nallow *\n"


def enrolled(process: MasterProcess, name: str) -> OurAgent:
    agent = OurAgent(process.root.parent / name, process.port, name)
    agent.root.mkdir()
    ran = agent.test()
    assert agent.certificate.exists(), ran.text
    return agent


def openssl(process: MasterProcess, agent: OurAgent, *more: str) -> Done:
    """What `openssl ocsp` says of an agent's certificate; it verifies the answer, and cannot show a certificate itself."""
    authority = str(agent.ssl / "certs" / "ca.pem")
    url = f"https://localhost:{process.port}/puppet-ca/v1/ocsp"
    argv = ["openssl", "ocsp", *more, "-issuer", authority, "-CAfile", authority, "-cert", str(agent.certificate), "-url", url]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    return Done(done.returncode, (done.stdout + done.stderr).decode())


async def through_the_indirector(process: MasterProcess, asking: OurAgent, about: OurAgent, dialect: Dialect) -> ocsp_client.StatusResponse:
    """The same question as a find of the indirection: a binding, a terminus, the agent's own transport."""
    flags = {"confdir": str(asking.root / "confdir"), "server": "localhost", "masterport": process.port, "certname": asking.certname}
    settings = load(AgentSettings, section="agent", flags=flags, conf=Conf())
    verifier = Verifier(
        asking.ssl / "certs" / "ca.pem", asking.ssl / "crl.pem", "chain", lambda: datetime.now(UTC), asking.certificate, asking.key
    )
    certificate = x509.load_pem_x509_certificate(about.certificate.read_bytes())
    authority = x509.load_pem_x509_certificate((about.ssl / "certs" / "ca.pem").read_bytes())
    question = ocsp_client.build_request(certificate, authority, nonce=b"0123456789abcdef")
    async with HttpClient.of(settings, verifier) as client:
        transport = Server(Site("localhost", process.port), client, DialectCache(fixed=dialect), lambda: "production")
        found = await Binding(OCSP, Rest(OCSP, transport, prefix="puppet-ca")).find(key_of(question))
    assert found is not None
    return ocsp_client.verify_response(
        found.content, certificate=certificate, issuer=authority, now=datetime.now(UTC), nonce=b"0123456789abcdef"
    )


async def test_a_certificate_is_good_until_it_is_revoked(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true", key_type="ec") as process:
        process.write({"manifests/site.pp": ""})
        (process.root / "conf" / "auth.conf").write_text(OPEN + OPEN_A)
        process.start()
        asking = await asyncio.to_thread(enrolled, process, "asking.test")
        about = await asyncio.to_thread(enrolled, process, "about.test")

        for more in ((), ("-no_nonce",), ("-sha256",)):
            good = await asyncio.to_thread(openssl, process, about, *more)
            assert good.code == 0, good.text + process.log
            assert "Response verify OK" in good
            assert f"{about.certificate}: good" in good
        for dialect in (MODERN, LEGACY):
            assert (await through_the_indirector(process, asking, about, dialect)).status == "good"

        revoked = await asyncio.to_thread(process.puppet, "cert", "revoke", about.certname)
        assert revoked.code == 0, revoked.text
        bad = await asyncio.to_thread(openssl, process, about)
        assert f"{about.certificate}: revoked" in bad, bad.text
        assert "Response verify OK" in bad
        for dialect in (MODERN, LEGACY):
            answer = await through_the_indirector(process, asking, about, dialect)
            assert answer.status == "revoked"
            assert answer.revoked_at is not None
        assert (await through_the_indirector(process, asking, asking, MODERN)).status == "good"


def test_strangers_cost_the_ca_no_signatures_unless_the_site_opens_the_door(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true", key_type="ec") as process:
        process.write({"manifests/site.pp": ""})
        process.start()
        agent = enrolled(process, "agent1.test")
        refused = openssl(process, agent)
        assert refused.code != 0
        assert ": good" not in refused
        process.until_logged("403")
