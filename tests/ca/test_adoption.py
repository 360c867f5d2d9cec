"""`puppet cert adopt`: CAs in the layouts of Puppet 3.8 and of puppetserver, whole and broken."""

import io
import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from ca.commands import puppet_cert
from ca.commands.site import CaSite
from ca.registry import CertificateRegistry
from ca.setup import adoption, bootstrap
from ca.storage.folder import FolderStore
from certs import certificates, crl, keys
from certs.files import bundles
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from shared.clock import utc_now
from shared.errors import ConfigError, Conflict, NotFound

PUPPETSERVER = shutil.which("puppetserver")


@pytest.fixture
def old(site, pem):
    """A CA in use: two certificates, one of them revoked, and a request."""
    registry = site.registry()
    for name in ("web1", "web2", "waiting"):
        registry.submit(name, pem(name), by="t")
    registry.sign("web1", by="t")
    registry.sign("web2", by="t")
    registry.authority.revoke("web2", by="t")
    return site


@pytest.fixture
def target(tmp_path):
    return CaFiles.at(tmp_path / "new" / "ca")


@pytest.fixture
def take(old, target):
    def take(source=None, **rest):
        ssldir = SslDir.at(target.cadir.parent / "ssl", "master.example.com")
        return adoption.adopt(source or old.files.cadir, target, ssldir=ssldir, now=old.clock.now, **rest)

    return take


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock"}


def test_a_whole_ca_is_taken_over_byte_for_byte(old, take, target) -> None:
    found = take()
    assert tree(target.cadir) == tree(old.files.cadir)
    assert found.done and found.odd == []
    assert (found.signed, found.requests, found.revoked, found.next_serial) == (["web1", "web2"], ["waiting"], 1, 4)
    assert target.cakey.stat().st_mode & 0o777 == 0o640 and target.cadir.stat().st_mode & 0o777 == 0o750


def test_what_was_taken_over_issues_and_revokes_like_before(old, take, target, pem) -> None:
    take()
    authority = bootstrap.open_authority(FolderStore(target), old.rules, now=old.clock)
    registry = CertificateRegistry(authority)
    assert registry.sign("waiting", by="t").serial_number == 4
    assert registry.status("web2").state == "revoked"
    registry.clean(["web1"], by="t")
    assert {2, 3} <= authority.revoked()


def test_noop_says_the_same_and_writes_nothing(take, target) -> None:
    found = take(noop=True)
    assert found.signed == ["web1", "web2"] and not found.done
    assert not target.cadir.parent.exists()


def test_an_ssldir_names_the_ca_below_it(old, take) -> None:
    assert take(old.files.cadir.parent).source == old.files.cadir.resolve()


def damage_key(files):
    keys.save(files.cakey, keys.KeyKind("ec").generate())


def foreign_crl(files):
    key = keys.KeyKind("ec").generate()
    own = bundles.certificate(files.cacert.read_bytes())
    files.cacrl.write_bytes(bundles.dump([crl.sign(own, key, number=9, now=own.not_valid_before_utc)]))


