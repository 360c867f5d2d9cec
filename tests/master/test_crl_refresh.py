"""A master that is no CA fetches the CA's revocation list: what is kept, whom it is asked of, what is said when it fails."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from certs import crl
from certs.files import bundles
from httpd.tls.trust import ServerTls, load
from master.service.crl_refresh import CrlRefresh, CrlSource, overdue_since, store_crls
from shared.errors import PeerAnswered, PeerNotTrusted, PeerUnreachable, PuppetError, TooLarge
from shared.settings import Conf, MasterSettings
from shared.settings import load as load_settings
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.raw_master import CaFolder
from tests.support.throwaway_ca import ThrowAwayCa
from tests.support.waiting import until

NOW = datetime.now(UTC).replace(microsecond=0)
NAME = "master2.test"


@pytest.fixture
def ca(tmp_path: Path) -> CaFolder:
    made = CaFolder(tmp_path / "ca", now=NOW)
    made.issue(NAME)
    return made


def numbered(ca: ThrowAwayCa, number: int, *, now: datetime = NOW, revoked: tuple[int, ...] = (), **options: Any) -> bytes:
    entries = [crl.entry(serial, NOW) for serial in revoked]
    return bundles.dump([crl.sign(ca.certificate, ca.key, number=number, now=now, entries=entries, **options)])


OTHER = ThrowAwayCa.new("Puppet CA: another", now=NOW)
SAME_NAME = ThrowAwayCa.new("Puppet CA: throw-away", now=NOW)
REFUSED: dict[str, tuple[Callable[[CaFolder], bytes], str]] = {
    "no list": (lambda ca: b"nonsense", "There is no CRL"),
    "a list that is cut off": (lambda ca: numbered(ca, 9)[:-40], "cut off"),
    "one of another CA": (lambda ca: numbered(OTHER, 9), "is not from a CA that this host knows"),
    "one that another signed in the CA's name": (lambda ca: numbered(SAME_NAME, 9), "Invalid signature"),
    "an older one": (lambda ca: numbered(ca, 4), "its number 4 is lower than 5"),
    "one that has ended": (lambda ca: numbered(ca, 9, now=NOW - timedelta(days=10), lifetime=timedelta(days=9)), "is not now"),
    "one that has not begun": (lambda ca: numbered(ca, 9, now=NOW + timedelta(days=2)), "is not now"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_list_that_is_not_the_cas_next_one_is_refused_and_nothing_is_touched(name: str, ca: CaFolder) -> None:
    make, said = REFUSED[name]
    ca.crl.write_bytes(numbered(ca, 5, revoked=(77,)))
    os.utime(ca.crl, (1, 1))
    before = ca.crl.read_bytes()
    with pytest.raises(PuppetError, match=said):
        store_crls(ca.trust(NAME), make(ca), NOW)
    assert ca.crl.read_bytes() == before
    assert ca.crl.stat().st_mtime == 1
    assert sorted(path.name for path in ca.folder.iterdir()) == ["ca.pem", "crl.pem", f"{NAME}.key", f"{NAME}.pem"]


def test_a_newer_list_takes_the_place_of_the_older_and_counts_in_the_listener(ca: CaFolder) -> None:
    ca.crl.write_bytes(numbered(ca, 5))
    certificate = ca.issue("agent1.test")
    files = ca.trust(NAME)
    assert not load(files).revocations.has_revoked(certificate.issuer.public_bytes(), certificate.serial_number)
    assert store_crls(files, numbered(ca, 6, revoked=(certificate.serial_number,)), NOW)
    assert load(files).revocations.has_revoked(certificate.issuer.public_bytes(), certificate.serial_number)
    assert ca.crl.stat().st_mode & 0o777 == 0o644


def test_the_same_list_is_left_as_it_is_but_for_its_time(ca: CaFolder) -> None:
    ca.crl.write_bytes(numbered(ca, 5))
    os.utime(ca.crl, (1, 1))
    before = ca.crl.stat().st_ino
    assert not store_crls(ca.trust(NAME), ca.crl.read_bytes(), NOW)
    assert ca.crl.stat().st_ino == before
    assert overdue_since(ca.crl, 300, datetime.now(UTC)) is None


def test_a_missing_list_and_one_that_cannot_be_read_are_replaced(ca: CaFolder, caplog: pytest.LogCaptureFixture) -> None:
    ca.crl.unlink()
    assert store_crls(ca.trust(NAME), numbered(ca, 5), NOW)
    ca.crl.write_bytes(b"-----BEGIN X509 CRL-----\n")
    assert store_crls(ca.trust(NAME), numbered(ca, 5), NOW)
    assert "cannot be read, and is replaced" in caplog.text
    assert crl.number_of(bundles.revocation_lists(ca.crl.read_bytes())[0]) == 5


def test_the_list_of_another_authority_of_ours_stays_when_the_ca_does_not_send_it(ca: CaFolder) -> None:
    ca.bundle.write_bytes(ca.pem + OTHER.pem)
    ca.crl.write_bytes(numbered(ca, 5) + numbered(OTHER, 3))
    assert store_crls(ca.trust(NAME), numbered(ca, 6), NOW)
    stored = bundles.revocation_lists(ca.crl.read_bytes())
    assert [(each.issuer, crl.number_of(each)) for each in stored] == [(ca.certificate.subject, 6), (OTHER.certificate.subject, 3)]


@pytest.mark.parametrize(("age", "interval", "late"), [(60, 300, False), (3500, 300, False), (3700, 300, True), (3 * 86400, 86400, False)])
def test_a_list_is_out_of_date_after_three_intervals_and_at_least_an_hour(age: int, interval: int, late: bool, ca: CaFolder) -> None:
    then = NOW - timedelta(seconds=age)
    os.utime(ca.crl, (then.timestamp(), then.timestamp()))
    assert overdue_since(ca.crl, interval, NOW) == (then if late else None)


class Source:
    """A CA of prepared answers; the last one is given again and again."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def fetch(self) -> bytes:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __str__(self) -> str:
        return "ca.test:8140"


