"""Rows about the CRL of a CA: it never goes back, whatever somebody does to the CA's files, so that no revocation is undone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from ca.authority import CaOptions, CertificateAuthority
from ca.setup import bootstrap
from ca.setup.rollover import Rollover
from ca.storage.folder import FolderStore
from certs import crl
from certs.files import bundles
from certs.files.cadir import CaFiles
from shared.errors import ConfigError
from tests.support.ca_site import Site, key
from tests.support.wired_site import WiredSite

Pem = Callable[..., bytes]


def revoke(authority: CertificateAuthority, *names: str) -> list[int]:
    """Issue a certificate for each name and revoke it; return the serials."""
    for name in names:
        authority.issue(name, key().public_key(), by="t")
    return [serial for name in names for serial in authority.revoke(name, by="t")]


def single_file(site: Site, back_up: Path) -> None:
    shutil.copy(back_up / "ca_crl.pem", site.files.cacrl)


def with_the_inventory(site: Site, back_up: Path) -> None:
    for name in ("ca_crl.pem", "inventory.txt", "serial"):
        shutil.copy(back_up / name, site.files.cadir / name)


def unpacked_over_the_directory(site: Site, back_up: Path) -> None:
    shutil.copytree(back_up, site.files.cadir, dirs_exist_ok=True)


RESTORES = [single_file, with_the_inventory, unpacked_over_the_directory]


def type_in_cure(error: ConfigError) -> None:
    """Run the command that the refusal names."""
    command = error.hint.partition(": cat ")[2].partition(" (docs")[0]
    subprocess.run(["/bin/sh", "-ec", f"cat {command}"], check=True)


@pytest.mark.parametrize("restore", RESTORES)
def test_CA_29_an_older_crl_is_refused_at_the_start_until_its_cure_keeps_every_revocation(
    site: Site, restore: Callable[[Site, Path], None]
) -> None:
    authority = site.bootstrap()
    early = revoke(authority, "a1", "a2")
    shutil.copytree(site.files.cadir, site.root / "back-up")
    late = revoke(authority, "b1", "b2", "b3")
    number = crl.number_of(authority.crl())
    restore(site, site.root / "back-up")
    for start in (site.bootstrap, site.open):
        with pytest.raises(ConfigError, match=f"its number is {number - 3}, and {number} was reached") as error:
            start()
        assert str(site.files.cacrl) in str(error.value)
    type_in_cure(error.value)
    again = site.bootstrap()
    assert again.revoked() == {*early, *late} == crl.serials(again.crl())
    assert crl.number_of(again.crl()) == number + 1
    assert len(bundles.revocation_lists(again.crl_pem())) == 1, "agents refuse the older one"


@pytest.mark.parametrize("restore", RESTORES)
def test_CA_29_an_older_crl_has_no_effect_while_the_ca_runs(
    site: Site, caplog: pytest.LogCaptureFixture, restore: Callable[[Site, Path], None]
) -> None:
    authority = site.bootstrap()
    early = revoke(authority, "a1")
    shutil.copytree(site.files.cadir, site.root / "back-up")
    late = revoke(authority, "b1", "b2")
    number, served = crl.number_of(authority.crl()), authority.crl_pem()
    restore(site, site.root / "back-up")
    assert authority.crl_pem() == served and authority.revoked() == {*early, *late}
    assert authority.crl_pem() == served
    assert caplog.text.count("is older than one that was in use") == 1, "one error for each change"
    last = revoke(authority, "c1")
    assert crl.number_of(authority.crl()) == number + 1
    assert crl.serials(site.bootstrap().crl()) == {*early, *late, *last}


def test_CA_29_a_newer_crl_that_lacks_revocations_gets_them_back(site: Site) -> None:
    authority = site.bootstrap()
    old = site.files.cacrl.read_bytes()
    revoked = revoke(authority, "a1", "a2")
    # What another program would have signed, which counts on from the older file.
    diverged = bundles.revocation_lists(old)[0]
    for _ in range(5):
        diverged = crl.successor_of(diverged, authority.certificate, authority.key, now=site.clock())
    site.files.cacrl.write_bytes(bundles.dump([diverged]))
    assert authority.revoked() == set(revoked)
    assert crl.serials(site.bootstrap().crl()) == set(revoked)


def test_CA_29_a_copy_of_the_ca_for_another_machine_and_one_that_is_copied_again_start(site: Site, tmp_path: Path) -> None:
    authority = site.bootstrap()
    standby = Site(tmp_path / "standby")
    for name in ("a1", "a2"):
        revoke(authority, name)
        shutil.copytree(site.root, standby.root, dirs_exist_ok=True)  # also copies that the CA has removed since stay there
        assert len(list(site.files.cadir.glob("newest_crl_*"))) == 1
    assert standby.bootstrap().revoked() == authority.revoked()


def test_CA_29_a_new_ca_in_the_place_of_the_old_one_starts_with_its_own_list(site: Site) -> None:
    revoke(site.bootstrap(), "a1")
    for path in (*site.files.essential.values(), *site.files.signeddir.iterdir()):
        path.unlink()
    shutil.rmtree(site.ssldir.certdir)
    shutil.rmtree(site.ssldir.root / "private_keys")
    assert site.bootstrap().revoked() == frozenset()


def test_CA_29_a_list_that_a_roll_over_makes_never_goes_back(site: Site) -> None:
    authority = site.bootstrap()
    revoke(authority, "a1")
    rollover = Rollover(authority, site.ssldir)
    rollover.start(key)
    with_both = site.files.cacrl.read_bytes()
    revoked = revoke(authority, "a2", "a3")
    rollover.switch(at_once=True)
    site.files.cacrl.write_bytes(with_both)
    assert set(revoked) < authority.revoked()
    with pytest.raises(ConfigError, match="is older than one that was in use"):
        site.open()


@pytest.mark.slow
async def test_CA_29_a_running_master_refuses_a_revoked_agent_although_an_older_crl_is_put_back(wired: WiredSite) -> None:
    files = CaFiles.at(wired.settings.cadir)
    old = files.cacrl.read_bytes()
    agent = await wired.client("agent1")
    assert (await wired.catalog(agent, "agent1", {})).status == 200
    bootstrap.open_authority(FolderStore(files), CaOptions()).revoke("agent1", by="t")
    await wired.master.http.tls.reload()
    assert (await wired.catalog(agent, "agent1", {})).status == 403
    files.cacrl.write_bytes(old)
    with pytest.raises(ConfigError, match="older than number 1, which is in use"):
        await wired.master.http.tls.reload()
    own = x509.load_pem_x509_certificate((wired.root / "agent1.pem").read_bytes())
    assert wired.master.http.tls.revocations.has_revoked(own.issuer.public_bytes(), own.serial_number)
    stranger = await wired.client()
    served = await stranger.ask("GET", "/puppet-ca/v1/certificate_revocation_list/ca")
    assert len(bundles.revocation_lists(served.body)[0]) == 1
