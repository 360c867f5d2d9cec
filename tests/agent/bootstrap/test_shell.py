"""The bootstrap against a CA that answers over TLS: what is asked, what is kept, what is refused."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from agent.bootstrap import Bootstrap, BootstrapOptions, fingerprint_text, texts
from agent.bootstrap.sequence import spread_interval
from agent.bootstrap.texts import CertificateMismatch, NoCertificate
from agent.servers.http import HttpClient
from agent.servers.server import DialectCache
from agent.servers.sites import Site
from agent.servers.tls import Verifier
from certs import fingerprints, verify
from certs.files.ssldir import SslDir
from certs.keys import KeyKind
from shared.errors import NotFound, PeerAnswered, PeerNotTrusted, PuppetError, Unsupported
from shared.wire.dialects import LEGACY, MODERN
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa

NAME = "agent.test"


class Ca:
    """A CA's HTTP side in both schemes; `autosign` False: requests wait until `sign` is called."""

    def __init__(self, ca: ThrowAwayCa, *, version: str) -> None:
        self.ca = ca
        self.version = version
        self.autosign = True
        self.requests: dict[str, bytes] = {}
        self.signed: dict[str, bytes] = {}
        self.crl = ca.crl_pem()
        self.refusal: Reply | None = None
        self.lose_reply = False

    def answer(self, ask: Ask) -> Reply:
        reply = self._answer(ask)
        return replace(reply, headers={"X-Puppet-Version": self.version, **reply.headers})

    def _answer(self, ask: Ask) -> Reply:
        legacy = self.version.startswith("3")
        parts = ask.path.split("/")
        if legacy and parts[1] == "puppet-ca":
            return Reply(400, b"The environment must be purely alphanumeric, not 'puppet-ca'")
        name, key = (parts[2], parts[3]) if legacy else (parts[3], parts[4])
        if name == "certificate_revocation_list":
            return Reply(304) if "if-modified-since" in ask.headers else Reply(body=self.crl)
        if name == "certificate" and key == "ca":
            return Reply(body=self.ca.pem)
        if name == "certificate_request" and ask.method == "PUT":
            if self.refusal:
                return self.refusal
            self.requests[key] = ask.body
            if self.autosign:
                self.sign(key)
            return Reply(cut=0, headers={"Content-Length": "9"}) if self.lose_reply else Reply()
        store = self.signed if name == "certificate" else self.requests
        return Reply(body=store[key]) if key in store else Reply(404, f"Not Found: Could not find {name} {key}".encode())

    def sign(self, key: str) -> None:
        self.signed[key] = self.ca.sign_request(self.requests.pop(key))


class World:
    """One agent's ssldir, one CA, and what was said."""

    def __init__(self, root: Path, *, version: str = "7.23.0", **options: Any) -> None:
        self.authority = ThrowAwayCa.new()
        self.ca = Ca(self.authority, version=version)
        self.root = root
        self.layout = SslDir.at(root / "ssl", NAME)
        self.master = FakeMaster(self.authority.serving(root), lambda ask: self.ca.answer(ask))
        self.options = BootstrapOptions(key=KeyKind("ec"), **options)
        self.dialects = DialectCache()
        self.told: list[str] = []
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None
        self.now = datetime.now(UTC)

    async def run(self, **changes: Any) -> Verifier:
        async with self.master.running():
            return await self.bootstrap(**changes).run()

    def bootstrap(self, **changes: Any) -> Bootstrap:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.on_sleep()

        def connect(verifier: Verifier | None) -> HttpClient:
            return HttpClient(verifier)

        return Bootstrap(
            self.layout,
            Site("localhost", self.master.port),
            replace(self.options, **changes),
            connect,
            self.dialects,
            now=lambda: self.now,
            sleep=sleep,
            tell=self.told.append,
        )

    def sequence(self) -> list[str]:
        found = [f"{ask.method} {ask.path}" for ask in self.master.asked]
        self.master.asked.clear()
        return found


