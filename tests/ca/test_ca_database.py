"""Several masters with one CA in a database: what only they can do wrong."""

from __future__ import annotations

import io
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.x509.ocsp import OCSPCertStatus, load_der_ocsp_response
from sqlalchemy import delete, select, text, update

from ca.commands import puppet_cert
from ca.commands.site import CaSite
from ca.service import CaService
from ca.storage.database import LOCK
from certs import crl, keys
from certs.files import bundles
from shared.errors import ConfigError, PuppetError
from shared.failpoints import VARIABLE
from shared.state.database import LIMITS, StateAway, StateDatabase
from shared.state.tables import CA, CA_INVENTORY
from tests.support.ca_site import DatabaseSite, Site, emptied, request_pem
from tests.support.ocsp_client import build_request
from tests.support.postgresql import PostgresqlServer

CA_NAME = "Puppet CA: master.example.com"


@pytest.fixture
def empty_database_site(tmp_path: Path, ca_database: StateDatabase) -> DatabaseSite:
    return DatabaseSite(tmp_path, database=emptied(ca_database))


def signed_by(site: DatabaseSite) -> dict[str, str]:
    """The master that signed each certificate, by name."""
    query = select(CA_INVENTORY.c.name, CA_INVENTORY.c.signed_by)
    return dict(site.database.transact(lambda connection: [tuple(row) for row in connection.execute(query)]))


def sign(site: DatabaseSite, name: str) -> int:
    registry = site.registry()
    registry.submit(name, request_pem(name), by="t")
    return registry.sign(name, by="t").serial_number


def test_what_one_master_has_got_the_other_signs_and_each_is_named(database_site: DatabaseSite) -> None:
    second = database_site.second()
    database_site.registry().submit("web1", request_pem("web1"), by="t")
    assert second.registry().pending() == ["web1"]
    assert second.registry().sign("web1", by="t").serial_number == 2
    assert sign(database_site, "web2") == 3
    assert signed_by(database_site) == {
        "Puppet CA: master.example.com": "master.example.com",
        "web1": "master2.example.com",
        "web2": "master.example.com",
    }
    assert [entry["master"] for entry in second.trail if entry["action"] == "sign"] == ["master2.example.com"]


def test_two_masters_that_sign_and_revoke_at_once_lose_nothing(database_site: DatabaseSite) -> None:
    masters = [database_site.registry(), database_site.second().registry()]
    names = [f"web{number}" for number in range(16)]

    def life(number: int) -> int:
        registry, name = masters[number % 2], names[number]
        registry.submit(name, request_pem(name), by="t")
        serial = registry.sign(name, by="t").serial_number
        registry.authority.revoke(name, by="t")
        return serial

    with ThreadPoolExecutor(4) as pool:
        serials = list(pool.map(life, range(len(names))))
    assert sorted(serials) == list(range(2, 18))
    masters[0].store.refresh()
    assert masters[0].authority.revoked() == set(serials)
    assert crl.number_of(masters[0].authority.crl()) == 16  # one list each, none twice


def test_a_list_is_in_force_and_on_the_disk_of_the_other_master_after_a_look(database_site: DatabaseSite) -> None:
    sign(database_site, "web1")
    second = database_site.second()
    other = second.registry().authority
    database_site.registry().authority.revoke("web1", by="t")
    assert other.revoked() == frozenset()
    assert other.store.refresh()
    assert other.revoked() == {2}
    assert second.files.cacrl.read_bytes() == database_site.files.cacrl.read_bytes()
    assert second.files.cacrl.stat().st_mtime == database_site.files.cacrl.stat().st_mtime  # so that If-Modified-Since is right everywhere
    assert not other.store.refresh()


def test_the_other_master_answers_ocsp_about_what_the_first_one_signed(database_site: DatabaseSite) -> None:
    other = database_site.second().registry().authority
    registry = database_site.registry()
    registry.submit("web1", request_pem("web1"), by="t")
    certificate = registry.sign("web1", by="t")
    question = build_request(certificate, registry.authority.certificate)

    def status() -> object:
        return load_der_ocsp_response(other.answer_ocsp(question)).certificate_status

    assert status() is OCSPCertStatus.GOOD
    registry.authority.revoke("web1", by="t")
    other.store.refresh()
    assert status() is OCSPCertStatus.REVOKED


async def test_listeners_of_the_other_master_hear_of_a_revocation(database_site: DatabaseSite) -> None:
    sign(database_site, "web1")
    service = CaService(database_site.second().registry().authority, autosign=None)  # type: ignore[arg-type]
    heard: list[frozenset[int]] = []

    async def listen() -> None:
        heard.append(service.authority.revoked())

    service.on_revocation.append(listen)
    await service.follow()
    database_site.registry().authority.revoke("web1", by="t")
    await service.follow()
    await service.follow()
    assert heard == [{2}]
    await service.close()


