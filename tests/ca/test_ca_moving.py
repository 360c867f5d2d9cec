"""A CA moves between files and a database: whole, compared, and never usable in both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ca.storage.folder import FolderStore
from ca.storage.moving import move_ca
from ca.storage.store import CaStore
from shared.errors import ConfigError, Conflict, PuppetError
from shared.failpoints import VARIABLE
from shared.state.database import StateDatabase
from tests.support.ca_site import DatabaseSite, Site, emptied, request_pem

pytestmark = pytest.mark.slow


@pytest.fixture
def in_files(site: Site) -> Site:
    """A CA with a pending request, certificates, and one that is revoked."""
    registry = site.registry()
    for name in ("web1", "web2", "web3"):
        registry.submit(name, request_pem(name), by="t")
    for name in ("web1", "web2"):
        registry.sign(name, by="t")
    registry.authority.revoke("web1", by="t")
    return site


@pytest.fixture
def in_database(in_files: Site, ca_database: StateDatabase) -> DatabaseSite:
    """The database to which it moves, empty."""
    return DatabaseSite(in_files.root, database=emptied(ca_database), rules=in_files.rules)


def states(site: Site) -> dict[str, str]:
    return {status.name: status.state for status in site.registry().statuses()}


def moved(source: CaStore, target: CaStore) -> list[str]:
    said: list[str] = []
    move_ca(source, target, said.append)
    return said


def test_everything_is_there_after_a_move_and_after_a_move_back(in_files: Site, in_database: DatabaseSite) -> None:
    before = in_files.store().contents()
    said = moved(in_files.store(), in_database.store())
    assert "2 certificates, 1 requests, 3 lines of inventory; the next serial is 0x0004" in said[0]
    assert states(in_database) == {"web1": "revoked", "web2": "signed", "web3": "requested"}
    assert in_database.registry().sign("web3", by="t").serial_number == 4
    with pytest.raises(ConfigError, match="not whole") as refused:
        in_files.open()
    assert "moved to a database" in refused.value.hint
    moved(in_database.store(), in_files.store())
    after = in_files.store().contents()
    assert states(in_files) == {"web1": "revoked", "web2": "signed", "web3": "signed"}
    assert (after.key, after.certificates, after.crls, after.next_serial) == (before.key, before.certificates, before.crls, 5)
    assert [entry for entry, _ in after.inventory][:3] == [entry for entry, _ in before.inventory]
    with pytest.raises(ConfigError, match="There is no CA in the masters' database"):
        in_database.open()
    assert not (in_files.files.cadir / "moved").exists()


@pytest.mark.parametrize(
    "point", ["ca.bootstrap-staged", "ca.committed", "ca.retired-serial", "ca.retired-inventory.txt", "ca.retired-requests"]
)
def test_a_move_to_a_database_that_was_cut_off_goes_on(
    in_files: Site, in_database: DatabaseSite, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv(VARIABLE, f"{point}=error")
    with pytest.raises(PuppetError, match="failpoint"):
        moved(in_files.store(), in_database.store())
    monkeypatch.delenv(VARIABLE)
    moved(in_files.store(), in_database.store())
    assert states(in_database) == {"web1": "revoked", "web2": "signed", "web3": "requested"}
    assert not in_files.files.serial.exists() and not in_files.files.signeddir.exists()
    assert moved(in_files.store(), in_database.store()) == ["The CA is in the masters' database already"]


@pytest.mark.parametrize("point", ["ca.bootstrap-staged-serial", "ca.bootstrap-staged", "ca.bootstrap-moved-capub", "ca.bootstrap-done"])
def test_a_move_to_files_that_was_cut_off_goes_on(
    in_files: Site, in_database: DatabaseSite, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    moved(in_files.store(), in_database.store())
    monkeypatch.setenv(VARIABLE, f"{point}=error")
    with pytest.raises(PuppetError, match="failpoint"):
        moved(in_database.store(), in_files.store())
    monkeypatch.delenv(VARIABLE)
    moved(in_database.store(), in_files.store())
    assert states(in_files) == {"web1": "revoked", "web2": "signed", "web3": "requested"}


def test_another_ca_at_the_target_is_left_alone(in_files: Site, in_database: DatabaseSite, tmp_path: Path) -> None:
    database_site = replace(in_database, root=tmp_path / "another")
    database_site.create()
    with pytest.raises(Conflict, match="it differs in: certificate, serial, inventory"):
        moved(in_files.store(), database_site.store())
    assert states(in_files) == {"web1": "revoked", "web2": "signed", "web3": "requested"}
    other = replace(in_files, root=tmp_path / "other")
    other.create()
    with pytest.raises(Conflict, match="certificate"):
        moved(database_site.store(), other.store())


def test_nothing_moves_from_where_there_is_nothing_or_from_a_back_up_or_a_roll_over(
    in_files: Site, in_database: DatabaseSite, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="There is no CA in"):
        moved(FolderStore(replace(in_files, root=tmp_path / "empty").files), in_database.store())
    old = in_files.files.cacrl.read_bytes()
    in_files.registry().authority.revoke("web2", by="t")
    in_files.files.cacrl.write_bytes(old)
    with pytest.raises(ConfigError, match="older than one that was in use"):
        moved(in_files.store(), in_database.store())
    (in_files.files.cadir / "rollover").mkdir()
    with pytest.raises(Conflict, match="roll-over"):
        moved(in_files.store(), in_database.store())