MODERN_SEQUENCE = [
    "GET /puppet-ca/v1/certificate/ca",
    "GET /puppet-ca/v1/certificate_revocation_list/ca",
    f"PUT /puppet-ca/v1/certificate_request/{NAME}",
    f"GET /puppet-ca/v1/certificate/{NAME}",
]
LEGACY_SEQUENCE = [
    "GET /production/certificate/ca",
    f"GET /production/certificate/{NAME}",
    f"GET /production/certificate_request/{NAME}",
    f"PUT /production/certificate_request/{NAME}",
    f"GET /production/certificate/{NAME}",
    "GET /production/certificate_revocation_list/ca",
]


@pytest.mark.parametrize(
    ("version", "probe", "expected"),
    [("7.23.0", [], MODERN_SEQUENCE), ("3.8.7", ["GET /puppet-ca/v1/certificate/ca"], LEGACY_SEQUENCE)],
)
async def test_a_new_agent_asks_in_the_order_of_its_servers_age(
    tmp_path: Path, version: str, probe: list[str], expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, version=version)
    with caplog.at_level(logging.INFO, "puppet"):
        verifier = await world.run()
    anonymous = [ask.certname for ask in world.master.asked]
    assert world.sequence() == probe + expected
    assert verifier.certificate == world.layout.hostcert
    assert world.dialects.get(Site("localhost", world.master.port)) is (LEGACY if version[0] == "3" else MODERN)
    assert anonymous == [None] * (len(anonymous) - 1) + [NAME if version[0] == "3" else None]
    assert "Trusting the CA" in caplog.text
    assert "Certificate Request fingerprint (SHA256): " in caplog.text
    assert oct(world.layout.hostprivkey.stat().st_mode & 0o777) == "0o640"
    assert oct(world.layout.hostprivkey.parent.stat().st_mode & 0o777) == "0o750"
    assert not world.layout.hostcsr.exists()
    # The second time nothing is asked.
    await world.run()
    assert world.sequence() == []


async def test_unverified_connections_end_with_the_ca_certificate(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    first, *rest = world.master.asked
    assert first.headers["connection"] == "close"
    assert {ask.connection for ask in rest}.isdisjoint({first.connection})


async def test_waiting_ends_when_somebody_signs(tmp_path: Path) -> None:
    world = World(tmp_path, waitforcert=7)
    world.ca.autosign = False
    world.on_sleep = lambda: world.ca.sign(NAME) if len(world.slept) == 2 else None
    await world.run()
    assert world.slept == [7, 7]
    assert world.told[0].startswith("Couldn't fetch certificate from CA server")
    assert [line.split()[0] for line in world.sequence()] == ["GET", "GET", "PUT", "GET", "PUT", "GET", "PUT", "GET"]


@pytest.mark.parametrize("version", ["7.23.0", "3.8.7"])
@pytest.mark.slow
async def test_an_agent_waits_for_as_long_as_nobody_signs(tmp_path: Path, version: str) -> None:
    world = World(tmp_path, version=version, waitforcert=2)
    world.ca.autosign = False
    world.on_sleep = lambda: world.ca.sign(NAME) if len(world.slept) == 200 else None
    await world.run()
    assert len(world.slept) == 200


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        ("7.23.0", {"waitforcert": 0}, "Exiting now because the waitforcert setting is set to 0."),
        ("7.23.0", {"waitforcert": 5, "maxwaitforcert": 10}, "Exiting now because the maxwaitforcert timeout has been exceeded."),
        ("3.8.7", {"waitforcert": 0}, "Exiting; no certificate found and waitforcert is disabled"),
    ],
)
async def test_without_a_certificate_the_agent_says_why_it_stops(
    tmp_path: Path, version: str, options: dict[str, Any], message: str
) -> None:
    world = World(tmp_path, version=version)
    world.ca.autosign = False
    with pytest.raises(NoCertificate, match=message):
        await world.run(**options)