async def test_a_failure_is_logged_with_its_hint_once_an_hour_and_so_is_its_end(ca: CaFolder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet.crl")
    away, other = PeerUnreachable("it is away", hint="look for it"), PeerUnreachable("it is elsewhere")
    source, now = Source(away, away, other, away, ca.crl.read_bytes()), [NOW]
    refresh = CrlRefresh(ca.trust(NAME), source.fetch, source, now=lambda: now[0])

    async def said(later: float = 0) -> list[str]:
        now[0] += timedelta(seconds=later)
        caplog.clear()
        await refresh.attempt()
        return caplog.messages

    assert await said() == ["Could not refresh the CRL, so that revocations are not seen: it is away", "look for it"]
    assert await said() == []
    assert await said() == ["Could not refresh the CRL, so that revocations are not seen: it is elsewhere"]
    assert refresh.refreshed is None
    source.answers.insert(1, away)
    assert len(await said()) == 2
    assert len(await said(3700)) == 2
    assert await said() == ["The CRL is refreshed again"]
    assert refresh.refreshed == now[0]


async def test_it_asks_at_once_and_then_about_every_interval(ca: CaFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    source, waits = Source(ca.crl_pem(now=NOW)), []
    chances = iter([0.0, 0.5, 1.0])

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr("master.service.crl_refresh.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await CrlRefresh(ca.trust(NAME), source.fetch, source).keep_fresh(100, chance=lambda: next(chances))
    assert waits == pytest.approx([90, 100, 110])
    assert source.asked == 3


# The real way to it.


def settings(port: int, **more: Any) -> MasterSettings:
    flags = {"ca": "false", "certname": NAME, "ca_server": "localhost", "ca_port": port, "crl_refresh_timeout": "2s", **more}
    return load_settings(MasterSettings, section="master", flags=flags, conf=Conf())


@asynccontextmanager
async def asked(
    ca: CaFolder, answer: Callable[[Ask], Reply] | None = None, *, by: ThrowAwayCa | None = None, name: str = "localhost", **more: Any
) -> AsyncIterator[tuple[CrlSource, FakeMaster]]:
    """Somebody in the CA's place, who listens, and how a master asks there. Without `answer` that is GIVEN."""
    fake = FakeMaster((by or ca).serving(ca.folder, name), answer or (lambda ask: GIVEN))
    async with fake.running():
        yield CrlSource(settings(fake.port, **more), ca.trust(NAME), now=lambda: NOW), fake


GIVEN = Reply(body=b"a list")


async def test_the_ca_is_asked_without_a_certificate(ca: CaFolder) -> None:
    async with asked(ca) as (source, fake):
        assert await source.fetch() == GIVEN.body
    assert [(ask.method, ask.path, ask.certname) for ask in fake.asked] == [("GET", MODERN, None)]


MODERN, LEGACY = "/puppet-ca/v1/certificate_revocation_list/ca", "/production/certificate_revocation_list/ca"


async def test_a_ca_that_wants_a_certificate_gets_it(ca: CaFolder) -> None:
    async with asked(ca, lambda ask: GIVEN if ask.certname else Reply(403, b"who?")) as (source, fake):
        assert await source.fetch() == GIVEN.body
    assert [(ask.path, ask.certname) for ask in fake.asked] == [(MODERN, None), (MODERN, NAME)]


async def test_a_ca_of_3_x_is_asked_in_its_own_scheme(ca: CaFolder) -> None:
    async with asked(ca, lambda ask: GIVEN if ask.path == LEGACY else Reply(404, b"no")) as (source, fake):
        assert await source.fetch() == GIVEN.body
    assert [(ask.path, ask.certname) for ask in fake.asked] == [(MODERN, None), (MODERN, NAME), (LEGACY, NAME)]


UNUSABLE: dict[str, tuple[Reply, dict[str, Any], type[PuppetError], str]] = {
    "no CA": (Reply(404, b"This process is no\n CA"), {}, PeerAnswered, r"localhost:\d+ answered 404: This process is no CA"),
    "a redirect": (Reply(302, b"", {"Location": "https://localhost/"}), {}, PeerAnswered, "answered 302"),
    "too much": (Reply(body=b"x" * 2000), {"max_crl_body": 1000}, TooLarge, "over the limit of 1000 bytes"),
    "half an answer": (Reply(body=b"x" * 2000, cut=1000), {}, PeerUnreachable, "could not be asked"),
    "no answer": (Reply(hang=True), {"crl_refresh_timeout": "1s"}, PeerUnreachable, "no answer within 1 seconds"),
}


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.slow
async def test_an_answer_that_is_no_list_is_an_error_that_names_the_ca(name: str, ca: CaFolder) -> None:
    answer, more, kind, said = UNUSABLE[name]
    async with asked(ca, lambda ask: answer, **more) as (source, _):
        with pytest.raises(kind, match=said) as caught:
            await source.fetch()
    assert caught.value.hint


async def test_nobody_there_is_an_error_that_names_the_ca(ca: CaFolder) -> None:
    async with asked(ca) as (source, _):
        pass
    with pytest.raises(PeerUnreachable, match=r"localhost:\d+ could not be asked"):
        await source.fetch()


async def test_nothing_is_asked_of_whom_our_ca_does_not_vouch_for(ca: CaFolder) -> None:
    for by, name in ((SAME_NAME, "localhost"), (None, "somebody.test")):
        async with asked(ca, by=by, name=name) as (source, fake):
            with pytest.raises(PeerNotTrusted, match="is not who it should be") as caught:
                await source.fetch()
        assert "with 'localhost' in it" in caught.value.hint
        assert fake.asked == []


async def test_nothing_is_asked_of_one_that_the_ca_has_revoked(ca: CaFolder) -> None:
    async with asked(ca) as (source, fake):
        ca.revoked.append(ca.serial)  # the last that was signed: the one that is shown here
        ca.write_crl()
        with pytest.raises(PeerNotTrusted, match="revoked"):
            await source.fetch()
    assert fake.asked == []


async def test_a_list_that_has_ended_does_not_keep_the_next_one_away(ca: CaFolder) -> None:
    ca.write_crl(now=NOW - timedelta(days=10), lifetime=timedelta(days=9))
    async with asked(ca) as (source, _):
        assert await source.fetch() == GIVEN.body


async def test_a_file_that_was_only_touched_is_not_loaded_anew(ca: CaFolder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet.tls")
    looks = 0

    def now() -> datetime:
        """Is asked at each look that finds nothing to load."""
        nonlocal looks
        looks += 1
        return NOW

    listening = ServerTls(ca.trust(NAME), interval=0.01, now=now)
    await listening.start()
    before = listening.context
    watching = asyncio.create_task(listening.watch())
    try:
        os.utime(ca.crl, (1, 1))
        looked = looks
        await until(lambda: looks >= looked + 2)
        assert listening.context is before
        ca.write_crl(now=NOW + timedelta(seconds=5))
        await until(lambda: listening.context is not before)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def test_only_a_master_that_is_no_ca_refreshes_and_only_if_it_should(ca: CaFolder) -> None:
    files = ca.trust(NAME)
    assert CrlRefresh.of(settings(8140), files) is not None
    assert CrlRefresh.of(settings(8140, ca="true"), files) is None
    assert CrlRefresh.of(settings(8140, crl_refresh_interval="0"), files) is None
    given = settings(8140)
    assert (given.crl_refresh_interval, given.max_crl_body) == (300, 64 * 1024**2)
    plain = load_settings(MasterSettings, section="master", flags={"server": "puppet.test"}, conf=Conf())
    assert (plain.ca_server, plain.ca_port) == ("puppet.test", 8140)
