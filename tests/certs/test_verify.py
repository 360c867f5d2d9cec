from datetime import timedelta

import pytest
from cryptography import x509

from certs import certificates, crl, verify
from certs.keys import KeyKind
from certs.verify import NotVerified, TrustStore


def trust(ca, *crls, revocation="chain") -> TrustStore:
    return TrustStore((ca.certificate,), crls or (ca.crl,), revocation)


def refused(certificate, trust, now, **rest) -> NotVerified:
    with pytest.raises(NotVerified) as error:
        verify.verify(certificate, trust, now=now, **rest)
    return error.value


def test_a_good_leaf_gives_its_chain(ca, now) -> None:
    leaf = ca.leaf("web1")
    assert verify.verify(leaf, trust(ca), now=now, purpose="client") == (leaf, ca.certificate)


def test_dates_are_refused_in_the_reference_words(ca, now) -> None:
    leaf = ca.leaf("web1", ttl=86400)
    late = refused(leaf, trust(ca), now + timedelta(days=2))
    assert (late.reason, late.message) == ("expired", "The certificate 'CN=web1' has expired, verify time is synchronized")
    future = ca.leaf("web1", now=now + timedelta(days=9))
    assert refused(future, trust(ca), now).message == "The certificate 'CN=web1' is not yet valid, verify time is synchronized"


def test_a_certificate_of_another_authority_with_the_same_name_has_an_invalid_signature(ca, stranger, now) -> None:
    error = refused(stranger.leaf("web1"), trust(ca, revocation=False), now)
    assert (error.reason, error.message) == ("signature", "Invalid signature for certificate 'CN=web1'")


def test_a_missing_issuer_is_named(ca, now) -> None:
    error = refused(ca.leaf("web1"), TrustStore(()), now)
    assert error.message == "The issuer 'CN=Puppet CA: test' of certificate 'CN=web1' is missing"


def test_revocation_is_seen_in_both_modes_and_not_with_false(ca, now) -> None:
    leaf = ca.leaf("web1", serial=9)
    revoked = crl.successor_of(ca.crl, ca.certificate, ca.key, now=now, add=[9])
    for mode in ("chain", "leaf"):
        assert refused(leaf, trust(ca, revoked, revocation=mode), now).message == "Certificate 'CN=web1' is revoked"
    verify.verify(leaf, trust(ca, revoked, revocation=False), now=now)


def test_a_revocation_stands_even_on_an_older_list(ca, now) -> None:
    leaf = ca.leaf("web1", serial=9)
    revoked = crl.successor_of(ca.crl, ca.certificate, ca.key, now=now, add=[9])
    assert refused(leaf, trust(ca, ca.crl, revoked), now).reason == "revoked"


def test_lists_that_are_missing_forged_old_or_from_the_future_refuse_all(ca, stranger, now) -> None:
    leaf = ca.leaf("web1")
    name = "CN=Puppet CA: test"
    assert refused(leaf, TrustStore((ca.certificate,), ()), now).message == f"The CRL issued by '{name}' is missing"
    assert refused(leaf, trust(ca, stranger.crl), now).message == f"Invalid signature for CRL issued by '{name}'"
    short = crl.sign(ca.certificate, ca.key, number=1, now=now, lifetime=timedelta(hours=1))
    expired = refused(leaf, trust(ca, short), now + timedelta(hours=2))
    assert expired.message == f"The CRL issued by '{name}' has expired, verify time is synchronized"
    future = crl.sign(ca.certificate, ca.key, number=1, now=now + certificates.BACKDATED + timedelta(minutes=10))
    assert refused(leaf, trust(ca, future), now).message == f"The CRL issued by '{name}' is not yet valid, verify time is synchronized"


def test_a_list_five_minutes_from_the_future_is_accepted(ca, now) -> None:
    ahead = crl.sign(ca.certificate, ca.key, number=1, now=now + certificates.BACKDATED + timedelta(minutes=5))
    verify.verify(ca.leaf("web1"), trust(ca, ahead), now=now)


def intermediate(ca, now, *, path_length=None, is_ca=True):
    key = KeyKind("ec").generate()
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "middle")]))
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(77)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=900))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=path_length), critical=True)
        .sign(ca.key, verify_hash())
    )
    return key, made


def verify_hash():
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256()


def issued_by(key, issuer, name, now, serial=5):
    public = KeyKind("ec").generate().public_key()
    return certificates.leaf(name, public, issuer=issuer, issuer_key=key, serial=serial, ttl=86400, now=now)


