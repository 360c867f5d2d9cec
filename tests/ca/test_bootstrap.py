import errno
import os
import subprocess
from pathlib import Path

import pytest

from ca.setup import bootstrap
from certs import certificates, crl, keys
from certs.files import bundles
from certs.keys import KeyKind
from shared.errors import ConfigError


def test_a_first_start_makes_the_ca_and_the_masters_own_certificate(empty_site) -> None:
    authority = empty_site.bootstrap()
    ssl = empty_site.ssldir
    own = ssl.certificate()
    assert certificates.alternative_names(own) == ("DNS:master.example.com", "DNS:puppet", "DNS:puppet.example.com")
    assert certificates.authorization_extensions(own) == {"pp_cli_auth": "true"}
    assert own.serial_number == 2
    assert keys.belongs(ssl.key(), own.public_key())
    assert ssl.authorities() == (authority.certificate,)
    assert ssl.crls()[0].issuer == authority.certificate.subject
    assert authority.signed_certificate("master.example.com") == own


def test_a_second_start_changes_nothing(empty_site) -> None:
    empty_site.bootstrap()
    before = empty_site.snapshot()
    empty_site.bootstrap()
    assert empty_site.snapshot() == before


def test_configured_names_replace_the_usual_ones(empty_site) -> None:
    empty_site.bootstrap(dns_alt_names=["ca.example.com"])
    assert certificates.alternative_names(empty_site.ssldir.certificate()) == ("DNS:ca.example.com", "DNS:master.example.com")


def test_the_masters_certificate_is_renewed_with_its_key_before_it_ends(empty_site) -> None:
    empty_site.rules = bootstrap.CaOptions(master="master.example.com", ca_ttl=400 * 86400)
    empty_site.bootstrap()
    first = empty_site.ssldir.certificate()
    authority = empty_site.open()
    short = authority.issue("master.example.com", first.public_key(), ttl=60 * 86400, by="t")
    empty_site.ssldir.save_certificate(short)
    empty_site.clock.pass_(days=20)
    empty_site.bootstrap()
    assert empty_site.ssldir.certificate() == short
    empty_site.clock.pass_(days=15)
    empty_site.bootstrap()
    renewed = empty_site.ssldir.certificate()
    assert renewed.serial_number > short.serial_number
    assert renewed.public_key() == short.public_key()


def test_a_lost_key_of_the_master_is_said_with_the_steps(empty_site) -> None:
    empty_site.bootstrap()
    keys.save(empty_site.ssldir.hostprivkey, KeyKind("ec").generate())
    with pytest.raises(ConfigError, match="does not match the private key") as error:
        empty_site.bootstrap()
    assert "puppet cert clean --force master.example.com" in error.value.hint


def test_a_missing_key_of_the_master_is_named_and_no_new_one_gets_in_its_way(empty_site) -> None:
    empty_site.bootstrap()
    key = empty_site.ssldir.hostprivkey.read_bytes()
    for path in (empty_site.ssldir.hostprivkey, empty_site.ssldir.hostcert):  # as after 'puppet cert adopt'
        path.unlink()
    with pytest.raises(ConfigError, match=f"but not its key {empty_site.ssldir.hostprivkey}") as error:
        empty_site.bootstrap()
    assert "puppet cert clean --force master.example.com" in error.value.hint
    assert not empty_site.ssldir.hostprivkey.exists()
    empty_site.ssldir.hostprivkey.write_bytes(key)
    assert empty_site.bootstrap().signed_certificate("master.example.com") == empty_site.ssldir.certificate()


def test_a_certificate_of_another_ca_is_not_overwritten(empty_site, site, tmp_path_factory) -> None:
    empty_site.bootstrap()
    other = type(empty_site)(tmp_path_factory.mktemp("other"))
    foreign = other.create().issue("master.example.com", empty_site.ssldir.key().public_key(), by="t")
    empty_site.ssldir.save_certificate(foreign)
    with pytest.raises(ConfigError, match="was not issued by the CA"):
        empty_site.bootstrap()
    assert empty_site.ssldir.certificate() == foreign


