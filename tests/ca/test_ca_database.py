"""Several masters with one CA in a database: what only they can do wrong."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import delete, select, text, update

from ca.service import CaService
from ca.storage.database import LOCK
from certs import crl, keys
from certs.files import bundles
from shared.errors import ConfigError, PuppetError
from shared.failpoints import VARIABLE
from shared.state.database import LIMITS, StateAway, StateDatabase
from shared.state.tables import CA, CA_INVENTORY
from tests.support.ca_site import DatabaseSite, emptied, request_pem
from tests.support.postgresql import PostgresqlServer


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


def test_the_serial_is_raised_as_the_page_on_recovery_says(database_site: DatabaseSite) -> None:
    page = (Path(__file__).parents[2] / "docs" / "recovery.md").read_text()
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


@pytest.mark.slow
@pytest.mark.parametrize("point", ["ca.serial-stored", "ca.certificate-written", "ca.committed"])
def test_a_master_that_is_killed_while_it_signs_leaves_all_or_nothing(database_site: DatabaseSite, point: str) -> None:
    database_site.registry().submit("web1", request_pem("web1"), by="t")
    assert database_site.in_child("sign", "web1", failpoints=f"{point}=kill").returncode == -signal.SIGKILL
    second = database_site.second().registry()
    done = point == "ca.committed"
    assert (second.status("web1").state, second.store.next_serial()) == (("signed", 3) if done else ("requested", 2))
    assert done or second.sign("web1", by="t").serial_number == 2
