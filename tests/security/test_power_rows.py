"""The row of power loss: what the CA said it has done is on the disk, and nothing there is torn."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from ca.authority import CertificateAuthority
from certs import crl
from tests.support.ca_site import Site
from tests.support.power import Disk

pytestmark = pytest.mark.slow

ROUNDS = 4  # states looked at for each moment at which the power is cut: the worst one, and others by luck


def check_serials(authority: CertificateAuthority) -> None:
    """No serial was used twice or may be used again; every certificate is whole and on record."""
    store = authority.store
    serials = [record.serial for record in store.inventory().records]
    assert len(serials) == len(set(serials)), "a serial was used twice"
    assert max(serials) < store.next_serial(), "a serial may be used again"
    for name in store.signed_names():
        issued = authority.signed_certificate(name)
        assert issued is not None or store.signed(name) is None, f"{name} is torn"
        assert issued is None or issued.serial_number in serials, f"{name} is not on record"


class Judge:
    """Cuts the power again and again, and opens what is left; `signed` and `revoked` are what callers were told."""

    def __init__(self, site: Site, disk: Disk, scratch: Path) -> None:
        self.site, self.disk, self.scratch = site, disk, scratch
        self.signed: dict[str, bytes] = {}
        self.gone: set[str] = set()
        self.revoked: set[int] = set()
        self.number = 0
        self.cuts = 0
        self.luck = random.Random(5)  # the same each time, so that a failure comes again

    def cut(self) -> None:
        for round_ in range(ROUNDS):
            target = self.scratch / "after"
            shutil.rmtree(target, ignore_errors=True)
            self.disk.after(target, self.luck if round_ else None)
            self.check(target)
            self.cuts += 1

    def check(self, root: Path) -> None:
        authority = Site(root, clock=self.site.clock, rules=self.site.rules).open()
        check_serials(authority)
        store = authority.store
        serials = {record.serial for record in store.inventory().records}
        for name, pem in self.signed.items():
            assert name in self.gone or store.signed(name) == pem, f"{name} was signed, and is lost"
            assert x509.load_pem_x509_certificate(pem).serial_number in serials
        assert self.revoked <= authority.revoked(), "a revocation is lost"
        assert crl.number_of(authority.crl()) >= self.number


def told(judge: Judge, registry: Any, name: str) -> None:
    """Keep what the caller was told of a name that is signed now."""
    pem = registry.store.signed(name)
    assert pem is not None
    judge.signed[name] = pem


def test_R_02_what_was_said_to_be_done_survives_a_power_cut_at_any_moment(
    site: Site, pem: Callable[..., bytes], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = site.registry()
    disk = Disk(site.root)
    judge = Judge(site, disk, tmp_path_factory.mktemp("cut"))
    disk.cut = judge.cut
    with disk.watched(monkeypatch):
        for number in range(6):
            name = f"web{number}"
            registry.submit(name, pem(name), by="t")
            judge.cut()
            registry.sign(name, by="t")
            told(judge, registry, name)
            judge.cut()
            if number % 3 == 1:
                judge.revoked |= set(registry.authority.revoke(name, by="t"))
            if number % 3 == 2:
                judge.gone.add(name)
                registry.clean([name], by="t")
                judge.revoked.add(x509.load_pem_x509_certificate(judge.signed[name]).serial_number)
            judge.number = crl.number_of(registry.authority.crl())
            judge.cut()
    assert judge.cuts > 200


def test_R_02_a_new_ca_is_whole_or_not_there(
    empty_site: Site, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(empty_site.root)
    scratch = tmp_path_factory.mktemp("cut")
    luck = random.Random(5)
    cuts = 0

    def start_again() -> None:
        """After a cut in the first start the second one finishes, or makes a CA: nobody was told of the first one."""
        nonlocal cuts
        for round_ in range(ROUNDS):
            shutil.rmtree(scratch / "after", ignore_errors=True)
            with monkeypatch.context() as without:
                without.setattr("os.fsync", lambda fd: None)
                made = Site(disk.after(scratch / "after", luck if round_ else None), rules=empty_site.rules)
                check_serials(made.bootstrap())
            cuts += 1

    with disk.watched(monkeypatch):
        disk.cut = start_again
        empty_site.bootstrap()
    disk.cut = lambda: None
    shutil.rmtree(scratch / "after", ignore_errors=True)
    survived = Site(disk.after(scratch / "after"), rules=empty_site.rules).open()
    assert survived.certificate == empty_site.open().certificate
    assert cuts > 20


def test_R_02_the_disk_of_these_tests_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the others can fail: a file that is written without syncs is empty, or not there."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "old").write_text("old")
    disk = Disk(root)
    with disk.watched(monkeypatch):
        (root / "new").write_text("new")
        (root / "old").write_text("changed")
        left = disk.after(tmp_path / "worst")
        assert {path.name: path.read_text() for path in left.iterdir()} == {"old": "old"}
        (root / "renamed").write_text("x")
        (root / "renamed").rename(root / "old")
        assert (disk.after(tmp_path / "again") / "old").read_text() == "old"
        seen = set()
        for number in range(50):
            path = disk.after(tmp_path / f"luck{number}", random.Random(number)) / "old"
            seen.add(path.read_text())
        assert seen == {"old", "", "x"}