PROBLEMS = {
    "another key": (damage_key, "ca_key.pem is not the key of a certificate in ca_crt.pem"),
    "no key": (lambda f: f.cakey.unlink(), "ca_key.pem is missing"),
    "no CRL": (lambda f: f.cacrl.unlink(), "ca_crl.pem is missing"),
    "a CRL that another key signed": (foreign_crl, "is not signed by its certificate"),
    "half a certificate": (lambda f: f.cacert.write_bytes(f.cacert.read_bytes()[:300]), "ca_crt.pem: A PEM block"),
    "a serial that is none": (lambda f: f.serial.write_text("next"), "serial holds 'next', which is not a number in hex"),
    "no certificate in the CRL's file": (lambda f: f.cacrl.write_text("none"), "ca_crl.pem: There is no CRL in this text"),
    "in the middle of a roll-over": (lambda f: (f.cadir / "rollover").mkdir(), "in the middle of a roll-over"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_ca_that_does_not_fit_together_is_refused_and_nothing_is_left(old, take, target, name) -> None:
    change, message = PROBLEMS[name]
    change(old.files)
    before = tree(old.files.cadir)
    with pytest.raises(ConfigError) as error:
        take()
    assert message.lower() in str(error.value).lower()
    assert tree(old.files.cadir) == before
    assert not target.cadir.parent.exists() or not any(target.cadir.parent.iterdir())


def test_all_that_is_wrong_is_said_at_once(old, take) -> None:
    foreign_crl(old.files)
    old.files.serial.write_text("-")
    with pytest.raises(adoption.Unfit) as error:
        take()
    assert len(error.value.problems) == 3  # the CRL, that there is no other, the serial


def test_an_expired_ca_is_refused(old, take) -> None:
    old.clock.pass_(days=6 * 365)
    with pytest.raises(ConfigError, match="expired on"):
        take()


ODD = {
    "a serial that was given out": (lambda f: f.serial.write_text("0002"), "serial is 0002, but 0003 was issued already"),
    "no serial": (lambda f: f.serial.unlink(), "There is no serial file; the copy's is 0004"),
    "a key for everyone": (lambda f: f.cakey.chmod(0o644), "ca_key.pem is open to everyone"),
    "torn inventory": (
        lambda f: f.cert_inventory.write_text(f.cert_inventory.read_text() + "0x00"),
        "has 1 malformed lines",
    ),
    "a file of a bad name": (lambda f: (f.signeddir / "Web 3.pem").write_text("x"), "signed/Web 3.pem is left behind"),
    "a torn certificate": (lambda f: (f.signeddir / "web3.pem").write_text("x"), "signed/web3.pem is left behind"),
    "a torn request": (lambda f: (f.csrdir / "web4.pem").write_text("x"), "requests/web4.pem is left behind"),
    "a certificate under another name": (
        lambda f: (f.signeddir / "web5.pem").write_bytes((f.signeddir / "web1.pem").read_bytes()),
        "signed/web5.pem is for another name: 'web1'",
    ),
    "something else": (lambda f: (f.cadir / "notes.txt").write_text("x"), "Left behind, since a CA does not use it: notes.txt"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_said_and_does_not_stop_it(old, take, target, name) -> None:
    change, sentence = ODD[name]
    change(old.files)
    found = take()
    assert any(sentence in each for each in found.odd), found.odd
    assert bootstrap.open_authority(FolderStore(target), old.rules, now=old.clock).store.next_serial() == 4
    assert target.cakey.stat().st_mode & 0o007 == 0


def test_a_lost_inventory_is_made_from_what_is_signed(old, take, target) -> None:
    old.files.cert_inventory.unlink()
    found = take()
    assert any("There is no inventory.txt" in each for each in found.odd)
    assert bootstrap.open_authority(FolderStore(target), old.rules, now=old.clock).serials_of("web1") == [2]


def test_an_encrypted_key_of_3_8_comes_with_its_password(old, take, target) -> None:
    authority = old.open()
    encryption = PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"secret")
    old.files.cakey.write_bytes(authority.key.private_bytes(Encoding.PEM, *encryption))
    with pytest.raises(ConfigError, match="encrypted"):
        take()
    old.files.capass.parent.mkdir()
    old.files.capass.write_bytes(b"secret")
    take()
    assert bootstrap.open_authority(FolderStore(target), old.rules, now=old.clock).certificate == authority.certificate
    assert target.capass.stat().st_mode & 0o777 == 0o640


def intermediate(old, tmp_path: Path, *, with_root_crl: bool = True, crl_lifetime: timedelta = crl.LIFETIME) -> Path:
    """A CA as `puppetserver ca import` leaves it: signed by a root, bundle and CRLs of both."""
    root_key, own_key, now = keys.KeyKind("ec").generate(), keys.KeyKind("ec").generate(), old.clock.now
    root = certificates.self_signed_authority(root_key, "Root CA", serial=1, ttl=10**8, now=now)
    draft = certificates.self_signed_authority(own_key, "Intermediate CA", serial=2, ttl=10**8, now=now)
    builder = x509.CertificateBuilder(root.subject, draft.subject, own_key.public_key(), 2, now - timedelta(1), now + timedelta(900))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    own = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(own_key.public_key()), critical=False).sign(root_key, SHA256())
    folder = tmp_path / "intermediate"
    (folder / "signed").mkdir(parents=True)
    (folder / "requests").mkdir()
    lists = [crl.sign(own, own_key, number=0, now=now)]
    if with_root_crl:
        lists.append(crl.sign(root, root_key, number=0, now=now, lifetime=crl_lifetime))
    (folder / "ca_crt.pem").write_bytes(bundles.dump([own, root]))
    (folder / "ca_crl.pem").write_bytes(bundles.dump(lists))
    keys.save(folder / "ca_key.pem", own_key)
    (folder / "serial").write_text("0001")
    (folder / "inventory.txt").write_text("")
    return folder


def test_an_intermediate_comes_with_its_chain_and_crls(old, take, target, tmp_path) -> None:
    found = take(intermediate(old, tmp_path))
    assert found.chain == ["CN=Intermediate CA", "CN=Root CA"] and found.odd == []
    authority = bootstrap.open_authority(FolderStore(target), old.rules, now=old.clock)
    assert set(authority.expirations()["crls"]) == {"Intermediate CA", "Root CA"}


def test_a_root_without_a_crl_is_odd_and_one_with_an_ended_crl_a_reason(old, take, tmp_path) -> None:
    assert any("has no CRL of 'CN=Root CA'" in each for each in take(intermediate(old, tmp_path, with_root_crl=False), noop=True).odd)
    shutil.rmtree(tmp_path / "intermediate")
    ended = intermediate(old, tmp_path, crl_lifetime=timedelta(days=1))
    old.clock.pass_(days=2)
    with pytest.raises(ConfigError, match="the CRL of 'CN=Root CA' ended on"):
        take(ended)


def test_a_missing_root_is_a_reason(old, take, tmp_path) -> None:
    folder = intermediate(old, tmp_path)
    (folder / "ca_crt.pem").write_bytes(bundles.dump(bundles.certificates((folder / "ca_crt.pem").read_bytes())[:1]))
    with pytest.raises(ConfigError, match="is missing"):
        take(folder)


def test_a_ca_that_is_there_is_never_replaced(old, take, target) -> None:
    take()
    before = tree(target.cadir)
    with pytest.raises(Conflict, match="There is something in"):
        take()
    assert tree(target.cadir) == before
    with pytest.raises(Conflict, match="is this master's cadir already"):
        adoption.adopt(old.files.cadir, old.files, ssldir=old.ssldir, now=old.clock.now)


def test_empty_folders_and_locks_are_no_ca(take, target) -> None:
    (target.cadir / "signed").mkdir(parents=True)
    (target.cadir / "ca.lock").touch()
    assert take().done


def test_a_folder_without_a_ca_says_where_cas_are(take, tmp_path) -> None:
    with pytest.raises(NotFound) as error:
        take(tmp_path / "nothing")
    assert "puppetserver/ca" in error.value.hint


def test_a_full_disk_leaves_nothing(take, target, monkeypatch) -> None:
    written = []

    def write(path, data, **rest):
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(path))
        written.append(path)
        path.write_bytes(data)

    monkeypatch.setattr(adoption, "write_atomic", write)
    with pytest.raises(OSError, match="No space"):
        take()
    assert list(target.cadir.parent.iterdir()) == []


def test_a_certificate_of_this_host_that_is_of_another_ca_is_said(old, target, tmp_path) -> None:
    host, key = SslDir.at(tmp_path / "host", "master.example.com"), keys.KeyKind("ec").generate()
    host.create()
    other = certificates.self_signed_authority(key, "Another", serial=1, ttl=10**7, now=old.clock.now)
    host.save_certificate(
        certificates.leaf("master.example.com", key.public_key(), issuer=other, issuer_key=key, serial=2, ttl=10**6, now=old.clock.now)
    )
    found = adoption.adopt(old.files.cadir, target, ssldir=host, now=old.clock.now, noop=True)
    assert any("This host's certificate" in each for each in found.odd)


@pytest.mark.parametrize("key_is_there", [False, True])
def test_a_certificate_of_this_host_without_its_key_is_said(old, target, tmp_path, key_is_there) -> None:
    host = SslDir.at(tmp_path / "host", "web1")
    host.create()
    if key_is_there:
        host.save_key(keys.KeyKind("ec").generate())
    found = adoption.adopt(old.files.cadir, target, ssldir=host, now=old.clock.now, noop=True)
    said = [each for each in found.odd if "but not its key" in each and "puppet cert clean --force web1" in each]
    assert len(said) == (0 if key_is_there else 1)


def command(place, *argv):
    out, err = io.StringIO(), io.StringIO()
    return puppet_cert.cert(argv, place, out=out, err=err), out.getvalue(), err.getvalue()


@pytest.fixture
def place(old, target):
    return CaSite(FolderStore(target), SslDir.at(target.cadir.parent / "ssl", "master.example.com"), rules=old.rules, now=old.clock)


def test_the_command_says_what_it_took_and_what_is_odd(old, place, target) -> None:
    (old.files.cadir / "notes.txt").write_text("x")
    code, out, err = command(place, "adopt", str(old.files.cadir), "--noop")
    assert code == 0 and "Would adopt" in out and not target.cadir.exists()
    code, out, err = command(place, "adopt", str(old.files.cadir))
    assert code == 0 and "Notice: 2 certificates, 1 requests, 3 lines of inventory, 1 revoked; the next serial is 0x0004" in out
    assert "Warning: Left behind, since a CA does not use it: notes.txt" in err
    code, out, err = command(place, "adopt", str(old.files.cadir))
    assert code == 24 and err.startswith("Error: There is something in")


def test_the_command_speaks_json(old, place) -> None:
    code, out, _ = command(place, "adopt", "--json", str(old.files.cadir))
    said = json.loads(out)
    assert (
        code == 0 and said["adopted"] and said["signed"] == ["web1", "web2"] and said["ca"]["subject"] == "CN=Puppet CA: master.example.com"
    )


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.skipif(PUPPETSERVER is None, reason="puppetserver's CA tool is not installed: ruby-puppetserver-ca-cli, puppetserver")
def test_a_ca_of_debians_puppetserver_is_taken_over(tmp_path, target) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    text = f"[main]\ncertname = m.example.com\nssldir = {folder}/ssl\ncadir = {folder}/ca\nvardir = {folder}/var\n"
    (folder / "puppet.conf").write_text(text)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    setup = [str(PUPPETSERVER), "ca", "setup", "--config", str(folder / "puppet.conf"), "--ca-name", "Theirs"]
    done = subprocess.run(setup, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    host = SslDir.at(folder / "ssl", "m.example.com")
    found = adoption.adopt(folder / "ca", target, ssldir=host, now=utc_now())
    assert found.done and found.signed == ["m.example.com"] and len(found.chain) == 2
    assert any("root_key.pem" in each for each in found.odd) and not any("m.example.com" in each for each in found.odd)
    assert target.cadir.joinpath("root_key.pem").stat().st_mode & 0o007 == 0
    before = host.certificate()
    authority = bootstrap.bootstrap(
        FolderStore(target), bootstrap.CaOptions(master="m.example.com"), host, ca_name="x", generate=keys.KeyKind("ec").generate
    )
    assert host.certificate() == before and authority.has_issued(before)
    assert authority.issue("web1", keys.KeyKind("ec").generate().public_key(), by="t").serial_number == 2
