import errno
import io
import os

import pytest

from ca.commands import puppet_cert
from ca.commands.site import CaSite
from ca.policy import SigningPolicy
from certs import fingerprints
from certs.files import bundles


class Terminal:
    def __init__(self, site, new_key) -> None:
        self.site = site
        self.key = new_key

    def __call__(self, *argv: str) -> tuple[int, list[str], list[str]]:
        out, err = io.StringIO(), io.StringIO()
        place = CaSite(
            self.site.store(),
            self.site.ssldir,
            rules=self.site.rules,
            ca_name="Puppet CA: master.example.com",
            generate=self.key,
            now=self.site.clock,
            report=self.site.trail.append,
        )
        code = puppet_cert.cert(argv, place, out=out, err=err)
        return code, out.getvalue().splitlines(), err.getvalue().splitlines()


@pytest.fixture
def cert(site, new_key):
    return Terminal(site, new_key)


def submit(site, pem, *names: str, **rest: object) -> None:
    registry = site.registry()
    for name in names:
        registry.submit(name, pem(name, **rest), by="t")


def digest(site, name: str) -> str:
    return site.registry().status(name).fingerprint


def test_list_shows_what_waits_quoted_and_padded(cert, site, pem) -> None:
    submit(site, pem, "web1", "database")
    submit(site, pem, "x", dns_alt_names=["puppet"])
    site.registry().sign("web1", by="t")
    assert cert("list") == (
        0,
        [
            f'  "database" (SHA256) {digest(site, "database")}',
            f'  "x"        (SHA256) {digest(site, "x")} (alt names: "DNS:puppet", "DNS:x")',
        ],
        [],
    )


def test_list_all_marks_signed_and_revoked(cert, site, pem) -> None:
    submit(site, pem, "a", "b", "c")
    registry = site.registry()
    registry.sign("a", by="t")
    registry.sign("b", by="t")
    registry.authority.revoke("b", by="t")
    assert cert("--list", "--all") == (
        0,
        [
            f'  "c" (SHA256) {digest(site, "c")}',
            f'+ "a" (SHA256) {digest(site, "a")}',
            f'- "b" (SHA256) {digest(site, "b")} (certificate revoked)',
        ],
        [],
    )
    assert [line[:5] for line in cert("list", "--signed")[1]] == ['+ "a"']
    site.clock.pass_(days=4000)
    assert "(certificate has expired)" in cert("list", "--all")[1][1]


def test_sign_says_what_puppet_says(cert, site, pem) -> None:
    submit(site, pem, "web1")
    path = site.files.csrdir / "web1.pem"
    assert cert("sign", "WEB1") == (
        0,
        ["Notice: Signed certificate request for web1", f"Notice: Removing file Puppet::SSL::CertificateRequest web1 at '{path}'"],
        [],
    )
    assert cert("sign", "--all") == (24, [], ["Error: No waiting certificate requests to sign"])
    hint = "  'puppet cert list' lists pending requests."
    assert cert("sign", "nobody") == (24, [], ["Error: Could not find certificate request for nobody", hint])


def test_alternative_names_need_the_option_but_for_the_masters_own(cert, site, pem) -> None:
    submit(site, pem, "web1", dns_alt_names=["www"])
    code, _, err = cert("sign", "web1")
    assert code == 24
    assert err == [
        "Error: CSR 'web1' contains subject alternative names (DNS:www), which are disallowed. "
        "Use `puppet cert --allow-dns-alt-names sign web1` to sign this request."
    ]
    assert cert("--allow-dns-alt-names", "sign", "web1")[0] == 0
    site.registry().store.save_request("master.example.com", pem("master.example.com", dns_alt_names=["puppet"]))
    assert cert("sign", "master.example.com")[0] == 0


def test_sign_all_goes_on_after_a_refusal_and_fails(cert, site, pem) -> None:
    submit(site, pem, "a", dns_alt_names=["www"])
    submit(site, pem, "b")
    code, out, err = cert("sign", "--all")
    assert (code, out[0], len(err)) == (24, "Notice: Signed certificate request for b", 1)


def test_revoke_works_by_name_and_by_serial(cert, site, pem) -> None:
    submit(site, pem, "a", "b")
    for name in ("a", "b"):
        site.registry().sign(name, by="t")
    assert cert("revoke", "a") == (0, ["Notice: Revoked certificate with serial 2"], [])
    assert cert("revoke", "0x0003") == (0, ["Notice: Revoked certificate with serial 3"], [])
    assert cert("revoke", "zz") == (24, [], ["Error: Could not find a serial number for zz"])
    assert cert("revoke", "0xff")[0] == 24
    assert site.open().revoked() == {2, 3}