@pytest.mark.parametrize(
    "point", ["ca.serial-stored", "ca.inventory-written", "ca.certificate-written", "ca.request-removed", "ca.committed"]
)
def test_a_failure_before_the_commit_has_changed_nothing_and_after_it_everything(
    database_site: DatabaseSite, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    registry, second = database_site.registry(), database_site.second().registry()
    registry.submit("web1", request_pem("web1"), by="t")
    monkeypatch.setenv(VARIABLE, f"{point}=error")
    with pytest.raises(PuppetError, match="failpoint"):
        registry.sign("web1", by="t")
    monkeypatch.delenv(VARIABLE)
    done = point == "ca.committed"
    assert (second.store.next_serial(), len(second.store.inventory().records)) == ((3, 2) if done else (2, 1))
    assert second.status("web1").state == ("signed" if done else "requested")
    assert any(entry["action"] == "sign" for entry in database_site.trail) is False  # told when it is stored


def test_a_revocation_that_is_undone_is_not_in_force(database_site: DatabaseSite, monkeypatch: pytest.MonkeyPatch) -> None:
    sign(database_site, "web1")
    authority = database_site.registry().authority
    monkeypatch.setenv(VARIABLE, "ca.crl-written=error")
    with pytest.raises(PuppetError, match="failpoint"):
        authority.revoke("web1", by="t")
    monkeypatch.delenv(VARIABLE)
    assert (authority.revoked(), crl.number_of(authority.crl())) == (frozenset(), 0)
    authority.revoke("web1", by="t")
    assert (authority.revoked(), crl.number_of(authority.crl())) == ({2}, 1)


def test_a_connection_that_is_lost_in_the_middle_is_as_if_nothing_had_been_asked(
    database_site: DatabaseSite, postgresql: PostgresqlServer
) -> None:
    registry = database_site.registry()
    registry.submit("web1", request_pem("web1"), by="t")
    store = registry.store
    with pytest.raises(StateAway), store.writing():
        store.save_next_serial(99)
        postgresql.run_sql(
            f"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = {LOCK & 0xFFFFFFFF}", "ca"
        )
        store.remove_request("web1")
    assert registry.sign("web1", by="t").serial_number == 2


def test_without_the_database_the_last_list_holds_and_signing_says_so(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    postgresql.run_sql("CREATE DATABASE leaving")
    site = DatabaseSite(tmp_path, database=StateDatabase.open(postgresql.address("leaving"), LIMITS))
    site.bootstrap()
    sign(site, "web1")
    registry = site.registry()
    registry.authority.revoke("web1", by="t")
    postgresql.run_sql("DROP DATABASE leaving WITH (FORCE)")
    with pytest.raises(StateAway) as refused:
        registry.submit("web2", request_pem("web2"), by="t")
    assert refused.value.retry_after == 10
    assert registry.authority.revoked() == {3}
    again = site.bootstrap()  # a master that starts meanwhile
    assert again.store.is_away and again.revoked() == {3} and again.crl_pem() == site.files.cacrl.read_bytes()
    with pytest.raises(StateAway):
        again.revoke("web1", by="t")


def test_a_database_from_a_back_up_gets_the_revocations_back_from_a_masters_copy(database_site: DatabaseSite) -> None:
    serials = [sign(database_site, name) for name in ("web1", "web2")]
    authority = database_site.registry().authority
    authority.revoke("web1", by="t")
    back_up = authority.crl_pem()
    authority.revoke("web2", by="t")
    number = crl.number_of(authority.crl())
    database_site.database.transact(lambda connection: connection.execute(update(CA).values(crls=back_up.decode(), version=7)))
    again = database_site.bootstrap()
    assert again.revoked() == set(serials)
    assert crl.number_of(again.crl()) > number
    assert crl.serials(bundles.revocation_lists(database_site.files.cacrl.read_bytes())[0]) == set(serials)


def test_who_can_write_to_the_database_can_have_no_other_ca_trusted_and_no_false_list_used(
    database_site: DatabaseSite, tmp_path: Path
) -> None:
    sign(database_site, "web1")
    authority = database_site.registry().authority
    authority.revoke("web1", by="t")
    copies = [path.read_bytes() for path in (database_site.files.cacert, database_site.files.cacrl)]
    foreign = Site(tmp_path / "foreign")
    foreign.create()

    def put(**columns: str) -> None:
        database_site.database.transact(lambda connection: connection.execute(update(CA).values(version=CA.c.version + 1, **columns)))

    put(crls=foreign.files.cacrl.read_text())
    authority.store.refresh()
    assert authority.revoked() == {2}
    put(crls=copies[1].decode(), certificates=(copies[0] + foreign.files.cacert.read_bytes()).decode())
    for use in (authority.store.refresh, lambda: authority.revoke("web1", by="t"), database_site.open):
        with pytest.raises(ConfigError, match="is not the one in") as refused:
            use()
        assert "If you have replaced the CA, remove" in refused.value.hint
    assert copies == [path.read_bytes() for path in (database_site.files.cacert, database_site.files.cacrl)]


def test_the_serial_is_raised_as_the_page_on_recovery_says(database_site: DatabaseSite) -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "recovery.md").read_text().split())
    statement = page[page.index("UPDATE state_ca") :].partition("`")[0]
    database_site.database.transact(lambda connection: connection.execute(text(statement.replace("::", "\\:\\:"))))
    assert sign(database_site, "web1") == 1002