async def test_a_lost_local_request_is_fetched_back_from_a_3x_ca(tmp_path: Path) -> None:
    world = World(tmp_path, version="3.8.7", waitforcert=0)
    world.ca.autosign = False
    with pytest.raises(NoCertificate):
        await world.run()
    world.layout.hostcsr.unlink()
    world.sequence()
    with pytest.raises(NoCertificate):
        await world.run()
    assert world.sequence() == [
        f"GET /production/certificate/{NAME}",
        f"GET /production/certificate_request/{NAME}",
        f"GET /production/certificate/{NAME}",
    ]
    assert world.layout.hostcsr.exists()


async def test_a_request_made_with_another_key_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, version="3.8.7", waitforcert=0)
    world.ca.autosign = False
    with pytest.raises(NoCertificate):
        await world.run()
    for path in (world.layout.hostcsr, world.layout.hostprivkey):
        path.unlink()
    with pytest.raises(CertificateMismatch, match="made with another key"):
        await world.run()


@pytest.mark.parametrize("version", ["7.23.0", "3.8.7"])
async def test_a_certificate_for_another_key_is_not_kept_and_the_way_out_is_shown(tmp_path: Path, version: str) -> None:
    world = World(tmp_path, version=version)
    world.ca.signed[NAME] = world.authority.sign_request(_request(KeyKind("ec").generate()))
    world.ca.autosign = False
    with pytest.raises(CertificateMismatch) as caught:
        await world.run()
    text = str(caught.value)
    assert len(text.splitlines()) == 7
    assert f"puppet cert clean {NAME}" in text
    assert not world.layout.hostcert.exists()


def _request(key: Any) -> bytes:
    from certs import csr
    from certs.files import bundles

    return bundles.dump([csr.build(key, NAME)])


async def test_a_certificate_without_its_key_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    world.layout.hostprivkey.unlink()
    with pytest.raises(CertificateMismatch, match=r"its private key .* is not"):
        await world.run()
    assert not world.layout.hostprivkey.exists()


async def test_our_own_certificate_is_refused_when_revoked_or_expired(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    certificate = world.layout.certificate()
    assert certificate is not None
    world.authority.revoked.append(certificate.serial_number)
    world.layout.save_crls(world.authority.crl_pem())
    with pytest.raises(PeerNotTrusted, match="is revoked") as revoked:
        await world.run()
    assert "puppet cert clean" in revoked.value.hint
    world.layout.save_crls(world.ca.crl)
    world.now += timedelta(days=400)
    with pytest.raises(PeerNotTrusted, match="has expired"):
        await world.run()


async def test_an_end_that_is_near_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    await world.run()
    world.now += timedelta(days=330)
    await world.run()
    assert f"Certificate 'CN={NAME}' will expire on" in caplog.text


async def test_an_end_is_warned_about_in_the_last_quarter_of_a_certificates_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, expire_warning=2 * 365 * 86400)  # the certificate is for a year
    await world.run()
    world.now += timedelta(days=250)
    await world.run()
    assert "will expire" not in caplog.text
    world.now += timedelta(days=30)
    await world.run()
    assert "will expire" in caplog.text


@pytest.mark.parametrize(("version", "fatal"), [("3.8.7", True), ("7.23.0", False)])
async def test_a_refused_request_is_an_error_on_3x_and_waiting_later(tmp_path: Path, version: str, fatal: bool) -> None:
    world = World(tmp_path, version=version, waitforcert=0)
    world.ca.refusal = Reply(400, b"CSR contains forbidden things")
    with pytest.raises(PeerAnswered if fatal else NoCertificate) as caught:
        await world.run()
    if fatal:
        assert "CSR contains forbidden things" in str(caught.value)
        assert not world.layout.hostcsr.exists()


