import stat

import pytest

from certs import csr
from certs.files.bundles import dump
from certs.files.ssldir import SslDir
from certs.keys import KeyKind
from shared.errors import BadData, BadName
from shared.settings import CommonSettings, Conf, load
from tests.support.needs import needs_root


def test_files_are_where_puppet_has_them_with_its_modes(tmp_path, ca) -> None:
    ssl = SslDir.at(tmp_path / "ssl", "web1")
    ssl.create()
    ssl.save_key(KeyKind("ec").generate())
    ssl.save_authorities(dump([ca.certificate]))
    ssl.save_crls(dump([ca.crl]))
    ssl.save_certificate(ca.leaf("web1"))
    ssl.save_request(csr.build(ca.key, "web1"))
    found = {str(p.relative_to(ssl.root)): stat.S_IMODE(p.stat().st_mode) for p in ssl.root.rglob("*")}
    assert found == {
        "certs": 0o755,
        "certs/ca.pem": 0o644,
        "certs/web1.pem": 0o644,
        "private_keys": 0o750,
        "private_keys/web1.pem": 0o640,
        "public_keys": 0o755,
        "public_keys/web1.pem": 0o644,
        "certificate_requests": 0o755,
        "certificate_requests/web1.pem": 0o644,
        "private": 0o750,
        "crl.pem": 0o644,
    }


def test_what_is_not_there_is_none(tmp_path) -> None:
    ssl = SslDir.at(tmp_path, "web1")
    assert (ssl.authorities(), ssl.crls(), ssl.certificate(), ssl.key(), ssl.request()) == (None, None, None, None, None)


def test_a_damaged_file_is_named(tmp_path) -> None:
    ssl = SslDir.at(tmp_path, "web1")
    ssl.create()
    ssl.hostcert.write_text("-----BEGIN CERTIFICATE-----\nAAA")
    with pytest.raises(BadData, match=r"certs/web1\.pem"):
        ssl.certificate()


def test_a_name_that_climbs_is_refused(tmp_path) -> None:
    with pytest.raises(BadName):
        SslDir.at(tmp_path, "../web1")


@needs_root
def test_root_gives_new_files_to_the_owner_of_the_directory(tmp_path, ca) -> None:
    import os

    ssl = SslDir.at(tmp_path / "ssl", "web1")
    ssl.root.mkdir()
    os.chown(ssl.root, 65534, 65534)
    ssl.create()
    ssl.save_key(KeyKind("ec").generate())
    ssl.save_certificate(ca.leaf("web1"))
    assert {p.stat().st_uid for p in ssl.root.rglob("*")} == {65534}


def test_each_file_is_where_the_settings_say(tmp_path) -> None:
    flags = {"ssldir": str(tmp_path / "ssl"), "certdir": str(tmp_path / "certs"), "hostprivkey": str(tmp_path / "keys" / "own.pem")}
    settings = load(
        CommonSettings, section="agent", flags={**flags, "certname": "web1", "ssl_lockfile": str(tmp_path / "lock")}, conf=Conf()
    )
    ssl = SslDir.of(settings)
    ssl.create()
    ssl.save_key(KeyKind("ec").generate())
    assert ssl.localcacert == tmp_path / "certs" / "ca.pem" and ssl.hostcert == tmp_path / "certs" / "web1.pem"
    assert (tmp_path / "keys" / "own.pem").stat().st_mode & 0o777 == 0o640
    assert ssl.hostcrl == tmp_path / "ssl" / "crl.pem" and ssl.lock == tmp_path / "lock"
    assert not (tmp_path / "ssl" / "certs").exists()
