from datetime import timedelta

from cryptography import x509

from certs import certificates, oids
from certs.keys import KeyKind


def test_a_leaf_has_the_profile_of_the_reference(ca, now) -> None:
    leaf = ca.leaf("web1.example.com", serial=7, extensions=[certificates.text_extension("1.3.6.1.4.1.34380.1.1.13", "web")])
    ext = leaf.extensions
    assert leaf.version == x509.Version.v3
    assert leaf.serial_number == 7
    assert leaf.subject.rfc4514_string() == "CN=web1.example.com"
    assert leaf.not_valid_before_utc == now - timedelta(days=1)
    assert leaf.signature_hash_algorithm is not None
    assert leaf.signature_hash_algorithm.name == "sha256"
    constraints = ext.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca) == (True, False)
    usage = ext.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.digital_signature, usage.value.key_encipherment, usage.value.key_cert_sign) == (True, True, False)
    extended = ext.get_extension_for_class(x509.ExtendedKeyUsage)
    assert extended.critical
    assert [u.dotted_string for u in extended.value] == ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]
    assert certificates.alternative_names(leaf) == ("DNS:web1.example.com",)
    comment = ext.get_extension_for_oid(x509.ObjectIdentifier(oids.NS_COMMENT)).value.public_bytes()
    assert comment[2:] == b"Puppet Ruby/OpenSSL Internal Certificate"
    skid = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert ext.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == skid
    assert certificates.trusted_extensions(leaf) == {"pp_role": "web"}


def test_an_authority_has_the_profile_of_the_reference(ca) -> None:
    ext = ca.certificate.extensions
    assert ca.certificate.serial_number == 1
    assert ext.get_extension_for_class(x509.BasicConstraints).critical
    assert ext.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = ext.get_extension_for_class(x509.KeyUsage)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.crl_sign, usage.value.digital_signature) == (True, True, True, False)
    assert certificates.is_authority(ca.certificate)


def test_a_leaf_never_outlives_its_issuer(ca, now) -> None:
    for ttl in (10 * 365 * 86400, 10**12, 10**18):
        assert ca.leaf("web1", ttl=ttl).not_valid_after_utc == ca.certificate.not_valid_after_utc


def test_an_authority_of_absurd_length_ends_at_the_last_date_there_is(now) -> None:
    key = KeyKind("ec").generate()
    made = certificates.self_signed_authority(key, "ca", serial=1, ttl=10**15, now=now)
    assert made.not_valid_after_utc.year == 9999


def test_trusted_extensions_read_bare_bytes_and_der_and_site_names(ca) -> None:
    leaf = ca.leaf(
        "web1",
        extensions=[
            ("1.3.6.1.4.1.34380.1.1.1", b"ED803750-E3C7-44F5-BB08-41A04433FE2E"),
            certificates.text_extension("1.3.6.1.4.1.34380.1.2.7", "x"),
            certificates.text_extension(oids.CLI_AUTH, "true"),
        ],
    )
    names = oids.OidNames({"1.3.6.1.4.1.34380.1.2.7": "site_rack"})
    assert certificates.trusted_extensions(leaf, names) == {
        "pp_uuid": "ED803750-E3C7-44F5-BB08-41A04433FE2E",
        "site_rack": "x",
        "pp_cli_auth": "true",
    }