def test_clean_revokes_and_removes(cert, site, pem) -> None:
    submit(site, pem, "a")
    site.registry().sign("a", by="t")
    path = site.files.signeddir / "a.pem"
    assert cert("clean", "a") == (
        0,
        ["Notice: Revoked certificate with serial 2", f"Notice: Removing file Puppet::SSL::Certificate a at '{path}'"],
        [],
    )
    assert cert("clean", "zz") == (24, [], ["Error: Could not find a serial number for zz"])


def test_generate_makes_key_and_certificate_and_overwrites_nothing(cert, site) -> None:
    assert cert("generate", "db", "--dns_alt_names", "db1,db2")[0] == 0
    made = bundles.certificate((site.root / "ssl" / "certs" / "db.pem").read_bytes())
    assert made == site.open().signed_certificate("db")
    assert (site.root / "ssl" / "private_keys" / "db.pem").stat().st_mode & 0o777 == 0o640
    before = site.snapshot()
    assert cert("generate", "db")[0] == 24
    assert site.snapshot() == before
    code, out, _ = cert("clean", "db")
    assert code == 0
    assert any("Puppet::SSL::Key db" in line for line in out)


def test_print_fingerprint_and_verify(cert, site, pem) -> None:
    submit(site, pem, "a", "b")
    site.registry().sign("a", by="t")
    assert "Subject: CN = a" in "\n".join(cert("print", "a")[1])
    assert cert("fingerprint", "a") == (0, [f"a (SHA256) {digest(site, 'a')}"], [])
    sha1 = fingerprints.fingerprint(site.open().signed_certificate("a"), "SHA1")
    assert cert("fingerprint", "a", "--digest", "sha1") == (0, [f"a (SHA1) {sha1}"], [])
    assert len(cert("fingerprint", "--all")[1]) == 2
    assert cert("verify", "a") == (0, [], [])
    site.registry().authority.revoke("a", by="t")
    assert cert("verify", "a") == (24, [], ["Error: Could not verify a: certificate revoked"])
    assert cert("print", "zz") == (24, [], ["Error: Could not find a certificate for zz"])


def test_reinventory_says_how_many_lines(cert, site) -> None:
    assert cert("reinventory") == (0, [f"Notice: Wrote 1 lines to {site.files.cert_inventory}"], [])


def test_without_a_ca_it_exits_23_and_half_a_ca_is_not_touched(cert, site) -> None:
    site.files.cakey.unlink()
    before = site.snapshot()
    code, _, err = cert("list")
    assert code == 23
    assert "is not whole. Missing: key" in err[0]
    assert site.snapshot() == before


def test_wrong_options_are_said(cert) -> None:
    assert cert("list", "--nonsense")[0] == 1
    assert cert("explode") == (
        1,
        [],
        [
            "Error: Could not parse application options: 'explode' is not an action of the CA",
            "  The actions are list, sign, revoke, clean, generate, print, fingerprint, verify, reinventory, adopt, rollover.",
        ],
    )
    assert cert("sign")[0] == 24


def test_a_policy_setting_allows_names_without_the_option(cert, site, pem) -> None:
    from dataclasses import replace

    site.rules = replace(site.rules, policy=SigningPolicy(allow_alternative_names=True))
    submit(site, pem, "web1", dns_alt_names=["www"])
    assert cert("--no-allow-dns-alt-names", "sign", "web1")[0] == 24
    assert cert("sign", "web1")[0] == 0


def test_the_masters_own_certificate_is_made_anew_after_a_clean(cert, empty_site, site) -> None:
    site.bootstrap()
    first = site.ssldir.certificate()
    assert cert("clean", "--force", "master.example.com")[0] == 0
    site.bootstrap()
    second = site.ssldir.certificate()
    assert second.serial_number == first.serial_number + 1
    assert site.open().revoked() == {first.serial_number}


@pytest.mark.parametrize(
    ("number", "cure"), [(errno.ENOSPC, "Free some space on its file system"), (errno.EACCES, "as root (sudo)"), (errno.EIO, "")]
)
def test_a_fault_of_the_disk_names_the_file_and_a_cure_that_fits(
    cert, site, monkeypatch: pytest.MonkeyPatch, number: int, cure: str
) -> None:
    def fail(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    code, _, err = cert("generate", "web1")
    assert code == 24
    assert err[0].startswith(f"Error: {os.strerror(number)}: {site.ssldir.root}")
    assert [cure in line for line in err[1:]] == ([True] if cure else [])