def test_a_second_master_without_the_key_is_told_what_to_do(database_site: DatabaseSite) -> None:
    second = database_site.second()
    second.files.cakey.unlink()
    with pytest.raises(ConfigError, match="lacks the key") as refused:
        second.bootstrap()
    assert f"Copy {second.files.cakey} from another master" in refused.value.hint
    keys.save(second.files.cakey, keys.KeyKind("ec").generate())
    with pytest.raises(ConfigError, match="is not that of the CA in the masters' database"):
        second.bootstrap()


def test_with_a_passphrase_the_key_is_in_the_database_and_a_second_master_just_starts(empty_database_site: DatabaseSite) -> None:
    first = empty_database_site
    first.password = b"correct horse"
    (first.files.cadir / "private").mkdir(parents=True)
    first.files.capass.write_bytes(b"correct horse\n")
    first.bootstrap()
    assert b"ENCRYPTED" in first.files.cakey.read_bytes()
    second = first.second()
    second.files.cakey.unlink()
    with pytest.raises(ConfigError, match="encrypted"):
        DatabaseSite(second.root, database=second.database, master="x", rules=second.rules).bootstrap()
    (second.files.cadir / "private").mkdir()
    second.files.capass.write_bytes(b"correct horse\n")
    assert second.bootstrap().certificate == first.open().certificate
    assert sign(second, "web1") == 4  # both masters have a certificate


def test_masters_that_start_for_the_first_time_at_once_make_one_ca(empty_database_site: DatabaseSite) -> None:
    first = empty_database_site
    first.password = b"correct horse"
    masters = [first, *(replace(first, root=first.root / name, master=name, trail=[]) for name in ("m2.test", "m3.test"))]
    for master in masters:
        (master.files.cadir / "private").mkdir(parents=True)
        master.files.capass.write_bytes(b"correct horse")
    with ThreadPoolExecutor(3) as pool:
        authorities = list(pool.map(DatabaseSite.bootstrap, masters))
    assert len({authority.certificate for authority in authorities}) == 1
    assert sorted(signed_by(first).values()) == sorted([*("m2.test", "m3.test", "master.example.com"), signed_by(first)[CA_NAME]])


def test_the_key_goes_into_the_database_when_a_passphrase_is_set_later(database_site: DatabaseSite) -> None:
    database_site.password = b"secret"
    assert database_site.database.transact(lambda connection: connection.scalar(select(CA.c.key))) is None
    (database_site.files.cadir / "private").mkdir()
    database_site.files.capass.write_bytes(b"secret")
    database_site.bootstrap()
    assert "ENCRYPTED" in (database_site.database.transact(lambda connection: connection.scalar(select(CA.c.key))) or "")
    assert b"ENCRYPTED" in database_site.files.cakey.read_bytes()


def test_a_ca_in_files_is_not_replaced_by_a_new_one(site, ca_database: StateDatabase) -> None:
    emptied(ca_database)
    with pytest.raises(ConfigError, match="but none in the masters' database") as refused:
        DatabaseSite(site.root, database=ca_database).bootstrap()
    assert "puppet state move" in refused.value.hint


