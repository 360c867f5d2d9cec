"""The CA's rows of the attack table: what a certificate may say, who may change it, and the keys."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from ca import autosign
from ca.autosign import Autosign
from ca.policy import PolicyViolation, SigningPolicy
from certs import certificates, crl, csr, keys, oids
from certs.files import bundles
from certs.keys import KeyKind
from shared.errors import BadRequest, Conflict, Denied, NotFound, PuppetError, Unavailable
from tests.support.ca_site import KEY, refused, request
from tests.support.processes import until_ended
from tests.support.waiting import until, until_late

ALLOW_ALL = SigningPolicy(True, True)


async def test_CA_14_foreign_names_are_refused_by_autosign_and_by_hand_without_the_flag(site) -> None:
    ca = site.service(autosign=True)
    for number, asked in enumerate((["puppet"], ["master"], ["other"])):
        name = f"web{number}"
        pem = bundles.dump([csr.build(KEY, name, dns_alt_names=asked)])
        with pytest.raises(BadRequest, match="extra subject alternative names"):
            await ca.submit_request(name, pem)
        assert (await ca.status(name)).state == "requested"
        with pytest.raises(PolicyViolation):
            await ca.set_state(name, "signed")
    site.registry().sign("web0", by="t", policy_=SigningPolicy(allow_alternative_names=True))
    assert site.files.serial.read_text() == "0003"
    await ca.close()


@pytest.mark.parametrize(
    "name",
    [
        x509.DNSName("*.example.com"),
        x509.UniformResourceIdentifier("https://x.example.com"),
        x509.RFC822Name("a@example.com"),
        x509.DirectoryName(csr.common_name("x")),
        x509.OtherName(x509.ObjectIdentifier("1.2.3.4"), b"\x0c\x01a"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4")),
    ],
    ids=["wildcard", "uri", "email", "dir", "other", "registered"],
)
def test_CA_15_unusual_alternative_names_are_refused_even_with_the_flag(site, name: x509.GeneralName) -> None:
    pem = request("web1", x509.SubjectAlternativeName([x509.DNSName("web1"), name]))
    refused(site, "web1", pem)
    registry = site.registry()
    registry.store.save_request("web1", pem)  # it may have come there another way
    with pytest.raises(PolicyViolation):
        registry.sign("web1", by="t", policy_=ALLOW_ALL)


def test_CA_15_fifty_thousand_names_are_too_large(site) -> None:
    many = x509.SubjectAlternativeName([x509.DNSName(f"a{n}.example.com") for n in range(50_000)])
    with pytest.raises(PuppetError) as error:
        site.registry().submit("web1", request("web1", many), by="t")
    assert error.value.status in (400, 413)
    few = x509.SubjectAlternativeName([x509.DNSName(f"a{n}") for n in range(200)])
    refused(site, "web1", request("web1", few), "more than 100")


def test_CA_16_an_alternative_name_equal_to_the_own_one_is_fine(site) -> None:
    registry = site.registry()
    registry.submit("web1", request("web1", x509.SubjectAlternativeName([x509.DNSName("web1")])), by="t")
    assert certificates.alternative_names(registry.sign("web1", by="t")) == ("DNS:web1",)


FOREIGN = [
    x509.BasicConstraints(ca=True, path_length=None),
    x509.KeyUsage(True, False, True, False, False, True, True, False, False),
    x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]),
    x509.CertificatePolicies([x509.PolicyInformation(x509.ObjectIdentifier("1.2.3.4"), None)]),
    x509.NameConstraints([x509.DNSName("example.com")], None),
    x509.UnrecognizedExtension(x509.ObjectIdentifier(oids.NS_COMMENT), b"\x16\x01a"),
]


@pytest.mark.parametrize("extension", FOREIGN, ids=lambda e: type(e).__name__)
def test_CA_17_foreign_extensions_are_refused_under_every_policy(site, extension: x509.ExtensionType) -> None:
    error = refused(site, "web1", request("web1", extension), "not permitted")
    assert error.legacy.startswith("CSR has request extensions that are not permitted: ")
    registry = site.registry()
    registry.store.save_request("web1", request("web1", extension))
    with pytest.raises(PolicyViolation):
        registry.sign("web1", by="t", policy_=ALLOW_ALL)


def test_CA_17_one_extension_twice_is_refused(site) -> None:
    value = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.1"), b"\x0c\x01a")
    other = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.2"), b"\x0c\x01a")
    der = x509.load_pem_x509_csr(request("web1", value, other)).public_bytes(Encoding.DER)
    first = x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.1")
    encoded = bytes.fromhex("2b0601040182 8c4c 01 01 02".replace(" ", ""))
    assert der.count(encoded) == 1, first
    doubled = der.replace(encoded, encoded[:-1] + b"\x01")
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n" + __import__("base64").encodebytes(doubled) + b"-----END CERTIFICATE REQUEST-----\n"
    refused(site, "web1", pem, "twice")


def test_CA_17_what_is_issued_has_the_fixed_profile(site) -> None:
    registry = site.registry()
    registry.submit("web1", request("web1"), by="t")
    made = registry.sign("web1", by="t", policy_=ALLOW_ALL)
    basic = made.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = made.extensions.get_extension_for_class(x509.KeyUsage)
    assert (basic.critical, basic.value.ca, usage.critical, usage.value.key_cert_sign, usage.value.crl_sign) == (
        True,
        False,
        True,
        False,
        False,
    )


def test_CA_18_cli_auth_never_comes_by_request_and_other_rights_only_by_the_setting(site) -> None:
    right = x509.UnrecognizedExtension(x509.ObjectIdentifier(oids.CLI_AUTH), b"\x0c\x04true")
    role = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.3.13"), b"\x0c\x01a")
    refused(site, "web1", request("web1", right), "pp_cli_auth")
    registry = site.registry()
    registry.store.save_request("web1", request("web1", right))
    with pytest.raises(PolicyViolation):
        registry.sign("web1", by="t", policy_=ALLOW_ALL)
    registry.store.remove_request("web1")
    registry.submit("web2", request("web2", role), by="t")
    with pytest.raises(PolicyViolation):
        registry.sign("web2", by="t")
    registry.sign("web2", by="t", policy_=ALLOW_ALL)


def weak_requests() -> list[tuple[str, bytes]]:
    import subprocess

    def made(*argv: str) -> bytes:
        command = ["openssl", "req", "-new", "-nodes", "-subj", "/CN=web1", "-keyout", "/dev/null", *argv]
        return subprocess.run(command, check=True, capture_output=True).stdout

    return [
        ("512", made("-newkey", "rsa:512")),
        ("1024", made("-newkey", "rsa:1024")),
        ("112|supported|well-formed", made("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp112r1")),
        ("explicit", made("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit")),
        ("MD5|signing key", made("-newkey", "rsa:2048", "-md5")),
        ("SHA1|signing key", made("-newkey", "rsa:2048", "-sha1")),
    ]


@pytest.mark.slow
def test_CA_19_weak_keys_and_digests_are_refused_saying_which_rule(site) -> None:
    for match, pem in weak_requests():
        refused(site, "web1", pem, match)
    assert keys.Strength("rsa", 2048, 1).weakness
    registry = site.registry()
    for number, key in enumerate((KeyKind("rsa", 2048).generate(), ec.generate_private_key(ec.SECP384R1()))):
        registry.submit(f"ok{number}", request(f"ok{number}", key=key), by="t")


def test_CA_19_ed25519_is_accepted(site) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem = bundles.dump([csr.build(Ed25519PrivateKey.generate(), "web1")])
    registry = site.registry()
    registry.submit("web1", pem, by="t")
    assert registry.authority.has_issued(registry.sign("web1", by="t"))


def test_CA_21_wrong_states_change_nothing_and_a_long_life_is_cut(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    before = site.snapshot()
    for desired, ttl in (
        (None, None), ([], None), ("Signed", None), (["signed"], None),
        ("signed", -1), ("signed", 0), ("signed", "1y"), ("signed", True),
    ):  # fmt: skip
        with pytest.raises(BadRequest):
            registry.set_state("web1", desired, ttl=ttl, by="t")
    with pytest.raises(Conflict):
        registry.set_state("web1", "revoked", by="t")
    for desired in ("signed", "revoked"):
        with pytest.raises(NotFound):
            registry.set_state("unknown", desired, by="t")
    assert site.snapshot() == before
    made = registry.set_state("web1", "signed", ttl=10**12, by="t")
    assert made.not_valid_after_utc == registry.authority.certificate.not_valid_after_utc


async def test_CA_22_renewal_is_for_valid_certificates_of_ours_and_a_revocation_covers_all_of_a_name(site, pem, tmp_path_factory) -> None:
    ca = site.service(autosign=True)

    async def fresh(name: str) -> x509.Certificate:
        await ca.submit_request(name, pem(name))
        return x509.load_pem_x509_certificate(await ca.certificate(name) or b"")

    revoked, expired, good = await fresh("revoked"), await fresh("expired"), await fresh("good")
    await ca.set_state("revoked", "revoked")
    other = type(site)(tmp_path_factory.mktemp("other"), clock=site.clock)
    foreign = other.create().issue("good", good.public_key(), by="t")
    for bad, when in ((revoked, 0), (foreign, 0), (expired, 3000)):
        site.clock.pass_(days=when)
        with pytest.raises(Denied):
            await ca.renew(bad.public_bytes(Encoding.DER))
        site.clock.pass_(days=-when)
    serials = {good.serial_number}
    for _ in range(2):
        renewed = x509.load_pem_x509_certificate(await ca.renew(good.public_bytes(Encoding.DER)))
        serials.add(renewed.serial_number)
    assert len(serials) == 3
    assert set(await ca.set_state("good", "revoked")) == serials
    assert serials <= ca.authority.revoked()
    for each in (good, renewed):
        with pytest.raises(Denied, match="revoked"):
            await ca.renew(each.public_bytes(Encoding.DER))
    await ca.close()


def test_CA_23_uploaded_lists_are_those_of_our_chain_and_newer(site) -> None:
    authority = site.open()
    own, key, now = authority.certificate, authority.key, site.clock.now
    stranger_key = KeyKind("ec").generate()
    stranger = certificates.self_signed_authority(stranger_key, "stranger", serial=1, ttl=10**8, now=now)
    delta = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(own.subject)
        .last_update(now)
        .next_update(now)
        .add_extension(x509.DeltaCRLIndicator(1), critical=True)
        .sign(key, SHA256())
    )
    before = site.snapshot()
    for lists in ([crl.sign(stranger, stranger_key, number=1, now=now)], [delta], [crl.sign(own, key, number=99, now=now)]):
        with pytest.raises(BadRequest):
            authority.upload_crls(bundles.dump(lists), by="admin")
    for body in (b"", b"junk", b"x" * 50_000_000):
        with pytest.raises(BadRequest):
            authority.upload_crls(body, by="admin")
    assert site.snapshot() == before


@pytest.mark.parametrize(
    ("name", "pattern", "signed"),
    [
        ("a.example.com", "*.example.com", True),
        ("a.b.example.com", "*.example.com", True),
        ("example.com", "*.example.com", False),
        ("example.com.evil.net", "*.example.com", False),
        ("xexample.com", "*.example.com", False),
        ("a.example.com", "a.example.com", True),
        ("aXexample.com", "a.example.com", False),
        ("a.example.com", "*.Example.COM", True),
        ("anything", "*", True),
        ("a.example.com", "a*.example.com", False),
        (".example.com", "*.example.com", False),
    ],
)
def test_CA_24_patterns_match_whole_labels(name: str, pattern: str, signed: bool) -> None:
    assert autosign.matches(name, pattern) is signed


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.slow
async def test_CA_24_the_policy_program_gets_name_and_request_in_a_clean_place_and_is_bounded(tmp_path: Path, pem) -> None:
    text = pem("web1")
    good = script(tmp_path / "good", f'test "$#" = 1 && test "$1" = web1 && cat > {tmp_path}/in && env > {tmp_path}/env')
    os.environ["A_SECRET_OF_THE_MASTER"] = "canary"
    try:
        assert (await Autosign(good).decide("web1", text)).sign
    finally:
        del os.environ["A_SECRET_OF_THE_MASTER"]
    assert (tmp_path / "in").read_bytes() == text
    assert "canary" not in (tmp_path / "env").read_text()
    for body in ("exit 1", "exit 255", "cat /dev/zero", "kill -9 $$"):
        decision = await Autosign(script(tmp_path / "bad", body), timeout=300, most=65536).decide("web1", text)
        assert not decision.sign, body
    child = tmp_path / "child"
    endless = script(tmp_path / "bad", f"sleep 301 & echo $! > {child}.new; mv {child}.new {child}; wait")
    deciding = asyncio.create_task(Autosign(endless, timeout=300, most=65536).decide("web1", text))
    await until(child.exists)
    await until_late(deciding, 300)
    assert not (await deciding).sign
    async with asyncio.timeout(60):
        await until_ended(int(child.read_text()))


@pytest.mark.slow
async def test_CA_24_a_program_that_says_no_leaves_the_request_pending(site, pem, tmp_path: Path) -> None:
    ca = site.service(autosign=script(tmp_path / "no", "exit 1"))
    assert await ca.submit_request("web1", pem("web1")) is False
    assert (await ca.status("web1")).state == "requested"
    await ca.close()


def test_CA_25_private_keys_are_never_open_to_others(empty_site) -> None:
    """Every mode that a file with a key ever has is seen at the call that sets it."""
    seen: list[tuple[str, int]] = []
    real_open, real_fchmod = os.open, os.fchmod

    def watched_open(path, flags, mode=0o777, **rest):
        fd = real_open(path, flags, mode, **rest)
        if flags & os.O_CREAT:
            seen.append((str(path), stat.S_IMODE(os.fstat(fd).st_mode)))
        return fd

    def watched_fchmod(fd, mode):
        real_fchmod(fd, mode)
        seen.append((str(Path(f"/proc/self/fd/{fd}").readlink()), mode))

    os.open, os.fchmod = watched_open, watched_fchmod
    umask = os.umask(0)
    try:
        empty_site.bootstrap()
    finally:
        os.open, os.fchmod = real_open, real_fchmod
        os.umask(umask)
    private = [(path, mode) for path, mode in seen if "cakey" in Path(path).name or "ca_key" in Path(path).name or "/private_keys/" in path]
    assert len(private) >= 4
    for path, mode in private:
        assert not mode & 0o007, path
    assert stat.S_IMODE(empty_site.files.cakey.stat().st_mode) & 0o007 == 0
    assert stat.S_IMODE(empty_site.ssldir.privatekeydir.stat().st_mode) & 0o007 == 0
    assert stat.S_IMODE(empty_site.files.cadir.stat().st_mode) & 0o007 == 0


@pytest.mark.slow
def test_CA_25_a_flood_of_requests_is_capped_and_known_agents_go_on(site, pem) -> None:
    registry = site.registry(max_pending_requests=200, master="master.example.com")
    known = registry.authority.issue("known", KEY.public_key(), by="t")
    refusals = 0
    texts = [(f"n{number}", pem(f"n{number}")) for number in range(300)]
    for name, text in texts:
        try:
            registry.submit(name, text, by="flood")
        except Unavailable as err:
            refusals += 1
            assert err.status == 503
            assert err.retry_after > 0
    assert (refusals, len(registry.store.request_names())) == (100, 200)
    assert registry.authority.renew(known, by="known").serial_number > known.serial_number


def test_TLS_13_no_agent_certificate_carries_the_masters_names(empty_site, pem) -> None:
    authority = empty_site.bootstrap()
    registry = empty_site.registry()
    for name in ("web1", "web2"):
        registry.submit(name, pem(name), by="t")
        registry.sign(name, by="t")
    masters = set(certificates.alternative_names(empty_site.ssldir.certificate()))
    for name in authority.store.signed_names():
        if name != "master.example.com":
            assert not masters & set(certificates.alternative_names(authority.signed_certificate(name)))
