"""The TLS rows of the attack table, with asyncio's loop and with uvloop."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs import certificates, keys
from certs.keys import KeyKind
from httpd.peers import ProxyRules
from shared.errors import ConfigError
from tests.support.raw_master import CaFolder, RawClient, RunningMaster
from tests.support.waiting import until

Start = Any
NODE = "/puppet/v3/node/agent1?environment=production"


async def refused(master: RunningMaster, context: ssl.SSLContext) -> bool:
    """Whether the server ends the connection without answering; TLS 1.3 tells a client only when it reads."""
    try:
        client = await RawClient.connect(master.port, context, timeout=5)
    except (OSError, ssl.SSLError):
        return True
    try:
        await client.ask("GET", NODE)
    except (EOFError, OSError, ssl.SSLError):
        return True
    finally:
        await client.close()
    return False


async def test_TLS_01_a_revoked_certificate_is_refused_within_a_second(start: Start, ca: CaFolder) -> None:
    async with start({"trust_poll_interval": 0.05}) as master:
        agent1 = x509.load_pem_x509_certificate(ca.certificate_of("agent1").read_bytes())
        assert not await refused(master, ca.context("agent1"))
        before = master.server.tls.trust
        ca.revoke(agent1)
        await until(lambda: master.server.tls.trust is not before)
        assert await refused(master, ca.context("agent1"))
        assert not await refused(master, ca.context("agent2"))
        assert master.server.listener.refused["certificate revoked"] == 1


async def test_TLS_01_a_refused_peer_is_told_the_reason(start: Start, ca: CaFolder) -> None:
    async with start() as master:
        ca.revoke(x509.load_pem_x509_certificate(ca.certificate_of("agent1").read_bytes()))
        await master.server.tls.reload()
        client = await RawClient.connect(master.port, ca.context("agent1"), timeout=5)
        with pytest.raises(ssl.SSLError, match="alert certificate revoked"):
            await client.ask("GET", NODE)
        await client.close()


async def test_TLS_02_revocation_ends_a_live_connection(start: Start, ca: CaFolder) -> None:
    async with start() as master:
        client = await master.client("agent1")
        assert (await client.ask("GET", NODE)).status == 200
        ca.revoke(x509.load_pem_x509_certificate(ca.certificate_of("agent1").read_bytes()))
        await master.server.tls.reload()
        answer = await client.ask("GET", NODE)
        assert answer.status == 403
        assert "revoked" in answer.text
        assert await client.ended()


async def test_TLS_02_an_ended_certificate_ends_a_live_connection(start: Start, ca: CaFolder) -> None:
    later = ca.now
    async with start(now=lambda: later) as master:
        client = await master.client("agent1")
        assert (await client.ask("GET", NODE)).status == 200
        later = ca.now + timedelta(days=400)
        assert (await client.ask("GET", NODE)).status == 403
        assert await client.ended()


async def test_TLS_03_expired_future_and_foreign_certificates_are_refused(start: Start, ca: CaFolder, tmp_path: Path) -> None:
    other = CaFolder(tmp_path / "other")  # the same subject, another key
    other.issue("agent1")
    ca.issue("ended", now=ca.now - timedelta(days=10), ttl=86400)
    ca.issue("early", now=ca.now + timedelta(days=10))
    async with start() as master:
        for context in (foreign(other, ca, "agent1"), ca.context("ended"), ca.context("early")):
            assert await refused(master, context)
        assert sum(master.server.listener.refused.values()) == 3
        assert not await refused(master, ca.context("agent1"))


def foreign(other: CaFolder, ca: CaFolder, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca.bundle)
    context.load_cert_chain(other.certificate_of(name), other.key_of(name))
    return context


async def test_TLS_04_only_our_ca_is_trusted(start: Start) -> None:
    async with start() as master:
        assert [each["subject"] for each in master.server.tls.context.get_ca_certs()] == [((("commonName", "Puppet CA: throw-away"),),)]


async def test_TLS_05_an_agents_certificate_issues_nothing(start: Start, ca: CaFolder, tmp_path: Path) -> None:
    issuer = x509.load_pem_x509_certificate(ca.certificate_of("agent1").read_bytes())
    key = KeyKind("ec").generate()
    forged = certificates.leaf(
        "agent2", key.public_key(), issuer=issuer, issuer_key=keys.load(ca.key_of("agent1")), serial=99, ttl=86400, now=ca.now
    )
    chain = tmp_path / "chain.pem"
    chain.write_bytes(forged.public_bytes(Encoding.PEM) + issuer.public_bytes(Encoding.PEM))
    keys.save(tmp_path / "chain.key", key)
    context = ca.context()
    context.load_cert_chain(chain, tmp_path / "chain.key")
    async with start() as master:
        assert await refused(master, context)


@pytest.mark.parametrize(("version", "works"), [("TLSv1", False), ("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_TLS_06_old_versions_are_refused(start: Start, ca: CaFolder, version: str, works: bool) -> None:
    context = ca.context("agent1")
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    async with start() as master:
        assert await refused(master, context) is not works


@pytest.mark.parametrize("ciphers", ["aNULL:@SECLEVEL=0", "eNULL:@SECLEVEL=0", "AES128-SHA", "ADH-AES128-SHA256:@SECLEVEL=0"])
async def test_TLS_06_weak_suites_are_refused(start: Start, ca: CaFolder, ciphers: str) -> None:
    context = ca.context("agent1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    async with start() as master:
        assert await refused(master, context)


NOT_TLS = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "1 MB": bytes(range(256)) * 4096,
    "long record": b"\x16\x03\x01\xff\xff" + b"x" * 100,
}


@pytest.mark.parametrize("data", NOT_TLS.values(), ids=NOT_TLS.keys())
async def test_TLS_07_what_is_not_tls_is_closed_at_once(start: Start, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with start({"handshake_timeout": 1.0}) as master:
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", master.port)
            try:
                async with asyncio.timeout(60):
                    writer.write(data)
                    while await reader.read(4096):
                        pass
            except ConnectionError:
                pass
            writer.close()
        await until(lambda: sum(master.server.listener.refused.values()) == 5)
        assert all(record.exc_info is None for record in caplog.records)
        assert len([record for record in caplog.records if "Refused a TLS handshake" in record.message]) <= 2
        assert not await refused(master, master.ca.context("agent1"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_TLS_08_renegotiation_is_refused(start: Start, ca: CaFolder) -> None:
    async with start() as master:
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{master.port}", "-tls1_2", "-CAfile", str(ca.bundle)]
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        async with asyncio.timeout(60):
            output, _ = await process.communicate(b"R\n")
        assert re.search(rb"no renegotiation|RENEGOTIATING\n.*error", output, re.S | re.I), output[-500:]


@pytest.mark.slow
async def test_TLS_09_connections_that_say_nothing_do_not_stop_an_agent(start: Start, ca: CaFolder) -> None:
    async with start({"handshake_timeout": 1.5, "max_handshakes": 100, "max_connections": 150}) as master:
        silent = []
        for number in range(400):
            plain = socket.socket()
            plain.setblocking(False)
            await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", master.port))
            if number % 2:
                await asyncio.get_running_loop().sock_sendall(plain, b"\x16")
            silent.append(plain)
        assert not await refused(master, ca.context("agent1"))
        await until(lambda: master.server.listener.open_count == 0)
        for plain in silent:
            plain.close()


def identity_headers(name: str, pem: bytes = b"") -> dict[str, str]:
    return {"X_Client_DN": f"CN={name}", "X_Client_Verify": "SUCCESS"} | ({"X_Client_Cert": quote(pem.decode(), safe="")} if pem else {})


@pytest.mark.parametrize(
    "lines",
    [
        b"X-Client-DN: CN=agent2\r\nX-Client-Verify: SUCCESS\r\n",
        b"X_CLIENT_DN: CN=agent2\r\nX_Client_Verify: SUCCESS\r\n",
        b"x-ssl-client-dn: CN=agent2\r\nX-SSL-Client-Verify: SUCCESS\r\n",
        b"SSL_CLIENT_S_DN: CN=agent2\r\nSSL_CLIENT_VERIFY: SUCCESS\r\n",
        b"X-Client-DN: CN=agent2\r\nX-Client-DN: CN=agent2\r\nX-Client-Verify: SUCCESS\r\nX-Client-Verify: SUCCESS\r\n",
    ],
)
async def test_TLS_10_identity_headers_are_ignored_and_said(start: Start, caplog: pytest.LogCaptureFixture, lines: bytes) -> None:
    async with start() as master:
        for name, status in ((None, 403), ("agent1", 403)):
            client = await master.client(name)
            await client.send(b"GET /puppet/v3/node/agent2?environment=production HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n" + lines + b"\r\n")
            assert (await client.answer()).status == status
    assert "is not a configured proxy" in caplog.text


def proxied(address: str = "127.0.0.1") -> ProxyRules:
    return ProxyRules.of(switched_on=True, addresses=[address], dn="HTTP_X_CLIENT_DN", verify="HTTP_X_CLIENT_VERIFY")


async def test_TLS_11_a_configured_proxy_speaks_for_a_verified_certificate(start: Start, ca: CaFolder) -> None:
    pem = ca.certificate_of("agent2").read_bytes()
    async with start(proxy=proxied()) as master:
        proxy = await master.client("agent1")
        ask = "/puppet/v3/node/agent2?environment=production"
        assert (await proxy.ask("GET", ask, **identity_headers("agent2", pem))).status == 200
        assert (await proxy.ask("GET", NODE, **identity_headers("agent2", pem))).status == 403
        assert (await proxy.ask("GET", ask, X_Client_Verify="NONE")).status == 403


@pytest.mark.parametrize("dn", ["CN=a/CN=agent2", "CN=agent2\\,CN=a", "O=x+CN=agent2", "CN=agent1", "/CN=agent2/CN=agent2"])
async def test_TLS_11_a_dn_that_is_not_the_certificates_is_refused(start: Start, ca: CaFolder, dn: str) -> None:
    pem = ca.certificate_of("agent2").read_bytes()
    async with start(proxy=proxied()) as master:
        proxy = await master.client("agent1")
        headers = identity_headers("agent2", pem) | {"X_Client_DN": dn}
        assert (await proxy.ask("GET", "/puppet/v3/node/agent2?environment=production", **headers)).status == 403


async def test_TLS_11_only_the_proxy_and_only_good_certificates(start: Start, ca: CaFolder, tmp_path: Path) -> None:
    ask = "/puppet/v3/node/agent2?environment=production"
    good = ca.certificate_of("agent2").read_bytes()
    async with start(proxy=proxied("192.0.2.1")) as master:
        client = await master.client("agent1")
        assert (await client.ask("GET", ask, **identity_headers("agent2", good))).status == 403
    other = CaFolder(tmp_path / "other")
    other.issue("agent2")
    ca.revoke(x509.load_pem_x509_certificate(good))
    async with start(proxy=proxied()) as master:
        for pem in (good, other.certificate_of("agent2").read_bytes(), b"x", b""):
            client = await master.client("agent1")
            assert (await client.ask("GET", ask, **identity_headers("agent2", pem))).status == 403


async def test_fact_3_an_ended_crl_is_an_error_and_is_signed_anew(start: Start, ca: CaFolder, caplog: pytest.LogCaptureFixture) -> None:
    ca.write_crl(now=ca.now - timedelta(days=10), lifetime=timedelta(days=1))

    async def sign_anew() -> None:
        ca.write_crl()

    async with start({"trust_poll_interval": 0.05}, on_crl_expired=sign_anew) as master:
        assert "every agent's certificate is refused" in caplog.text
        end = master.server.tls.trust.next_update
        await until(lambda: master.server.tls.trust.next_update != end)
        assert not await refused(master, ca.context("agent1"))


async def test_without_a_crl_there_is_no_start(start: Start, ca: CaFolder) -> None:
    ca.crl.unlink()
    with pytest.raises(ConfigError, match="Could not read the CRL"):
        async with start():
            pass


async def test_R_24_a_broken_reload_leaves_the_old_state(start: Start, ca: CaFolder, caplog: pytest.LogCaptureFixture) -> None:
    async with start({"trust_poll_interval": 0.02}) as master:
        live = await master.client("agent1")
        before = ca.certificate_of("puppet").read_bytes()
        ca.certificate_of("puppet").write_bytes(b"nonsense")
        await until(lambda: "the old ones stay in force" in caplog.text)
        assert (await live.ask("GET", NODE)).status == 200
        assert not await refused(master, ca.context("agent2"))
        trust = master.server.tls.trust
        ca.certificate_of("puppet").write_bytes(before)
        await until(lambda: master.server.tls.trust is not trust)
        assert (await live.ask("GET", NODE)).status == 200


async def test_a_new_server_certificate_is_shown_without_a_restart(start: Start, ca: CaFolder) -> None:
    async with start({"trust_poll_interval": 0.02}) as master:
        trust = master.server.tls.trust
        ca.issue("puppet")
        await until(lambda: master.server.tls.trust is not trust)
        client = await master.client("agent1")
        shown = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert shown == ssl.PEM_cert_to_DER_cert(ca.certificate_of("puppet").read_text())


async def test_a_revocation_counts_although_another_file_is_broken(start: Start, ca: CaFolder) -> None:
    async with start() as master:
        client = await master.client("agent1")
        assert (await client.ask("GET", NODE)).status == 200
        ca.certificate_of("puppet").write_bytes(b"nonsense")
        ca.revoke(x509.load_pem_x509_certificate(ca.certificate_of("agent1").read_bytes()))
        with pytest.raises(ConfigError):
            await master.server.tls.reload()
        assert (await client.ask("GET", NODE)).status == 403


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_TLS_02_a_resumed_session_does_not_outlive_the_revocation(start: Start, ca: CaFolder, version: str) -> None:
    context = ca.context("agent1")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]

    def ask(port: int, session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None, bool]:
        plain = socket.create_connection(("127.0.0.1", port), timeout=5)
        with plain, context.wrap_socket(plain, server_hostname="puppet", session=session) as tls:
            tls.sendall(f"GET {NODE} HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := tls.recv(4096):
                answer += piece
            return answer, tls.session, bool(tls.session_reused)

    async with start() as master:
        answer, session, _ = await asyncio.to_thread(ask, master.port, None)
        assert answer.startswith(b"HTTP/1.1 200")
        assert session is None or not session.has_ticket
        again, session, _ = await asyncio.to_thread(ask, master.port, session)
        assert again.startswith(b"HTTP/1.1 200")
        # Only the list of what is revoked changes, as it would between the CA's word and the next context.
        ca.revoke(x509.load_pem_x509_certificate(ca.certificate_of("agent1").read_bytes()))
        ca.certificate_of("puppet").write_bytes(b"nonsense")
        with pytest.raises(ConfigError):
            await master.server.tls.reload()
        answer, _, _ = await asyncio.to_thread(ask, master.port, session)
        assert answer.startswith(b"HTTP/1.1 403")


async def test_a_port_that_is_taken_is_named(start: Start) -> None:
    async with start() as master, start() as other:
        with pytest.raises(ConfigError, match=f"Could not listen on 127.0.0.1 port {master.port}: Address already in use"):
            await other.server.listener.start("127.0.0.1", master.port)