def test_a_creation_that_was_cut_short_before_the_commit_is_made_again(
    empty_database_site: DatabaseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for point in ("ca.bootstrap-staged-cakey", "ca.bootstrap-staged", "ca.committed"):
        monkeypatch.setenv(VARIABLE, f"{point}=error")
        with pytest.raises(PuppetError, match="failpoint"):
            empty_database_site.bootstrap()
    monkeypatch.delenv(VARIABLE)
    authority = empty_database_site.bootstrap()
    assert keys.belongs(authority.key, authority.certificate.public_key())


def test_what_a_lost_master_left_undecided_another_one_sees_after_a_while(database_site: DatabaseSite) -> None:
    registry = database_site.registry()
    for name in ("left", "decided", "new"):
        registry.submit(name, request_pem(name), by="t")
    registry.store.mark_decided("decided")
    age = "UPDATE state_ca_requests SET written = written - interval '1 hour' WHERE name <> 'new'"
    database_site.database.transact(lambda connection: connection.execute(text(age)))
    assert database_site.second().registry().store.undecided(None) == ["left"]
    assert registry.store.undecided(0) == ["left", "new"]  # it was killed itself


def test_a_ca_that_has_left_the_database_signs_nothing(database_site: DatabaseSite) -> None:
    registry = database_site.registry()
    registry.submit("web1", request_pem("web1"), by="t")
    database_site.database.transact(lambda connection: connection.execute(delete(CA)))
    with pytest.raises(ConfigError, match="not in the masters' database any more"):
        registry.sign("web1", by="t")


@pytest.mark.parametrize("action", [["adopt", "/ca"], ["rollover", "status"]])
def test_what_works_in_files_only_says_so_and_what_to_do(database_site: DatabaseSite, action: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert puppet_cert.cert(action, command_site(database_site), out=out, err=err) != 0
    assert f"puppet cert {action[0]} works on a CA in files only" in err.getvalue()
    assert "puppet state move --to files" in err.getvalue()


def command_site(site: DatabaseSite) -> CaSite:
    return CaSite(site.store(), site.ssldir, rules=site.rules, report=site.trail.append, now=site.clock)


def test_commands_work_on_any_master(database_site: DatabaseSite) -> None:
    second = database_site.second()
    database_site.registry().submit("web1", request_pem("web1"), by="t")

    def command(*words: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        assert puppet_cert.cert(words, command_site(second), out=out, err=err) == 0, err.getvalue()
        return out.getvalue()

    assert '"web1" (SHA256)' in command("list")
    assert "Removing file Puppet::SSL::CertificateRequest web1 at 'web1 in the masters' database'" in command("sign", "web1")
    assert '+ "web1" (SHA256)' in command("list", "--all")
    assert "Revoked certificate with serial 2" in command("clean", "web1")
    assert "Revoked certificate with serial 4660" in command("revoke", "--force", "0x1234")  # of which a back-up knew nothing
    assert "Wrote 2 lines to the inventory in the masters' database" in command("reinventory")
    assert database_site.registry().authority.revoked() == {2, 0x1234}


@pytest.mark.slow
def test_a_master_that_hangs_while_it_writes_stops_the_others_for_a_while_only(database_site: DatabaseSite) -> None:
    hanging, second = database_site.registry(), database_site.second().registry()
    hanging.store.hold = 1  # type: ignore[attr-defined]
    second.submit("web1", request_pem("web1"), by="t")
    with pytest.raises(StateAway), hanging.store.writing():
        hanging.store.save_next_serial(99)
        assert second.sign("web1", by="t").serial_number == 2  # waits until PostgreSQL has ended the other's transaction
        hanging.store.remove_request("web1")


@pytest.mark.full
def test_masters_that_are_killed_again_and_again_use_no_serial_twice_and_lose_nothing(database_site: DatabaseSite) -> None:
    masters = [database_site, database_site.second()]
    chance = random.Random(7)
    acknowledged: list[str] = []
    for turn in range(4):
        children = [site.start_child("many", f"t{turn}m{number}-", "40") for number, site in enumerate(masters)]
        time.sleep(chance.uniform(1.0, 3.0))
        children[turn % 2].kill()
        for child in children:
            acknowledged += child.communicate(timeout=60)[0].split()
    registry = database_site.registry()
    records = registry.store.inventory().records
    assert len({record.serial for record in records}) == len(records)
    assert max(record.serial for record in records) == registry.store.next_serial() - 1
    signed = {status.name for status in registry.statuses() if status.state == "signed"}
    assert len(acknowledged) > 20 and set(acknowledged) <= signed
    assert signed == {record.name for record in records} - {"Puppet CA: master.example.com"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["ca.serial-stored", "ca.certificate-written", "ca.committed"])
def test_a_master_that_is_killed_while_it_signs_leaves_all_or_nothing(database_site: DatabaseSite, point: str) -> None:
    database_site.registry().submit("web1", request_pem("web1"), by="t")
    assert database_site.in_child("sign", "web1", failpoints=f"{point}=kill").returncode == -signal.SIGKILL
    second = database_site.second().registry()
    done = point == "ca.committed"
    assert (second.status("web1").state, second.store.next_serial()) == (("signed", 3) if done else ("requested", 2))
    assert done or second.sign("web1", by="t").serial_number == 2
