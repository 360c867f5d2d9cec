import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from certs import csr, der, oids
from certs.files.bundles import dump
from certs.keys import KeyKind
from shared.errors import BadData, ConfigError, TooLarge

KEY = KeyKind("ec").generate()


def test_a_plain_request_has_only_its_name() -> None:
    facts = csr.parse(dump([csr.build(KEY, "web1.example.com")]))
    assert facts.name == "web1.example.com"
    assert facts.subject == "/CN=web1.example.com"
    assert facts.signature_valid
    assert (facts.extensions, facts.alternative_names, facts.attributes) == ((), (), ())


def test_alternative_names_bring_the_name_itself_sorted_and_once() -> None:
    facts = csr.parse(dump([csr.build(KEY, "m.example.com", dns_alt_names=["puppet", "IP:10.0.0.1", "DNS:puppet"])]))
    assert facts.alternative_names == ("DNS:m.example.com", "DNS:puppet", "IP:10.0.0.1")


def test_attributes_and_extensions_of_the_file_are_in_the_request(tmp_path) -> None:
    path = tmp_path / "csr_attributes.yaml"
    path.write_text(
        "custom_attributes:\n  1.2.840.113549.1.9.7: s3cret\n  1.3.6.1.4.1.34380.1.2.9: grün\n"
        "extension_requests:\n  pp_role: web\n  1.3.6.1.4.1.34380.1.2.1: 42\n"
    )
    facts = csr.parse(dump([csr.build(KEY, "web1", attributes=csr.CsrAttributes.load(path), auto_renew=True)]))
    assert facts.attribute(oids.CHALLENGE_PASSWORD) == "s3cret"
    assert facts.attribute("1.3.6.1.4.1.34380.1.2.9") == "grün"
    assert facts.attribute(oids.AUTO_RENEW) == "true"
    assert {e.oid: e.text for e in facts.extensions} == {"1.3.6.1.4.1.34380.1.1.13": "web", "1.3.6.1.4.1.34380.1.2.1": "42"}
    assert all(e.value.startswith(b"\x0c") for e in facts.extensions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "expected a map"),
        ("other: {}\n", "unexpected attributes 'other'"),
        ("custom_attributes:\n  extReq: x\n", "Cannot specify CSR attribute"),
        ("extension_requests:\n  subjectAltName: x\n", "Cannot specify extension request"),
        ("extension_requests:\n  nonsense: x\n", "neither an OID nor a known short name"),
        ("extension_requests:\n  pp_role: [a]\n", "is not a text"),
        ("extension_requests: [a]\n", "expected a map of OID"),
        ("a: b: c\n", "Could not read .*Not YAML"),
    ],
)
def test_a_wrong_attributes_file_is_one_clear_error(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "csr_attributes.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        csr.CsrAttributes.load(path)
    assert str(path) in str(error.value) or "neither" in message


def test_a_missing_attributes_file_is_an_empty_one(tmp_path) -> None:
    assert csr.CsrAttributes.load(tmp_path / "none.yaml") == csr.CsrAttributes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "expected a map, found a list"),
        ("a: b: c\n", "Not YAML"),
        ("other: {}\n", "there is no map 'oid_mapping'"),
        ("oid_mapping: {1.2.3: {longname: x}}\n", "1.2.3' has no 'shortname'"),
        ("oid_mapping: {here: {shortname: x}}\n", "'here' is not an OID"),
    ],
)
def test_a_wrong_file_of_oids_is_one_clear_error_that_names_it(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "custom_trusted_oid_mapping.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        oids.OidNames.load(path)
    assert str(error.value).startswith(f"Could not read {path}: ")


def test_a_sites_own_oids_have_names(tmp_path) -> None:
    path = tmp_path / "custom_trusted_oid_mapping.yaml"
    assert oids.OidNames.load(path) == oids.OidNames()
    path.write_text("oid_mapping:\n  '1.3.6.1.4.1.34380.1.2.7': {shortname: site_rack, longname: The Rack}\n")
    assert oids.OidNames.load(path).oid_of("site_rack") == "1.3.6.1.4.1.34380.1.2.7"


def test_a_changed_request_has_no_valid_signature() -> None:
    request = csr.build(KEY, "web1")
    der = request.public_bytes(csr.Encoding.DER).replace(b"web1", b"web2")
    assert not csr.parse(dump([x509.load_der_x509_csr(der)])).signature_valid


def test_the_kind_and_place_of_common_names_are_seen() -> None:
    rdn = x509.RelativeDistinguishedName
    cn = x509.NameAttribute
    two = x509.Name([cn(x509.NameOID.COMMON_NAME, "web1"), cn(x509.NameOID.COMMON_NAME, "admin")])
    joined = x509.Name([rdn([cn(x509.NameOID.COMMON_NAME, "web1"), cn(x509.NameOID.ORGANIZATION_NAME, "o")])])
    bmp = x509.Name([cn(x509.NameOID.COMMON_NAME, "web1", _type=csr._ASN1Type.BMPString)])

    def facts(name: x509.Name) -> csr.RequestFacts:
        return csr.parse(dump([x509.CertificateSigningRequestBuilder().subject_name(name).sign(KEY, SHA256())]))

    assert [c.value for c in facts(two).common_names] == ["web1", "admin"]
    assert facts(two).name == ""
    assert not facts(joined).common_names[0].alone
    assert facts(joined).other_names
    assert not facts(bmp).common_names[0].usual_string


@pytest.mark.parametrize("text", [b"", b"junk", b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"])
def test_what_is_no_request_is_bad_data(text: bytes) -> None:
    with pytest.raises(BadData):
        csr.parse(text)


def test_a_request_over_the_limit_or_two_at_once_are_refused() -> None:
    pem = dump([csr.build(KEY, "web1")])
    with pytest.raises(TooLarge):
        csr.parse(pem, max_bytes=len(pem) - 1)
    with pytest.raises(BadData, match="more than one"):
        csr.parse(pem + pem)


def with_version(pem: bytes, version: int, key: rsa.RSAPrivateKey | None) -> bytes:
    """A request with another version, signed anew with `key`, or with the signature that it had."""
    original = x509.load_pem_x509_csr(pem).public_bytes(Encoding.DER)
    body, algorithm, signature = der.elements(der.element(original)[1])
    content = der.encode(der.INTEGER, bytes([version])) + b"".join(der.encode(*part) for part in der.elements(body[1])[1:])
    signed = der.encode(der.SEQUENCE, content)
    if key is not None:
        signature = (signature[0], b"\0" + key.sign(signed, padding.PKCS1v15(), hashes.SHA256()))
    whole = der.encode(der.SEQUENCE, signed + der.encode(*algorithm) + der.encode(*signature))
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(whole) + b"-----END CERTIFICATE REQUEST-----\n"


def test_a_request_of_puppetservers_tool_is_read_in_spite_of_its_version() -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = with_version(dump([csr.build(key, "web1", dns_alt_names=["other"])]), 2, key)
    facts = csr.parse(pem)
    assert (facts.name, facts.alternative_names, facts.signature_valid) == ("web1", ("DNS:other", "DNS:web1"), True)
    assert csr.parse(facts.pem) == facts
    assert base64.b64decode(b"".join(facts.pem.splitlines()[1:-1])) == base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    unsigned = csr.parse(with_version(dump([csr.build(key, "web1")]), 2, None))
    assert not unsigned.signature_valid
    other = csr.parse(with_version(dump([csr.build(key, "web1")]), 2, rsa.generate_private_key(65537, 2048)))
    assert not other.signature_valid


def test_a_request_of_an_unknown_version_is_bad_data() -> None:
    key = rsa.generate_private_key(65537, 2048)
    with pytest.raises(BadData, match="has a version that does not exist: 7"):
        csr.parse(with_version(dump([csr.build(key, "web1")]), 7, key))