@pytest.mark.slow
def test_a_ca_of_puppet_3_with_an_encrypted_key_is_adopted_as_it_is(empty_site, pem) -> None:
    """Its files as its Ruby CA leaves them: 3DES key with ca.pass, CRL signed with SHA-1, serial with four digits."""
    files = empty_site.files
    for folder in (files.csrdir, files.signeddir, files.capass.parent):
        folder.mkdir(parents=True)
    files.capass.write_text("4b!Zq8:rT^e1Kq0[x_Wv")
    run = lambda *argv: subprocess.run(argv, check=True, capture_output=True)  # noqa: E731
    run("openssl", "genrsa", "-traditional", "-des3", "-passout", f"file:{files.capass}", "-out", str(files.cakey), "2048")
    extensions = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # req -x509 adds CA:TRUE itself
    subject = ["-subj", "/CN=Puppet CA: old.example.com", "-set_serial", "1", "-days", "1500"]
    run(
        "openssl",
        "req",
        "-x509",
        "-new",
        "-key",
        str(files.cakey),
        "-passin",
        f"file:{files.capass}",
        *subject,
        *extensions,
        "-out",
        str(files.cacert),
    )
    config = files.cadir / "openssl.cnf"
    config.write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={files.cadir}/index\ncrlnumber={files.cadir}/crlnumber\n"
        f"default_md=sha1\ndefault_crl_days=1500\ncrl_extensions=e\n[e]\nauthorityKeyIdentifier=keyid\n"
    )
    (files.cadir / "index").write_text("R\t301231235959Z\t250101000000Z,keyCompromise\t05\tunknown\t/CN=gone\n")
    (files.cadir / "crlnumber").write_text("07")
    run(
        "openssl", "ca", "-gencrl", "-config", str(config), "-cert", str(files.cacert), "-keyfile", str(files.cakey),
        "-passin", f"file:{files.capass}", "-out", str(files.cacrl),
    )  # fmt: skip
    files.serial.write_text("0009")
    files.cert_inventory.write_text("0x0008 2026-01-01T00:00:00UTC 2036-01-01T00:00:00UTC /CN=old-agent\n")
    for name in ("openssl.cnf", "index", "crlnumber", "crlnumber.old"):
        (files.cadir / name).unlink(missing_ok=True)
    key_before = files.cakey.read_bytes()

    from datetime import UTC, datetime

    empty_site.clock.now = datetime.now(UTC)
    authority = empty_site.bootstrap()
    assert authority.certificate.subject.rfc4514_string() == "CN=Puppet CA: old.example.com"
    assert empty_site.ssldir.certificate().serial_number == 9
    assert authority.revoke("old-agent", by="t") == [8]
    assert crl.serials(authority.crl()) == {5, 8}
    assert crl.number_of(authority.crl()) == 8
    assert files.cakey.read_bytes() == key_before
    registry = empty_site.registry()
    registry.submit("web1", pem("web1"), by="t")
    assert registry.authority.has_issued(registry.sign("web1", by="t"))


def test_an_intermediate_ca_with_a_bundle_is_adopted_and_its_other_crls_are_kept(empty_site, pem) -> None:
    from datetime import timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    now = empty_site.clock.now
    root_key, key = KeyKind("ec").generate(), KeyKind("ec").generate()
    root = certificates.self_signed_authority(root_key, "root", serial=1, ttl=10**9, now=now)
    middle = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Puppet CA: i")]))
        .issuer_name(root.subject)
        .public_key(key.public_key())
        .serial_number(2)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=300))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(root_key, SHA256())
    )
    files = empty_site.files
    files.cadir.mkdir(parents=True)
    keys.save(files.cakey, key)
    files.cacert.write_bytes(bundles.dump([root, middle]))  # not in the usual order
    lists = [crl.sign(root, root_key, number=3, now=now), crl.sign(middle, key, number=1, now=now)]
    files.cacrl.write_bytes(bundles.dump(lists))
    files.serial.write_text("0003")
    files.cert_inventory.write_text("")
    authority = empty_site.bootstrap()
    assert authority.certificate == middle
    registry = empty_site.registry()
    registry.submit("web1", pem("web1"), by="t")
    made = registry.sign("web1", by="t")
    assert made.not_valid_after_utc == middle.not_valid_after_utc  # a leaf never outlives its issuer
    registry.authority.revoke("web1", by="t")
    stored = bundles.revocation_lists(files.cacrl.read_bytes())
    assert [(c.issuer, crl.number_of(c)) for c in stored] == [(middle.subject, 2), (root.subject, 3)]
    newer = crl.sign(root, root_key, number=4, now=now)
    registry.authority.upload_crls(bundles.dump([newer]), by="t")
    assert crl.number_of(bundles.revocation_lists(authority.crl_pem())[1]) == 4


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda files: files.cakey.write_text("junk"), "There is no private key in .*ca_key.pem"),
        (lambda files: files.cacert.write_text("junk"), "There is no certificate"),
        (lambda files: files.serial.write_text("zz"), "not a number in hex"),
        (lambda files: files.cacrl.write_bytes(files.cacrl.read_bytes()[:-40]), "CRL .* cannot be read"),
        (lambda files: keys.save(files.cakey, KeyKind("ec").generate()), "does not belong to a certificate"),
    ],
)
def test_a_damaged_ca_is_refused_with_the_file_and_left_alone(site, damage, message: str) -> None:
    damage(site.files)
    before = site.snapshot()
    with pytest.raises(ConfigError, match=message):
        site.bootstrap()
    assert site.snapshot() == before


@pytest.mark.parametrize("code", [errno.EPERM, errno.EROFS])
def test_a_private_file_whose_mode_cannot_be_changed_is_named_and_used(site, caplog, monkeypatch, code: int) -> None:
    chmod = Path.chmod

    def fail(path: Path, mode: int) -> None:
        if path == site.files.cakey:
            raise OSError(code, os.strerror(code))
        chmod(path, mode)

    site.files.cakey.chmod(0o644)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", fail)
        site.bootstrap()
    assert f"{site.files.cakey} is readable by everyone and its mode could not be changed: {os.strerror(code)}" in caplog.text


def test_open_modes_of_private_files_are_repaired_with_a_warning(site, caplog) -> None:
    site.files.cakey.chmod(0o644)
    site.bootstrap()
    assert site.files.cakey.stat().st_mode & 0o777 == 0o640
    assert "was readable by everyone" in caplog.text