def test_an_intermediate_is_found_in_the_bundle_or_in_what_the_peer_sent(ca, now) -> None:
    key, middle = intermediate(ca, now)
    leaf = issued_by(key, middle, "web1", now)
    lists = (ca.crl, crl.sign(middle, key, number=0, now=now))
    verify.verify(leaf, TrustStore((ca.certificate, middle), lists), now=now)
    verify.verify(leaf, TrustStore((ca.certificate,), lists), now=now, untrusted=[middle])
    assert (
        refused(leaf, TrustStore((ca.certificate, middle), lists[1:]), now).message == "The CRL issued by 'CN=Puppet CA: test' is missing"
    )
    verify.verify(leaf, TrustStore((ca.certificate, middle), lists[1:], "leaf"), now=now)


def test_a_revoked_intermediate_refuses_its_leaves(ca, now) -> None:
    key, middle = intermediate(ca, now)
    leaf = issued_by(key, middle, "web1", now)
    lists = (crl.successor_of(ca.crl, ca.certificate, ca.key, now=now, add=[77]), crl.sign(middle, key, number=0, now=now))
    assert refused(leaf, TrustStore((ca.certificate, middle), lists), now).message == "Certificate 'CN=middle' is revoked"


def test_TLS_05_an_agent_certificate_is_no_issuer(ca, now) -> None:
    key, agent = intermediate(ca, now, is_ca=False)
    forged = issued_by(key, agent, "admin", now)
    error = refused(forged, trust(ca), now, untrusted=[agent])
    assert (error.reason, error.message) == ("not-an-authority", "Certificate 'CN=middle' failed verification (79): invalid CA certificate")


def test_a_path_length_is_kept(ca, now) -> None:
    key, middle = intermediate(ca, now, path_length=0)
    key2, lower = KeyKind("ec").generate(), None
    lower = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lower")]))
        .issuer_name(middle.subject)
        .public_key(key2.public_key())
        .serial_number(78)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=900))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, verify_hash())
    )
    leaf = issued_by(key2, lower, "web1", now)
    error = refused(leaf, trust(ca, revocation=False), now, untrusted=[middle, lower])
    assert error.reason == "path-length"


def test_host_names_come_from_the_alternative_names(ca) -> None:
    leaf = ca.leaf("m.example.com", alternative_names=["puppet", "IP:10.0.0.1", "*.lab.example.com"])
    for good in ("puppet", "M.Example.COM", "10.0.0.1", "a.lab.example.com"):
        verify.verify_host(leaf, good)
    for bad in ("other", "10.0.0.2", "a.b.lab.example.com", "lab.example.com"):
        with pytest.raises(NotVerified) as error:
            verify.verify_host(leaf, bad)
    assert error.value.message.startswith(
        "Server hostname 'lab.example.com' did not match server certificate; expected one of *.lab.example.com, m.example.com"
    )


def test_a_name_that_a_certificate_has_twice_is_shown_once(ca) -> None:
    leaf = ca.leaf("localhost", alternative_names=["localhost", "127.0.0.1", "IP:127.0.0.1"])
    with pytest.raises(NotVerified, match=r"expected one of [\w.]+, [\w.]+$"):
        verify.verify_host(leaf, "other")


def test_a_bundle_without_a_root_or_with_a_leaf_is_refused(ca, now) -> None:
    verify.verify_bundle([ca.certificate])
    for bundle in ([ca.leaf("web1")], [intermediate(ca, now)[1]]):
        with pytest.raises(NotVerified):
            verify.verify_bundle(bundle)


@pytest.mark.slow
def test_sha1_counts_for_a_configured_root_and_for_crls_but_never_for_a_leaf(tmp_path) -> None:
    """The CAs of Puppet 2 and the CRLs of 3 to 5 are signed with SHA-1."""
    import subprocess
    from datetime import UTC, datetime

    from certs import signatures
    from certs.files import bundles

    def run(*argv: str) -> None:
        subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=tmp_path)

    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "k.pem", "-out", "c.pem", "-sha1", "-subj", "/CN=old", "-days", "9")
    run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "l.pem", "-out", "l.csr", "-subj", "/CN=leaf")
    run("x509", "-req", "-in", "l.csr", "-CA", "c.pem", "-CAkey", "k.pem", "-sha1", "-days", "5", "-set_serial", "7", "-out", "sha1.pem")
    run(
        "x509", "-req", "-in", "l.csr", "-CA", "c.pem", "-CAkey", "k.pem", "-sha256", "-days", "5", "-set_serial", "8", "-out", "sha256.pem"
    )
    root, old, new = (bundles.certificate((tmp_path / name).read_bytes()) for name in ("c.pem", "sha1.pem", "sha256.pem"))
    believed, moment = TrustStore((root,), (), False), datetime.now(UTC)
    verify.verify_bundle([root])
    verify.verify(new, believed, now=moment)
    assert refused(old, believed, moment).reason == "signature"
    assert not signatures.issued(old, root)