@pytest.mark.parametrize("status", [400, 500])
async def test_a_ca_that_has_our_request_already_is_asked_for_the_certificate(
    tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world = World(tmp_path, version="5.5.22", waitforcert=0)
    world.ca.autosign = False
    with pytest.raises(NoCertificate):
        await world.run()
    world.ca.refusal = Reply(status, b'{"message":"Server Error: agent.test already has a requested certificate; ignoring"}')
    with pytest.raises(NoCertificate):
        await world.run()
    world.ca.sign(NAME)
    await world.run()
    assert world.layout.certificate() is not None
    assert "already has" not in caplog.text


async def test_a_ca_that_fails_is_asked_again_by_who_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, waitforcert=0)
    world.ca.refusal = Reply(500, b"on fire")
    with pytest.raises(PeerAnswered, match="Failed to submit the CSR, HTTP response was 500: on fire"):
        await world.run()
    world.on_sleep = lambda: setattr(world.ca, "refusal", None)
    await world.run(waitforcert=5)
    assert world.slept == [5] and "on fire" in caplog.text


async def test_a_stale_crl_is_asked_for_with_its_date_and_kept_on_304(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    world.sequence()
    old = (world.now - timedelta(days=3)).timestamp()
    os.utime(world.layout.hostcrl, (old, old))
    await world.run(crl_refresh=86400)
    asked = world.master.asked
    assert [ask.path for ask in asked] == ["/puppet-ca/v1/certificate_revocation_list/ca"]
    assert "if-modified-since" in asked[0].headers
    assert asked[0].certname is None
    world.sequence()
    await world.run(crl_refresh=86400)
    assert world.sequence() == []


async def test_a_revoked_agent_learns_it_from_the_crl_and_says_what_to_do(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    certificate = world.layout.certificate()
    assert certificate is not None
    world.authority.revoked.append(certificate.serial_number)
    world.ca.crl = world.authority.crl_pem()
    os.utime(world.layout.hostcrl, (1, 1))
    whole = world.ca.answer
    world.master.answer = lambda ask: whole(replace(ask, headers={}))  # it is newer than ours
    with pytest.raises(PeerNotTrusted, match=f"Certificate 'CN={NAME}' is revoked") as caught:
        await world.run(crl_refresh=86400)
    assert f"puppet cert clean {NAME}" in caught.value.hint


async def test_an_expired_crl_is_fetched_anew_instead_of_locking_the_agent_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    world.layout.save_crls(world.authority.crl_pem(now=world.now - timedelta(days=9 * 365)))
    world.sequence()
    await world.run()
    assert world.sequence() == ["GET /puppet-ca/v1/certificate_revocation_list/ca"]
    assert world.layout.hostcrl.read_bytes() == world.ca.crl


async def test_a_crl_that_only_those_with_a_certificate_get_is_fetched_with_it(tmp_path: Path) -> None:
    world = World(tmp_path, version="5.5.22")
    whole, crl = world.ca.answer, "GET /puppet-ca/v1/certificate_revocation_list/ca"
    world.master.answer = lambda ask: Reply(403, b"Forbidden request") if "revocation" in ask.path and not ask.certname else whole(ask)
    await world.run()
    assert world.layout.hostcrl.read_bytes() == world.ca.crl
    assert world.sequence() == [*MODERN_SEQUENCE, crl, crl]
    os.utime(world.layout.hostcrl, (1, 1))
    await world.run(crl_refresh=86400)
    assert world.sequence() == [crl, crl]
    assert world.layout.hostcrl.stat().st_mtime > 1

    world.layout.hostcrl.unlink()
    world.master.answer = lambda ask: Reply(403, b"Forbidden request") if "revocation" in ask.path else whole(ask)
    with pytest.raises(PeerAnswered, match="Could not download CRLs: 403: Forbidden request"):
        await world.run()


async def test_renewal_that_is_not_offered_goes_on_with_the_old_certificate(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    world.sequence()
    world.now += timedelta(days=350)
    ca = world.ca.answer
    world.master.answer = lambda ask: Reply(404) if ask.path.endswith("certificate_renewal") else ca(ask)
    await world.run(renewal=30 * 86400)
    assert world.sequence() == ["POST /puppet-ca/v1/certificate_renewal"]


async def test_a_renewed_certificate_replaces_the_old_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    before = world.layout.certificate()
    key = world.layout.key()
    assert before is not None
    assert key is not None
    world.now += timedelta(days=350)
    renewed = world.authority.sign(NAME, key.public_key(), now=world.now)
    from certs.files import bundles

    world.master.answer = lambda ask: Reply(body=bundles.dump([renewed]))
    await world.run(renewal=30 * 86400)
    after = world.layout.certificate()
    assert after is not None
    assert after.serial_number == renewed.serial_number != before.serial_number


async def test_a_renewal_that_somebody_asks_for_says_why_it_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    before = world.layout.certificate()
    failures: list[tuple[Reply, type[PuppetError]]] = [(Reply(404), Unsupported), (Reply(403, b"Forbidden request"), PeerAnswered)]
    for reply, error in failures:
        world.master.answer = lambda ask, reply=reply: reply
        async with world.master.running():
            with pytest.raises(error):
                await world.bootstrap().renew()
    assert world.layout.certificate() == before


def test_the_fingerprint_is_of_the_certificate_else_the_request(tmp_path: Path) -> None:
    authority = ThrowAwayCa.new()
    layout = SslDir.at(tmp_path / "ssl", NAME)
    layout.create()
    with pytest.raises(NotFound):
        fingerprint_text(layout, "SHA256")
    request = x509.load_pem_x509_csr(_request(KeyKind("ec").generate()))
    layout.save_request(request)
    assert fingerprint_text(layout, "SHA256") == f"(SHA256) {fingerprints.fingerprint(request)}"
    signed = authority.ssldir(tmp_path / "other", NAME)
    certificate = signed.certificate()
    assert certificate is not None
    assert fingerprint_text(signed, "sha1") == f"(SHA1) {fingerprints.fingerprint(certificate, 'SHA1')}"


async def test_agents_do_not_all_renew_on_the_same_day(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run()
    certificate = world.layout.certificate()
    assert certificate is not None
    key = certificate.public_key()
    found = {spread_interval(world.authority.sign(NAME, key, now=world.now), 30 * 86400) // 86400 for _ in range(40)}
    assert found <= {26, 27, 28, 29, 30}
    assert len(found) > 1
    assert spread_interval(certificate, 30 * 86400) == spread_interval(certificate, 30 * 86400)
    assert spread_interval(certificate, 0) == 0


@pytest.mark.parametrize(
    ("days", "message", "advice", "removes"),
    [
        (-20_000, "is not yet valid", "Correct it and run again; nothing has to be removed", False),
        (6 * 365, "has expired", "an expired certificate cannot renew itself", True),
    ],
    ids=["a clock at its beginning", "an ended certificate"],
)
async def test_a_wrong_clock_is_never_a_reason_to_remove_a_key(tmp_path: Path, days: int, message: str, advice: str, removes: bool) -> None:
    world = World(tmp_path)
    await world.run()
    certificate = world.layout.certificate()
    assert certificate is not None
    clock = certificate.not_valid_after_utc + timedelta(minutes=1) if days > 0 else world.now + timedelta(days=days)
    problem = _problem(world, clock)
    found = texts.unusable(problem, world.layout, clock)
    assert message in found.message and advice in found.hint
    assert f"This host's clock says {clock:%Y-%m-%d %H:%M} UTC." in found.hint
    assert (f"puppet cert clean {NAME}" in found.hint) == removes
    assert str(world.layout.hostprivkey) not in found.hint


def _problem(world: World, clock: datetime) -> verify.NotVerified:
    certificate, authorities = world.layout.certificate(), world.layout.authorities()
    assert certificate is not None and authorities is not None
    with pytest.raises(verify.NotVerified) as caught:
        verify.verify(certificate, verify.TrustStore(authorities, (), False), now=clock, purpose="client")
    return caught.value
