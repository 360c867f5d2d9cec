"""The rows of whom the agent trusts: masters, CA certificates, CRLs and its own certificate."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.bootstrap import Bootstrap, BootstrapOptions
from agent.servers.http import HttpClient
from agent.servers.server import DialectCache
from agent.servers.sites import HttpLimits, Site
from agent.servers.tls import Verifier
from certs import fingerprints
from certs.files import bundles
from certs.files.ssldir import SslDir
from certs.keys import KeyKind
from shared.errors import BadData, PeerAnswered, PeerError, PeerNotTrusted, PuppetError, TooLarge
from shared.wire.dialects import MODERN
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.scripted_master import NAME
from tests.support.throwaway_ca import ThrowAwayCa, server_context


@pytest.fixture(scope="module")
def ca() -> ThrowAwayCa:
    return ThrowAwayCa.new()


def verifier(layout: SslDir, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Verifier:
    return Verifier(layout.localcacert, layout.hostcrl, "chain", now, layout.hostcert, layout.hostprivkey)


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# --- TLS


def presented(ca: ThrowAwayCa, root: Path, kind: str) -> Any:
    """A server context whose certificate is wrong in one way."""
    if kind == "expired":
        return ca.serving(root, "localhost", ttl=60, now=datetime.now(UTC) - timedelta(days=30))
    if kind == "wrong host":
        return ca.serving(root, "elsewhere.test")
    if kind == "names for others":
        return ca.serving(root, "other.test", names=("other.test", "another.test"))
    if kind == "an agent's":
        return ca.serving(root, "agent2.test", names=())
    if kind == "self-signed":
        return ThrowAwayCa.new("localhost").serving(root, "localhost")
    stranger = ThrowAwayCa.new()  # the same name, another key
    return stranger.serving(root, "localhost")


@pytest.mark.parametrize("kind", ["wrong host", "names for others", "another CA's", "self-signed", "expired", "an agent's"])
async def test_TLS_12_TLS_13_a_master_that_is_not_ours_gets_not_one_byte(ca: ThrowAwayCa, tmp_path: Path, kind: str) -> None:
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    before = snapshot(tmp_path / "ssl")
    master = FakeMaster(presented(ca, tmp_path, kind), lambda ask: Reply())
    async with master.running(), HttpClient(verifier(layout)) as client:
        with pytest.raises(PeerNotTrusted) as caught:
            await client.request(Site("localhost", master.port), "GET", "/puppet/v3/node/x", {})
    assert master.asked == []
    assert snapshot(tmp_path / "ssl") == before
    expected = {
        "wrong host": "Server hostname 'localhost' did not match server certificate; expected elsewhere.test",
        "names for others": "expected one of another.test, other.test",
        "another CA's": "Invalid signature for certificate",
        "self-signed": "The issuer 'CN=localhost' of certificate",
        "expired": "has expired, verify time is synchronized",
        "an agent's": "expected agent2.test",
    }
    assert expected[kind] in str(caught.value)
    assert caught.value.hint


async def test_TLS_12_a_revoked_master_gets_not_one_byte(ca: ThrowAwayCa, tmp_path: Path) -> None:
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    own = ThrowAwayCa(ca.key, ca.certificate, serial=5000)
    key = KeyKind("ec").generate()
    certificate = own.sign("localhost", key.public_key(), names=("localhost",))
    own.revoked.append(certificate.serial_number)
    layout.save_crls(own.crl_pem())
    master = FakeMaster(server_context(tmp_path, key, certificate, ca.pem), lambda ask: Reply())
    async with master.running(), HttpClient(verifier(layout)) as client:
        with pytest.raises(PeerNotTrusted, match="Certificate 'CN=localhost' is revoked"):
            await client.request(Site("localhost", master.port), "GET", "/x", {})
    assert master.asked == []


async def test_a_master_that_does_not_take_our_certificate_is_told_from_one_that_is_lost(ca: ThrowAwayCa, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    stranger = ThrowAwayCa.new("Another CA").ssldir(tmp_path / "a" / "ssl", NAME)
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    trust = Verifier(layout.localcacert, layout.hostcrl, "chain", lambda: datetime.now(UTC), stranger.hostcert, stranger.hostprivkey)
    master = FakeMaster(ca.serving(tmp_path), lambda ask: Reply())
    async with master.running(), HttpClient(trust) as client:
        with pytest.raises(PeerNotTrusted, match=r"our certificate|unknown ca") as caught:
            await client.request(Site("localhost", master.port), "GET", "/x", {})
    assert "CA" in caught.value.hint
    assert master.asked == []


def bootstrapping(root: Path, master: FakeMaster, **options: Any) -> Bootstrap:
    return Bootstrap(
        SslDir.at(root, NAME),
        Site("localhost", master.port),
        BootstrapOptions(key=KeyKind("ec"), waitforcert=0, **options),
        HttpClient,
        DialectCache(fixed=MODERN),
        now=lambda: datetime.now(UTC),
        tell=lambda text: None,
    )


def ca_master(ca: ThrowAwayCa, root: Path, crl: bytes | None = None, body: bytes | None = None) -> FakeMaster:
    """A CA that shows its certificate and CRL and signs nothing."""

    def answer(ask: Ask) -> Reply:
        if ask.path.endswith("/certificate/ca"):
            return Reply(body=ca.pem if body is None else body)
        if "certificate_revocation_list" in ask.path:
            return Reply(body=ca.crl_pem() if crl is None else crl)
        return Reply() if ask.method == "PUT" else Reply(404)

    return FakeMaster(ca.serving(root), answer)


async def test_TLS_14_a_pinned_fingerprint_keeps_a_false_ca_out(tmp_path: Path) -> None:
    real, false = ThrowAwayCa.new(), ThrowAwayCa.new()
    master = ca_master(false, tmp_path)
    async with master.running():
        with pytest.raises(PeerNotTrusted, match="did not match expected digest"):
            await bootstrapping(tmp_path / "ssl", master, ca_fingerprint=fingerprints.of_bundle(real.pem)).run()
    assert not (tmp_path / "ssl" / "certs" / "ca.pem").exists()
    assert [ask.path for ask in master.asked] == ["/puppet-ca/v1/certificate/ca"]


@pytest.mark.parametrize("pin", [lambda ca: fingerprints.of_bundle(ca.pem), lambda ca: fingerprints.fingerprint(ca.certificate).lower()])
async def test_TLS_14_the_right_fingerprint_lets_the_ca_in(tmp_path: Path, pin: Callable[[ThrowAwayCa], str]) -> None:
    real = ThrowAwayCa.new()
    master = ca_master(real, tmp_path)
    async with master.running():
        with pytest.raises(PuppetError, match="waitforcert"):
            await bootstrapping(tmp_path / "ssl", master, ca_fingerprint=pin(real)).run()
    assert (tmp_path / "ssl" / "certs" / "ca.pem").read_bytes() == real.pem


async def test_TLS_14_without_a_pin_the_first_ca_is_shown_and_a_second_one_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = ThrowAwayCa.new(), ThrowAwayCa.new()
    master = ca_master(first, tmp_path)
    async with master.running():
        with pytest.raises(PuppetError, match="waitforcert"):
            await bootstrapping(tmp_path / "ssl", master).run()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert fingerprints.fingerprint(first.certificate) in warnings[0]
    false = ca_master(second, tmp_path)
    async with false.running():
        with pytest.raises(PeerNotTrusted):
            await bootstrapping(tmp_path / "ssl", false).run()
    assert (tmp_path / "ssl" / "certs" / "ca.pem").read_bytes() == first.pem
    assert false.asked == []


@pytest.mark.parametrize("kind", ["another key", "another CA", "cut off", "html"])
async def test_TLS_15_AG_17_a_crl_that_our_ca_did_not_make_is_not_kept(tmp_path: Path, kind: str) -> None:
    real = ThrowAwayCa.new()
    crl = {
        "another key": ThrowAwayCa.new().crl_pem(),
        "another CA": ThrowAwayCa.new("Other CA").crl_pem(),
        "cut off": real.crl_pem()[:-20],
        "html": b"<html>no such page</html>",
    }[kind]
    master = ca_master(real, tmp_path, crl)
    async with master.running():
        with pytest.raises(PeerNotTrusted, match="Could not download CRLs"):
            await bootstrapping(tmp_path / "ssl", master).run()
    assert not (tmp_path / "ssl" / "crl.pem").exists()


async def test_TLS_15_a_refresh_keeps_the_old_files_when_what_comes_is_wrong(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    real, false = ThrowAwayCa.new(), ThrowAwayCa.new()
    layout = real.ssldir(tmp_path / "ssl", NAME)
    before = snapshot(tmp_path / "ssl")
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for path in (layout.localcacert, layout.hostcrl):
        os.utime(path, (old, old))
    master = ca_master(real, tmp_path, crl=false.crl_pem(), body=false.pem)
    async with master.running():
        await bootstrapping(tmp_path / "ssl", master, ca_refresh=86400, crl_refresh=86400).run()
    assert [ask.path for ask in master.asked] == ["/puppet-ca/v1/certificate/ca", "/puppet-ca/v1/certificate_revocation_list/ca"]
    after = snapshot(tmp_path / "ssl")
    after.pop("ssl.lock", None)
    assert after == before
    assert caplog.text.count("keeping the old one") == 2


async def test_TLS_15_an_older_crl_does_not_replace_a_newer_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    real = ThrowAwayCa.new()
    older = real.crl_pem()
    layout = real.ssldir(tmp_path / "ssl", NAME)
    real.revoked.append(4711)
    layout.save_crls(real.crl_pem())
    os.utime(layout.hostcrl, (1, 1))
    newer = layout.hostcrl.read_bytes()
    master = ca_master(real, tmp_path, crl=older)
    async with master.running():
        await bootstrapping(tmp_path / "ssl", master, crl_refresh=86400).run()
    assert layout.hostcrl.read_bytes() == newer
    assert "is refused" in caplog.text


async def test_TLS_15_no_refresh_over_a_connection_that_does_not_verify(tmp_path: Path) -> None:
    real, false = ThrowAwayCa.new(), ThrowAwayCa.new()
    layout = real.ssldir(tmp_path / "ssl", NAME)
    os.utime(layout.hostcrl, (1, 1))
    master = ca_master(false, tmp_path)
    async with master.running():
        await bootstrapping(tmp_path / "ssl", master, crl_refresh=86400).run()
    assert master.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "https://127.0.0.1:{port}/x",
        "https://localhost:{other}/x",
        "http://localhost:{port}/x",
        "file:///etc/passwd",
        "//evil.test/x",
        "https://u@localhost:{port}/x",
    ],
)
async def test_TLS_16_no_redirect_leads_to_another_server(ca: ThrowAwayCa, tmp_path: Path, status: int, location: str) -> None:
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    master = FakeMaster(ca.serving(tmp_path), lambda ask: Reply(status, headers={"Location": target}))
    async with master.running(), HttpClient(verifier(layout)) as client:
        target = location.format(port=master.port, other=master.port + 1)
        with pytest.raises(PeerAnswered, match="not followed"):
            await client.request(Site("localhost", master.port), "PUT", "/puppet/v3/report/x", {}, b"secret")
    assert len(master.asked) == 1


async def test_AG_07_neither_proxy_variables_nor_netrc_are_used(ca: ThrowAwayCa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login u password p\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    layout = ca.ssldir(tmp_path / "ssl", NAME)
    master = FakeMaster(ca.serving(tmp_path), lambda ask: Reply())
    async with master.running(), HttpClient(verifier(layout)) as client:
        answer = await client.request(Site("localhost", master.port), "GET", "/x", {})
        assert answer.status == 200
    assert "authorization" not in master.asked[0].headers


@pytest.mark.parametrize("kind", ["html", "cut off", "no authority", "10,000", "empty", "large"])
async def test_AG_17_a_ca_certificate_that_cannot_be_one_is_not_kept(tmp_path: Path, kind: str) -> None:
    real = ThrowAwayCa.new()
    leaf = bundles.dump([real.sign("x", KeyKind("ec").generate().public_key())])
    body = {
        "html": b"<html>-----BEGIN</html>",
        "cut off": real.pem[:-30],
        "no authority": leaf,
        "10,000": real.pem * 10_000,
        "empty": b"",
        "large": b"x" * 5_000_000,
    }[kind]
    master = ca_master(real, tmp_path, body=body)

    def connect(trust: Verifier | None) -> HttpClient:
        return HttpClient(trust, limits=HttpLimits(body=2_000_000))

    bootstrap = bootstrapping(tmp_path / "ssl", master)
    bootstrap._connect = connect
    async with master.running():
        bootstrap.site = Site("localhost", master.port)
        with pytest.raises((PeerError, TooLarge, BadData)):
            await bootstrap.run()
    assert not (tmp_path / "ssl" / "certs" / "ca.pem").exists()


@pytest.mark.parametrize("kind", ["html", "cut off", "of another"])
async def test_AG_17_an_own_certificate_that_cannot_be_read_is_not_kept(tmp_path: Path, kind: str) -> None:
    real = ThrowAwayCa.new()
    other = bundles.dump([real.sign(NAME, KeyKind("ec").generate().public_key())])
    body = {"html": b"<html>", "cut off": other[:-40], "of another": other}[kind]
    master = ca_master(real, tmp_path)
    plain = master.answer
    master.answer = lambda ask: Reply(body=body) if ask.path.endswith(f"/certificate/{NAME}") else plain(ask)
    async with master.running():
        with pytest.raises(PuppetError):
            await bootstrapping(tmp_path / "ssl", master).run()
    assert not (tmp_path / "ssl" / "certs" / f"{NAME}.pem").exists()
